"""Filter policies over a message's body, as SNS has them with the scope `MessageBody`.

    {"kind": ["sold"], "item": {"price": [{"numeric": [">=", 100]}]}}

    {"kind": "sold", "item": {"price": 250}}                        passes
    {"kind": "sold", "item": [{"price": 50}, {"price": 250}]}       passes: one of its elements does
    {"kind": "sold"}                                                does not: it has no price
    {"kind": "sold", "item.price": 250}                             passes: dots lead to a name, too

A body that is no JSON object passes no policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from cirrusmq.base.errors import InvalidFilter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.policies.conditions import Test, Value, as_value, make_test
from cirrusmq.filters.policies.policy_limits import (
    BODY_DEPTH_MOST,
    check_counts,
    has_alternatives,
    policy_text,
)

COMPILED_POLICIES = 256
_NO_OBJECT = "the body is no JSON object"
_DOTS_UNTIL = 128
"""Dots behind this character lead nowhere: the work of a name would grow as its square."""


class BodyPolicyFilter(msgspec.Struct, frozen=True):
    """Lets a message pass whose body a policy lets pass; `text`: its JSON without blanks."""

    text: str

    def matches(self, message: Filterable) -> bool:
        found = _read(message.body)
        return found is not None and _passes(_compiled(self.text), found)

    def normalized(self) -> dict[str, object]:
        return {"body_policy": json.loads(self.text)}


class _CompiledBody(msgspec.Struct, frozen=True):
    """A policy ready to match: what each name needs, and alternatives."""

    leaves: Mapping[str, tuple[Test, ...]]
    """One of the tests must hold."""
    inner: Mapping[str, _CompiledBody]
    """The policy of the object, or of one of the objects, that a name holds."""
    alternatives: tuple[tuple[_CompiledBody, ...], ...]
    """The policies of each `$or`, one of which must pass."""


def body_policy_filter(policy: object) -> BodyPolicyFilter:
    """The filter of a `body_policy` member. Raises `InvalidFilter`, with place and reason."""
    if not isinstance(policy, Mapping):
        raise InvalidFilter("policy: must be an object")
    text = policy_text(policy, BODY_DEPTH_MOST)
    _compiled(text)
    check_counts(policy, has_alternatives)
    return BodyPolicyFilter(text)


def missed_in_body(text: str, body: str | bytes) -> str:
    """Why a body does not pass, in a clause."""
    found = _read(body)
    if found is None:
        return _NO_OBJECT
    names = ", ".join(_missed(_compiled(text), found))
    return f"body_policy: no condition holds of {names}"


def _passes(policy: _CompiledBody, held: Mapping[str, Any]) -> bool:
    return not any(_missed(policy, held))


def _missed(policy: _CompiledBody, held: Mapping[str, Any]) -> Iterator[str]:
    for name, tests in policy.leaves.items():
        if not any(test(value) for value in _values(held, name) for test in tests):
            yield name
    for name, inner in policy.inner.items():
        if not any(_passes(inner, each) for each in _objects(held, name)):
            yield name
    for alternatives in policy.alternatives:
        if not any(_passes(each, held) for each in alternatives):
            yield "$or"


def _values(held: Mapping[str, Any], name: str) -> Sequence[Value]:
    """Returns a name's value, or its list's elements; None for an object or an absent name."""
    return [as_value(each) for each in _found(held, name)] or (None,)


def _objects(held: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Returns the object of a name, or the objects of its list; an empty object if it has none."""
    objects = [each for each in _found(held, name) if isinstance(each, dict)]
    if not objects:
        begins = f"{name}."
        rest = {each.removeprefix(begins): held[each] for each in held if each.startswith(begins)}
        return (rest,)
    return objects


def _found(held: Mapping[str, Any], name: str) -> Iterator[Any]:
    """Yields the values of a name; a dot is a part of the name, or leads into an object.

    The elements of a list, and of the lists in it, are values of its name.
    """
    if name in held:
        yield from _elements(held[name])
    at = name.find(".", 0, _DOTS_UNTIL)
    while at > 0:
        for each in _elements(held.get(name[:at])):
            if isinstance(each, dict):
                yield from _found(each, name[at + 1 :])
        at = name.find(".", at + 1, _DOTS_UNTIL)


def _elements(found: Any) -> Iterator[Any]:
    if isinstance(found, list):
        for each in found:
            yield from _elements(each)
    else:
        yield found


@lru_cache(maxsize=1)
def _read(body: str | bytes) -> dict[str, Any] | None:
    """Returns the object that a body is, or None if it is not an object.

    The subscriptions of a topic ask for one message after the other, so one result is cached.
    """
    try:
        found = json.loads(
            body, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity, which are not JSON


@lru_cache(maxsize=COMPILED_POLICIES)
def _compiled(text: str) -> _CompiledBody:
    return _compile(json.loads(text), "policy")


def _compile(policy: Mapping[str, Any], where: str) -> _CompiledBody:
    leaves: dict[str, tuple[Test, ...]] = {}
    inner: dict[str, _CompiledBody] = {}
    alternatives = []
    for name, held in policy.items():
        place = f"{where}.{name}"
        if has_alternatives(name, held):
            alternatives.append(
                tuple(_compile(each, f"{place}[{number}]") for number, each in enumerate(held))
            )
        elif not name:
            raise InvalidFilter(f"{place}: must be the name of a member")
        elif isinstance(held, Mapping) and held:
            inner[name] = _compile(held, place)
        elif isinstance(held, list) and held:
            leaves[name] = tuple(
                make_test(each, f"{place}[{number}]", of_bodies=True)
                for number, each in enumerate(held)
            )
        else:
            told = "must be a list of conditions, one at least, or an object of names"
            raise InvalidFilter(f"{place}: {told}")
    return _CompiledBody(leaves, inner, tuple(alternatives))
