"""An SQL filter, ready to decide about messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from cirrusmq.base.errors import InvalidFilter
from cirrusmq.base.reserved_attributes import RESERVED
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.sql.evaluation import Attributes, EvaluationError, Tags, Truth, run
from cirrusmq.filters.sql.parser import Program, parse

COMPILED_FILTERS = 256
TAGS_ATTRIBUTE = "TAGS"


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """Lets a message pass for which the expression is TRUE; every other outcome holds it back."""

    sql: str
    program: Program = field(repr=False, compare=False)

    def matches(self, message: Filterable) -> bool:
        try:
            return self.value(seen_by_sql(message)) is True
        except EvaluationError:
            return False

    def value(self, attributes: Attributes) -> Truth:
        """TRUE, FALSE or NULL (None) for attributes that hold TAGS too.

        Raises `EvaluationError`.
        """
        return run(self.program, attributes)

    def normalized(self) -> dict[str, object]:
        return {"sql": self.sql}


def seen_by_sql(message: Filterable) -> Attributes:
    """The attributes that an expression reads: a message without tags has no TAGS, as any that is
    absent is NULL. The service's own attributes are none of them."""
    attributes = message.attributes
    if not RESERVED.isdisjoint(attributes):
        attributes = {name: held for name, held in attributes.items() if name not in RESERVED}
    return {**attributes, TAGS_ATTRIBUTE: Tags.of(message.tags)} if message.tags else attributes


def sql_filter(sql: object) -> SqlFilter:
    """The filter of a `sql` member. Raises `InvalidFilter`, with position and reason."""
    if not isinstance(sql, str):
        raise InvalidFilter("sql: must be a string")
    return compile_sql(sql)


@lru_cache(maxsize=COMPILED_FILTERS)
def compile_sql(sql: str) -> SqlFilter:
    """The filter that `sql` writes. Raises `InvalidFilter`, with position and reason."""
    return SqlFilter(sql, parse(sql))
