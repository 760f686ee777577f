"""The conditions of a filter policy: each is a value, or an object with one operator.

They are tested on a text, a number (`Decimal`), true, false or null as JSON has them, or a text of
a caller without types, which is a number too if it is written as one.
"""

from __future__ import annotations

import ipaddress
import json
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from cirrusmq.base.errors import InvalidFilter

NUMBER_MOST = 1_000_000_000
"""A policy's numbers are from minus this to this, with five decimal places at most."""
_PLACES = 5
NUMBER_RANGE = (
    f"a number must be from -{NUMBER_MOST:,} to {NUMBER_MOST:,}, "
    f"with {_PLACES} decimal places at most"
)
_DIGITS_MOST = 40
"""A longer text is no number here."""
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ANY = "must be a text, a number, or an object with an operator"


class Untyped(str):
    """The text of an attribute whose sender has no types."""

    __slots__ = ()


class _Null:
    """JSON's null."""


NULL: Final = _Null()
Value: TypeAlias = str | Decimal | bool | _Null | None
"""The value of a name, or None if the name is absent."""
Test: TypeAlias = Callable[[Value], bool]


def make_test(condition: object, where: str, *, of_bodies: bool) -> Test:
    """Returns the test of a condition. Raises `InvalidFilter`.

    of_bodies: true, false and null are conditions, too.
    """
    if isinstance(condition, Mapping):
        if len(condition) != 1:
            raise InvalidFilter(f"{where}: must have one operator, not {len(condition)}")
        ((name, operand),) = condition.items()
        make = _OPERATORS.get(name)
        if make is None:
            expected = ", ".join(OPERATORS)
            raise InvalidFilter(f"{where}: {name!a} is no operator: use one of {expected}")
        return make(operand, f"{where}.{name}", of_bodies)
    return _equals(condition, where, of_bodies)


def as_value(given: object) -> Value:
    """Returns a value of JSON, whose numbers are decimal, in the form that conditions test."""
    if given is None:
        return NULL
    return given if isinstance(given, str | bool | Decimal) else None


def _equals(operand: object, where: str, of_bodies: bool) -> Test:
    if isinstance(operand, str):
        return lambda value: isinstance(value, str) and value == operand
    if of_bodies and (operand is None or isinstance(operand, bool)):
        wanted = as_value(operand)
        return lambda value: value is wanted
    number = _number(operand, where, _ANY)
    return lambda value: _read_number(value) == number


def _of_text(holds: Callable[[str, str], bool]) -> Callable[[object, str, bool], Test]:
    def checked(operand: object, where: str, _: bool) -> Test:
        if not isinstance(operand, str) or not operand:
            raise InvalidFilter(f"{where}: must be a text that is not empty")
        return lambda value: isinstance(value, str) and holds(value, operand)

    return checked


def _anything_but(operand: object, where: str, of_bodies: bool) -> Test:
    """There must be a value, and it must be none of these."""
    if isinstance(operand, Mapping):
        if len(operand) != 1 or (name := next(iter(operand))) not in _TEXT_OPERATORS:
            raise InvalidFilter(f"{where}: must have one of {', '.join(_TEXT_OPERATORS)}")
        given = operand[name]
        but = [
            _TEXT_OPERATORS[name](each, f"{where}.{name}", of_bodies)
            for each in (given if isinstance(given, list) and given else [given])
        ]
    else:
        values = operand if isinstance(operand, list) and operand else [operand]
        but = [_equals(each, f"{where}[{number}]", of_bodies) for number, each in enumerate(values)]
    return lambda value: value is not None and not any(test(value) for test in but)


def _exists(operand: object, where: str, _: bool) -> Test:
    if not isinstance(operand, bool):
        raise InvalidFilter(f"{where}: must be true or false")
    return lambda value: (value is not None) == operand


def _cidr(operand: object, where: str, _: bool) -> Test:
    try:
        network = ipaddress.ip_network(str(operand), strict=False)
    except ValueError:
        raise InvalidFilter(f"{where}: must be a network, such as 10.0.0.0/24") from None
    return lambda value: isinstance(value, str) and _is_in(value, network)


def _is_in(value: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(value) in network
    except ValueError:
        return False


def _numeric(operand: object, where: str, _: bool) -> Test:
    """One comparison, or a lower and an upper bound."""
    reason = 'must be a comparison and a number, such as [">=", 5], or a lower and an upper bound'
    if not isinstance(operand, list) or len(operand) not in (2, 4):
        raise InvalidFilter(f"{where}: {reason}")
    pairs = list(zip(operand[::2], operand[1::2], strict=True))
    if any(not isinstance(name, str) or name not in _COMPARISONS for name, _ in pairs):
        raise InvalidFilter(f"{where}: {reason}")
    if len(pairs) > 1:
        (low, from_), (high, to) = pairs
        if low not in (">", ">=") or high not in ("<", "<="):
            raise InvalidFilter(f"{where}: {reason}")
        if _number(from_, where, reason) >= _number(to, where, reason):
            raise InvalidFilter(f"{where}: the lower bound must be below the upper one")
    tests = [(_COMPARISONS[name], _number(number, where, reason)) for name, number in pairs]

    def test(value: Value) -> bool:
        found = _read_number(value)
        return found is not None and all(compare(found, number) for compare, number in tests)

    return test


_TEXT_OPERATORS: Mapping[str, Callable[[object, str, bool], Test]] = {
    "prefix": _of_text(str.startswith),
    "suffix": _of_text(str.endswith),
    "equals-ignore-case": _of_text(lambda value, other: value.casefold() == other.casefold()),
}
_OPERATORS: Mapping[str, Callable[[object, str, bool], Test]] = {
    **_TEXT_OPERATORS,
    "anything-but": _anything_but,
    "numeric": _numeric,
    "cidr": _cidr,
    "exists": _exists,
}
OPERATORS = tuple(_OPERATORS)


def _number(given: object, where: str, reason: str) -> Decimal:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidFilter(f"{where}: {reason}")
    number = Decimal(str(given))
    if int(number.normalize().as_tuple().exponent) < -_PLACES:
        raise InvalidFilter(f"{where}: {NUMBER_RANGE}")
    return number


def _read_number(value: Value) -> Decimal | None:
    """Returns the number that a value is, or None if it is no number."""
    if isinstance(value, Decimal):
        return value
    return read_number(value) if isinstance(value, Untyped) else None


def read_number(text: str) -> Decimal | None:
    """Returns the number that a text is, as JSON writes numbers, or None if it is no number."""
    if len(text) > _DIGITS_MOST or text != text.strip():
        return None
    try:
        found = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except ValueError:
        return None
    return found if isinstance(found, Decimal) else None
