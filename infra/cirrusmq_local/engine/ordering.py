"""The order of two values, for types that DynamoDB orders."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.scope import Check
from cirrusmq_local.engine.wire import AttributeValue, Values

ORDERED_TYPES = frozenset("SNB")


def order(left: AttributeValue | None, right: AttributeValue | None) -> int | None:
    """Returns a number below, equal to or above 0 if left is before, equal to or after right.

    Returns None if they have no order: one is absent, the types differ, or the type is not
    ordered. Texts are ordered as their UTF-8 bytes, which is the order of their code points.
    """
    if left is None or right is None:
        return None
    one: Any
    other: Any
    ((tag, one),) = left.items()
    ((other_tag, other),) = right.items()
    if tag != other_tag or tag not in ORDERED_TYPES:
        return None
    if tag == "N":
        one, other = Decimal(one), Decimal(other)
    return int(one > other) - int(one < other)


def check_bounds(low: str, high: str, parameter: str) -> Check:
    """Returns a check that two placeholders can be the bounds of a BETWEEN."""

    def check(values: Values) -> None:
        found = order(values[low], values[high])
        if found is None:
            raise InvalidRequestError(
                f"Invalid {parameter}: The BETWEEN operator requires same data type for lower and "
                f"upper bounds; lower bound operand: AttributeValue: {values[low]}, upper bound "
                f"operand: AttributeValue: {values[high]}"
            )
        if found > 0:
            raise InvalidRequestError(
                f"Invalid {parameter}: The BETWEEN operator requires upper bound to be greater "
                f"than or equal to lower bound; lower bound operand: AttributeValue: "
                f"{values[low]}, upper bound operand: AttributeValue: {values[high]}"
            )

    return check
