"""The operations of an update on values: sums, longer lists, larger and smaller sets."""

from __future__ import annotations

from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.numbers import add_numbers, subtract_numbers
from cirrusmq_local.engine.values import make_set, type_of
from cirrusmq_local.engine.wire import AttributeValue


def summed(left: AttributeValue, right: AttributeValue, sign: str) -> AttributeValue:
    """Returns `left + right` or `left - right`. Raises InvalidRequestError if one is no number."""
    if "N" not in left or "N" not in right:
        raise _mismatch()
    combine = add_numbers if sign == "+" else subtract_numbers
    return {"N": combine(left["N"], right["N"])}


def appended(first: AttributeValue, second: AttributeValue) -> AttributeValue:
    """Returns `first` followed by `second`. Raises InvalidRequestError if one is no list."""
    if "L" not in first or "L" not in second:
        raise _mismatch()
    return {"L": [*first["L"], *second["L"]]}


def added(current: AttributeValue | None, operand: AttributeValue) -> AttributeValue:
    """Returns ADD's result: a sum, a larger set, or the operand if there is no current value."""
    if current is None:
        return operand
    tag = type_of(operand)
    if tag not in current:
        raise _mismatch()
    if tag == "N":
        return {"N": add_numbers(current["N"], operand["N"])}
    return make_set(tag, list({*current[tag], *operand[tag]}))


def removed_from_set(
    current: AttributeValue | None, operand: AttributeValue
) -> AttributeValue | None:
    """Returns DELETE's result: the set without the operand's elements, or None if it is empty."""
    if current is None:
        return None
    tag = type_of(operand)
    if tag not in current:
        raise _mismatch()
    left = set(current[tag]) - set(operand[tag])
    return make_set(tag, list(left)) if left else None


def _mismatch() -> InvalidRequestError:
    return InvalidRequestError("An operand in the update expression has an incorrect data type")
