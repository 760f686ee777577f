"""The filter of a subscription or a receiver: its `filter` object, checked once, ready to match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.routing import RoutingFilter, binding_keys_of_list
from cirrusmq.filters.tags import (
    TAG_CHARACTERS,
    TagFilter,
    tags_of_expression,
    tags_of_list,
)

# The source of the filtered messages: a topic of either kind, or a queue's log.
Source = Literal["tags", "routing_key", "queue"]

BODY_POLICY = "body_policy"
MEMBERS: Mapping[Source, tuple[str, ...]] = {
    "tags": ("tags", "tag_expression", "policy", BODY_POLICY, "sql"),
    "routing_key": ("binding_keys", "policy", BODY_POLICY, "sql"),
    "queue": ("tags", "sql"),
}
ALL_MEMBERS = frozenset(member for members in MEMBERS.values() for member in members)


class Filter(Protocol):
    """Decides which messages reach a subscription or a receiver."""

    def matches(self, message: Filterable) -> bool:
        """Returns True if a message passes."""
        ...

    def normalized(self) -> dict[str, object] | None:
        """Returns the JSON object to show and to keep, or None if every message passes."""
        ...


class Everything(msgspec.Struct, frozen=True):
    """Lets every message pass."""

    def matches(self, message: Filterable) -> bool:
        return True

    def normalized(self) -> None:
        return None


class Both(msgspec.Struct, frozen=True):
    """Lets a message pass that passes both; `sql` is looked at last."""

    other: Filter
    sql: Filter

    def matches(self, message: Filterable) -> bool:
        return self.other.matches(message) and self.sql.matches(message)

    def normalized(self) -> dict[str, object]:
        return {**(self.other.normalized() or {}), **(self.sql.normalized() or {})}


def compile_filter(
    filter: Mapping[str, object] | None, kind: Source, tag_characters: int = TAG_CHARACTERS
) -> Filter:
    """Returns the filter that `filter` describes; None, `{"tags": []}` and `*` let all pass.

    `filter`: None or an object with one of `tags`, `tag_expression`, `binding_keys`, `policy` and
    `body_policy`, of which `kind` allows some, with `sql`, or with both: then both must hold.
    Filters that were written in the same way are equal. `tag_characters`: maximum of a tag.

    Raises `InvalidParameter` if it is no such object, and `InvalidFilter` if the member is not
    allowed for `kind`, or its content does not parse or goes beyond a limit.
    """
    if filter is None:
        return Everything()
    members = _members(filter)
    for member in members:
        if member not in MEMBERS[kind]:
            expected = " or ".join(MEMBERS[kind])
            raise InvalidFilter(f"{member} is not allowed here: use {expected}")
    filters = [_filter_of(member, value, tag_characters) for member, value in members.items()]
    if len(filters) == 1 or isinstance(filters[0], Everything):
        return filters[-1]
    return Both(*filters)


def reads_body(filter: Mapping[str, object] | None) -> bool:
    """Returns True if a `filter` object looks at the bodies of messages."""
    return filter is not None and BODY_POLICY in filter


def _members(filter: object) -> dict[str, object]:
    """The filter's one member, or its two with `sql` as the second."""
    if not isinstance(filter, Mapping):
        raise InvalidParameter("filter", "must be an object or null")
    for name in filter:
        if name not in ALL_MEMBERS:
            raise InvalidParameter("filter", f"{name!a} is not a member of a filter")
    others = [name for name in filter if name != "sql"]
    if len(others) > 1 or not filter:
        expected = ", ".join(sorted(ALL_MEMBERS - {"sql"}))
        raise InvalidFilter(f"must have sql, one of {expected}, or both, not {len(filter)} members")
    return {name: filter[name] for name in [*others, *(["sql"] if "sql" in filter else [])]}


def _filter_of(member: str, value: object, tag_characters: int) -> Filter:
    if member == "sql":
        # A parser that few functions need, and that would slow the start of all.
        from cirrusmq.filters.sql.expression import sql_filter

        return sql_filter(value)
    if member == "policy":
        # Few subscriptions have one.
        from cirrusmq.filters.policies.attribute_policy import policy_filter

        return policy_filter(value) if value != {} else Everything()
    if member == BODY_POLICY:
        # Few subscriptions have one.
        from cirrusmq.filters.policies.body_policy import body_policy_filter

        return body_policy_filter(value) if value != {} else Everything()
    if member == "binding_keys":
        return RoutingFilter(binding_keys_of_list(value))
    if member == "tags":
        tags = tags_of_list(value, tag_characters)
        return TagFilter(frozenset(tags), (member, tags)) if tags else Everything()
    tags = tags_of_expression(value, tag_characters)
    return TagFilter(frozenset(tags), (member, str(value))) if tags else Everything()
