"""Filter policies over a message's attributes, as SNS has them: every name, any of its conditions.

    {"region": ["eu", {"prefix": "us-"}], "amount": [{"numeric": [">=", 100, "<", 1000]}]}

    region = us-1 and amount = 250      passes
    region = us-1                       does not: it has no amount

A condition is a value that the attribute is, or an object with one operator. Attributes are texts
here: a text in a policy is compared as one, a number with a text that is a number. Bytes and names
that begin with `$` are not seen. What an SDK sent has the name that it sent; of a `String.Array`
any element may meet a condition.
"""

from __future__ import annotations

import ipaddress
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from cirrusmq.base.errors import InvalidFilter

POLICY_BYTES = 8_192
"""Of its JSON without blanks."""
POLICY_NAMES = 5
POLICY_COMBINATIONS = 150
"""The conditions of each name multiplied; alternatives of `$or` are added."""
NUMBER_MOST = 1_000_000_000
"""A policy's numbers are from minus this to this, with five decimal places at most."""
COMPILED_POLICIES = 256
OR = "$or"
_HIDDEN = "$"
_ARRAY = "String.Array"
_PLACES = 5
_DEPTH_MOST = 12
_NUMBER_RANGE = (
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
Value: TypeAlias = str | None
"""An attribute's text; None where there is none."""
Test: TypeAlias = Callable[[Value], bool]


class PolicyFilter(msgspec.Struct, frozen=True):
    """Lets a message pass that a policy lets pass; `text`: its JSON without blanks."""

    text: str

    def matches(
        self, tags: Sequence[str], routing_key: str, attributes: Mapping[str, str | bytes]
    ) -> bool:
        return not any(_missed(_compiled(self.text), attributes))

    def normalized(self) -> dict[str, object]:
        return {"policy": json.loads(self.text)}


class _Compiled(msgspec.Struct, frozen=True):
    """A policy ready to match: tests by name, all of which must pass, and alternatives."""

    names: Mapping[str, tuple[Test, ...]]
    alternatives: tuple[tuple[_Compiled, ...], ...]
    """Of each `$or`: one must pass."""


def policy_filter(policy: object) -> PolicyFilter:
    """The filter of a `policy` member. Raises `InvalidFilter`, with the place and the reason."""
    if not isinstance(policy, Mapping):
        raise InvalidFilter("policy: must be an object")
    _check_shape(policy)
    # In one order, so that policies that say the same are equal.
    text = json.dumps(policy, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    if len(text.encode()) > POLICY_BYTES:
        raise InvalidFilter(f"policy: must have at most {POLICY_BYTES:,} bytes without blanks")
    _compiled(text)
    if len(names := set(_names(policy))) > POLICY_NAMES:
        raise InvalidFilter(f"policy: must have at most {POLICY_NAMES} names, not {len(names)}")
    if (count := _combinations(policy)) > POLICY_COMBINATIONS:
        raise InvalidFilter(
            f"policy: has {count:,} combinations of conditions: at most {POLICY_COMBINATIONS}"
        )
    return PolicyFilter(text)


def _check_shape(policy: Mapping[str, object]) -> None:
    """Raise InvalidFilter if a policy is nested deeply, or has a number that is out of range."""
    level: list[object] = [policy]
    for _ in range(_DEPTH_MOST):
        inner: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
            elif isinstance(each, int | float) and not abs(each) <= NUMBER_MOST:
                raise InvalidFilter(f"policy: {_NUMBER_RANGE}")
        if not inner:
            return
        level = inner
    raise InvalidFilter(f"policy: must have at most {_DEPTH_MOST} objects and lists in each other")


def missed(text: str, attributes: Mapping[str, str | bytes]) -> list[str]:
    """The names whose conditions attributes do not meet, none if the message passes."""
    return list(_missed(_compiled(text), attributes))


def _missed(policy: _Compiled, attributes: Mapping[str, str | bytes]) -> Iterator[str]:
    sent = _as_sent(attributes)
    yield from _missed_of(policy, sent)


def _missed_of(policy: _Compiled, sent: Mapping[str, Sequence[Value]]) -> Iterator[str]:
    for name, tests in policy.names.items():
        values = sent.get(name) or (None,)
        if not any(test(value) for value in values for test in tests):
            yield name
    for alternatives in policy.alternatives:
        if all(any(_missed_of(each, sent)) for each in alternatives):
            yield OR


def _as_sent(attributes: Mapping[str, str | bytes]) -> dict[str, Sequence[Value]]:
    """The texts of attributes by the names that were sent; of an array those of its elements."""
    if not any(_HIDDEN in name for name in attributes):
        return {name: (held,) for name, held in attributes.items() if isinstance(held, str)}
    # SDKs of other services send such names: the others' cold starts do without.
    from cirrusmq.base import sdk_attributes

    return {
        name: _elements(typed.value) if typed.type == _ARRAY else (typed.value,)
        for name, typed in sdk_attributes.read(attributes).items()
        if isinstance(typed.value, str)
    }


def _elements(text: str) -> Sequence[Value]:
    """The elements of an array, as texts; the text itself where it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return (text,)
    if not isinstance(found, list):
        return (text,)
    return [each if isinstance(each, str) else json.dumps(each) for each in found]


@lru_cache(maxsize=COMPILED_POLICIES)
def _compiled(text: str) -> _Compiled:
    return _compile(json.loads(text), "policy")


def _compile(policy: Mapping[str, object], where: str) -> _Compiled:
    names: dict[str, tuple[Test, ...]] = {}
    alternatives = []
    for name, conditions in policy.items():
        place = f"{where}.{name}"
        if name == OR:
            alternatives.append(_alternatives(conditions, place))
            continue
        if not name or name.startswith(_HIDDEN):
            raise InvalidFilter(f"{place}: must be the name of an attribute, or {OR}")
        if not isinstance(conditions, list) or not conditions:
            raise InvalidFilter(f"{place}: must be a list of conditions, one at least")
        names[name] = tuple(
            _test(each, f"{place}[{number}]") for number, each in enumerate(conditions)
        )
    return _Compiled(names, tuple(alternatives))


def _alternatives(given: object, where: str) -> tuple[_Compiled, ...]:
    if not isinstance(given, list) or len(given) < 2:
        raise InvalidFilter(f"{where}: must be a list of two policies or more")
    for number, each in enumerate(given):
        if not isinstance(each, Mapping) or not each:
            raise InvalidFilter(f"{where}[{number}]: must be a policy with a name at least")
    return tuple(_compile(each, f"{where}[{number}]") for number, each in enumerate(given))


def _test(condition: object, where: str) -> Test:
    if isinstance(condition, Mapping):
        if len(condition) != 1:
            raise InvalidFilter(f"{where}: must have one operator, not {len(condition)}")
        ((name, operand),) = condition.items()
        make = _OPERATORS.get(name)
        if make is None:
            expected = ", ".join(_OPERATORS)
            raise InvalidFilter(f"{where}: {name!a} is no operator: use one of {expected}")
        return make(operand, f"{where}.{name}")
    return _equals(condition, where)


def _equals(operand: object, where: str) -> Test:
    if isinstance(operand, str):
        return lambda value: value == operand
    wanted = _number(operand, where, "must be a text, a number, or an object with an operator")
    return lambda value: _read_number(value) == wanted


def _text_test(make: Callable[[str], Test]) -> Callable[[object, str], Test]:
    def checked(operand: object, where: str) -> Test:
        if not isinstance(operand, str) or not operand:
            raise InvalidFilter(f"{where}: must be a text that is not empty")
        return make(operand)

    return checked


def _prefix(operand: str) -> Test:
    return lambda value: value is not None and value.startswith(operand)


def _suffix(operand: str) -> Test:
    return lambda value: value is not None and value.endswith(operand)


def _equals_ignore_case(operand: str) -> Test:
    folded = operand.casefold()
    return lambda value: value is not None and value.casefold() == folded


def _anything_but(operand: object, where: str) -> Test:
    """The attribute must be there, and be none of these."""
    if isinstance(operand, Mapping):
        if len(operand) != 1 or (name := next(iter(operand))) not in _TEXT_OPERATORS:
            raise InvalidFilter(f"{where}: must have one of {', '.join(_TEXT_OPERATORS)}")
        given = operand[name]
        but = [
            _TEXT_OPERATORS[name](each, f"{where}.{name}")
            for each in (given if isinstance(given, list) and given else [given])
        ]
    else:
        values = operand if isinstance(operand, list) and operand else [operand]
        but = [_equals(each, f"{where}[{number}]") for number, each in enumerate(values)]
    return lambda value: value is not None and not any(test(value) for test in but)


def _exists(operand: object, where: str) -> Test:
    if not isinstance(operand, bool):
        raise InvalidFilter(f"{where}: must be true or false")
    return lambda value: (value is not None) == operand


def _cidr(operand: object, where: str) -> Test:
    try:
        network = ipaddress.ip_network(str(operand), strict=False)
    except ValueError:
        raise InvalidFilter(f"{where}: must be a network, such as 10.0.0.0/24") from None
    return lambda value: value is not None and _is_in(value, network)


def _is_in(value: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(value) in network
    except ValueError:
        return False


def _numeric(operand: object, where: str) -> Test:
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


_TEXT_OPERATORS: Mapping[str, Callable[[object, str], Test]] = {
    "prefix": _text_test(_prefix),
    "suffix": _text_test(_suffix),
    "equals-ignore-case": _text_test(_equals_ignore_case),
}
_OPERATORS: Mapping[str, Callable[[object, str], Test]] = {
    **_TEXT_OPERATORS,
    "anything-but": _anything_but,
    "numeric": _numeric,
    "cidr": _cidr,
    "exists": _exists,
}


def _number(given: object, where: str, reason: str) -> Decimal:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidFilter(f"{where}: {reason}")
    number = Decimal(str(given))
    if int(number.normalize().as_tuple().exponent) < -_PLACES:
        raise InvalidFilter(f"{where}: {_NUMBER_RANGE}")
    return number


def _read_number(value: Value) -> Decimal | None:
    """The number that a text is, as JSON writes numbers; None where it is none."""
    if value is None or len(value) > _DIGITS_MOST or value != value.strip():
        return None
    try:
        found = json.loads(value, parse_float=Decimal, parse_int=Decimal)
    except ValueError:
        return None
    return found if isinstance(found, Decimal) else None


def _names(policy: Mapping[str, Any]) -> Iterator[str]:
    for name, conditions in policy.items():
        if name == OR:
            for each in conditions:
                yield from _names(each)
        else:
            yield name


def _combinations(policy: Mapping[str, Any]) -> int:
    count = 1
    for name, conditions in policy.items():
        if name == OR:
            count *= sum(map(_combinations, conditions))
        else:
            count *= len(conditions)
    return count
