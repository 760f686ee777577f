"""Why a filter holds a message back, in a clause for a caller that tries the filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.policies.attribute_policy import PolicyFilter, missed
from cirrusmq.filters.policies.body_policy import BodyPolicyFilter, missed_in_body
from cirrusmq.filters.routing import RoutingFilter
from cirrusmq.filters.selection import Both, Filter
from cirrusmq.filters.sql.evaluation import EvaluationError
from cirrusmq.filters.sql.expression import TAGS_ATTRIBUTE, SqlFilter, seen_by_sql
from cirrusmq.filters.tags import TagFilter

_MAX_NAMES = 3


def why_not(filter: Filter, message: Filterable) -> str | None:
    """Returns why a message does not pass, or None if it passes."""
    if filter.matches(message):
        return None
    if isinstance(filter, Both):
        return why_not(filter.other, message) or why_not(filter.sql, message)
    if isinstance(filter, TagFilter):
        return "it has none of the filter's tags" if message.tags else "it has no tags"
    if isinstance(filter, RoutingFilter):
        return (
            "no binding key matches its routing key"
            if message.routing_key
            else "it has no routing key"
        )
    if isinstance(filter, PolicyFilter):
        return f"policy: no condition holds of {_listed(missed(filter.text, message.attributes))}"
    if isinstance(filter, BodyPolicyFilter):
        return missed_in_body(filter.text, message.body)
    assert isinstance(filter, SqlFilter)
    return _why_not_sql(filter, _Attributes(seen_by_sql(message)))


class _Attributes(dict[str, str | bytes]):
    """Attributes that note which names were looked for in vain; bytes have no text."""

    def __init__(self, attributes: Mapping[str, str | bytes]) -> None:
        super().__init__(attributes)
        self.missing: dict[str, None] = {}

    def get(self, name: str, default: object = None) -> str | bytes | None:  # type: ignore[override]
        value = super().get(name)
        if not isinstance(value, str):
            self.missing[name] = None
        return value


def _why_not_sql(filter: SqlFilter, attributes: _Attributes) -> str:
    try:
        value = filter.value(attributes)
    except EvaluationError:
        return "sql compares a text that is no number with a number"
    if value is None:
        names = ["tags" if name == TAGS_ATTRIBUTE else name for name in attributes.missing]
        return f"sql is NULL: it has no text for {_listed(names)}"
    return "sql is FALSE"


def _listed(names: Sequence[str]) -> str:
    """Returns the first of the names, as a text."""
    return ", ".join([*names[:_MAX_NAMES], *(["…"] if len(names) > _MAX_NAMES else [])])
