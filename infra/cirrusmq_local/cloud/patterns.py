"""Filters of an event source mapping: they select records of a stream for a function.

Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from cirrusmq_local.cloud.cloudformation import TemplateError

Predicate: TypeAlias = Callable[[Any], bool]

_FIELDS = {"eventName", "dynamodb", "dynamodb.Keys", "dynamodb.NewImage"}


def compile_patterns(patterns: Sequence[Mapping[str, Any]]) -> Predicate:
    """Returns a predicate for records that match a pattern; without patterns all records match.

    Supports exact values and `prefix`, for an event's name, an item's keys and its new image, as
    the template uses them. Anything else raises TemplateError here.
    """
    if not patterns:
        return lambda record: True
    for pattern in patterns:
        fields = set(pattern) | {f"dynamodb.{name}" for name in pattern.get("dynamodb") or {}}
        unknown = fields - _FIELDS
        if unknown:
            raise TemplateError(f"a filter of {sorted(unknown)} is not understood")
    return _any([_all(list(_leaves(pattern, ()))) for pattern in patterns])


def _any(predicates: Sequence[Predicate]) -> Predicate:
    if len(predicates) == 1:
        return predicates[0]

    def matches(value: Any) -> bool:
        # A loop: this runs for every change of an item, and a generator costs more than the rest.
        for predicate in predicates:  # noqa: SIM110
            if predicate(value):
                return True
        return False

    return matches


def _all(leaves: Sequence[tuple[tuple[str, ...], Predicate]]) -> Predicate:
    """Returns a predicate that is True if each path has a value that its predicate accepts."""

    def matches(record: Any) -> bool:
        for path, predicate in leaves:
            held = record
            try:
                for name in path:
                    held = held[name]
            except (KeyError, TypeError):
                return False
            if not predicate(held):
                return False
        return True

    return matches


def _leaves(
    pattern: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Predicate]]:
    """Yields the paths of a pattern, each with the predicate for its value."""
    for name, wanted in pattern.items():
        if isinstance(wanted, Mapping):
            yield from _leaves(wanted, (*above, name))
        elif isinstance(wanted, list) and wanted:
            yield (*above, name), _any([_alternative(name, each) for each in wanted])
        else:
            text = f"filter of {name}: a list of alternatives is needed, not {wanted!r}"
            raise TemplateError(text)


def _alternative(name: str, wanted: Any) -> Predicate:
    if isinstance(wanted, Mapping):
        if set(wanted) != {"prefix"} or not isinstance(wanted["prefix"], str):
            raise TemplateError(f"filter of {name}: {dict(wanted)} is not understood, prefix is")
        prefix = wanted["prefix"]
        return lambda value: isinstance(value, str) and value.startswith(prefix)
    return lambda value: type(value) is type(wanted) and value == wanted
