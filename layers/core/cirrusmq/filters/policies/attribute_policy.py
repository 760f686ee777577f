"""Filter policies over a message's attributes, as SNS has them: every name, any of its conditions.

    {"region": ["eu", {"prefix": "us-"}], "amount": [{"numeric": [">=", 100, "<", 1000]}]}

    region = us-1 and amount = 250      passes
    region = us-1                       does not: it has no amount

Attributes of the service's own callers are texts: a number in a policy meets a text that is a
number. Attributes of SNS's callers have types: a number meets a `Number` alone, a text a `String`;
of a `String.Array` any element may meet a condition. Bytes and names that begin with `$` are not
seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

import msgspec

from cirrusmq.base.errors import InvalidFilter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.policies.conditions import (
    Test,
    Untyped,
    Value,
    as_value,
    make_test,
    read_number,
)
from cirrusmq.filters.policies.policy_limits import OR, check_counts, policy_text

COMPILED_POLICIES = 256
_HIDDEN = "$"
_ARRAY, _NUMBER = "String.Array", "Number"


class PolicyFilter(msgspec.Struct, frozen=True):
    """Lets a message pass that a policy lets pass; `text`: its JSON without blanks."""

    text: str

    def matches(self, message: Filterable) -> bool:
        return not any(_missed_of(_compiled(self.text), _as_sent(message.attributes)))

    def normalized(self) -> dict[str, object]:
        return {"policy": json.loads(self.text)}


class _Compiled(msgspec.Struct, frozen=True):
    """A policy ready to match: tests by name, all of which must pass, and alternatives."""

    names: Mapping[str, tuple[Test, ...]]
    alternatives: tuple[tuple[_Compiled, ...], ...]
    """The policies of each `$or`, one of which must pass."""


def policy_filter(policy: object) -> PolicyFilter:
    """The filter of a `policy` member. Raises `InvalidFilter`, with the place and the reason."""
    if not isinstance(policy, Mapping):
        raise InvalidFilter("policy: must be an object")
    text = policy_text(policy)
    _compiled(text)
    check_counts(policy, lambda name, _: name == OR)
    return PolicyFilter(text)


def missed(text: str, attributes: Mapping[str, str | bytes]) -> list[str]:
    """The names whose conditions attributes do not meet, none if the message passes."""
    return list(_missed_of(_compiled(text), _as_sent(attributes)))


def _missed_of(policy: _Compiled, sent: Mapping[str, Sequence[Value]]) -> Iterator[str]:
    for name, tests in policy.names.items():
        values = sent.get(name) or (None,)
        if not any(test(value) for value in values for test in tests):
            yield name
    for alternatives in policy.alternatives:
        if all(any(_missed_of(each, sent)) for each in alternatives):
            yield OR


def _as_sent(attributes: Mapping[str, str | bytes]) -> dict[str, Sequence[Value]]:
    """Returns the values of attributes by the sent names; an array has a value for each element."""
    if not any(_HIDDEN in name for name in attributes):
        return {
            name: (Untyped(held),) for name, held in attributes.items() if isinstance(held, str)
        }
    # SDKs of other services send such names: the others' cold starts do without.
    from cirrusmq.base import reserved_attributes, sdk_attributes

    typed = reserved_attributes.TYPES in attributes
    return {
        name: _values(each.type, each.value) if typed else (Untyped(each.value),)
        for name, each in sdk_attributes.read(attributes).items()
        if isinstance(each.value, str)
    }


def _values(kind: str, text: str) -> Sequence[Value]:
    """The values of an attribute of a type; of an array that is none, its text."""
    if kind.split(".")[0] == _NUMBER:
        return (read_number(text),)
    if kind != _ARRAY:
        return (text,)
    try:
        found = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except ValueError:
        return (text,)
    return [as_value(each) for each in found] if isinstance(found, list) else (text,)


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
            make_test(each, f"{place}[{number}]", of_bodies=False)
            for number, each in enumerate(conditions)
        )
    return _Compiled(names, tuple(alternatives))


def _alternatives(given: object, where: str) -> tuple[_Compiled, ...]:
    if not isinstance(given, list) or len(given) < 2:
        raise InvalidFilter(f"{where}: must be a list of two policies or more")
    for number, each in enumerate(given):
        if not isinstance(each, Mapping) or not each:
            raise InvalidFilter(f"{where}[{number}]: must be a policy with a name at least")
    return tuple(_compile(each, f"{where}[{number}]") for number, each in enumerate(given))
