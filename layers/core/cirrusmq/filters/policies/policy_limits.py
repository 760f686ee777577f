"""How large and how deep a filter policy may be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from cirrusmq.base.errors import InvalidFilter
from cirrusmq.filters.policies.conditions import NUMBER_MOST, NUMBER_RANGE, OPERATORS

POLICY_BYTES = 8_192
"""Maximum bytes of a policy's JSON without blanks."""
POLICY_NAMES = 5
POLICY_COMBINATIONS = 150
"""The conditions of each name multiplied; in bodies each times the depth of its name. Alternatives
of `$or` are added."""
OR = "$or"
DEPTH_MOST = 12
BODY_DEPTH_MOST = 50
IsOr: TypeAlias = Callable[[str, object], bool]
"""True for a name whose value is a list of policies, one of which must hold."""


def policy_text(policy: Mapping[str, object], depth_most: int = DEPTH_MOST) -> str:
    """Returns a policy's JSON without blanks, its names sorted. Raises InvalidFilter if too large.

    Equal policies have the same text.
    """
    _check_shape(policy, depth_most)
    text = json.dumps(policy, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    if len(text.encode()) > POLICY_BYTES:
        raise InvalidFilter(f"policy: must have at most {POLICY_BYTES:,} bytes without blanks")
    return text


def check_counts(policy: Mapping[str, Any], is_or: IsOr) -> None:
    """Raises InvalidFilter for too many names, or combinations of conditions.

    The names inside another one count with it. is_or: whether a name has alternatives.
    """
    if len(names := set(_names(policy, is_or))) > POLICY_NAMES:
        raise InvalidFilter(f"policy: must have at most {POLICY_NAMES} names, not {len(names)}")
    if (count := _combinations(policy, is_or, 1)) > POLICY_COMBINATIONS:
        raise InvalidFilter(
            f"policy: has {count:,} combinations of conditions: at most {POLICY_COMBINATIONS}"
        )


def has_alternatives(name: str, held: object) -> bool:
    """Returns True if a name is `$or` with policies, one of which must hold; else it is plain.

    A list of conditions has operators: `{"$or": [{"prefix": "a"}, {"prefix": "b"}]}`.
    """
    if name != OR or not isinstance(held, list) or len(held) < 2:
        return False
    return all(
        isinstance(each, Mapping) and each and not any(inner in OPERATORS for inner in each)
        for each in held
    )


def _check_shape(policy: Mapping[str, object], depth_most: int) -> None:
    """Raises InvalidFilter if a policy is nested deeply, or has a number that is out of range."""
    level: list[object] = [policy]
    for _ in range(depth_most):
        inner: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
            elif isinstance(each, int | float) and not abs(each) <= NUMBER_MOST:
                raise InvalidFilter(f"policy: {NUMBER_RANGE}")
        if not inner:
            return
        level = inner
    raise InvalidFilter(f"policy: must have at most {depth_most} objects and lists in each other")


def _names(policy: Mapping[str, Any], is_or: IsOr) -> Iterator[str]:
    for name, conditions in policy.items():
        if is_or(name, conditions):
            for each in conditions:
                yield from _names(each, is_or)
        else:
            yield name


def _combinations(policy: Mapping[str, Any], is_or: IsOr, depth: int) -> int:
    count = 1
    for name, held in policy.items():
        if is_or(name, held):
            count *= sum(_combinations(each, is_or, depth) for each in held)
        elif isinstance(held, Mapping):
            count *= _combinations(held, is_or, depth + 1)
        else:
            count *= len(held) * depth
    return count
