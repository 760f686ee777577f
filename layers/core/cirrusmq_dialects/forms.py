"""A form of the query protocol, as a tree: `Tags.member.1.Key=a` is in `Tags`, `member`, `1`."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_plus

_FIELDS = 2_000
"""Maximum fields of a form: ten messages with ten attributes each have 800."""
_DEPTH = 9
"""Maximum parts of a name."""


class FormError(ValueError):
    """The form is not in UTF-8 or has too many fields, or two of its names contradict."""


def read(form: bytes) -> dict[str, Any]:
    """Returns the values of a form in a tree of their names' parts. Raises FormError.

    Names and values are read as `parse_qsl` does, which also decodes texts without escapes.
    """
    if form.count(b"&") >= _FIELDS:
        raise FormError("The form has too many fields.")
    tree: dict[str, Any] = {}
    # A structure's fields mostly stand together: it is looked up once.
    structures: dict[str, dict[str, Any]] = {}
    try:
        for field in form.decode().split("&"):
            name, _, value = field.partition("=")
            if not field:
                continue
            if "%" in name or "+" in name:
                name = unquote_plus(name, errors="strict")
            if "%" in value:
                value = unquote_plus(value, errors="strict")
            elif "+" in value:
                value = value.replace("+", " ")
            parent, dot, last = name.rpartition(".")
            structure = structures.get(parent) if dot else tree
            if structure is None:
                structure = structures[parent] = _structure(tree, parent.split("."))
            if isinstance(structure.get(last), dict):
                raise _given_twice(last)
            structure[last] = value
    except UnicodeDecodeError as error:
        raise FormError("The body is not a form in UTF-8.") from error
    return tree


def _structure(tree: dict[str, Any], path: list[str]) -> dict[str, Any]:
    if len(path) >= _DEPTH:
        raise FormError("The name of a parameter has too many parts.")
    for step in path:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            raise _given_twice(step)
        tree = inner
    return tree


def _given_twice(name: str) -> FormError:
    return FormError(f"Parameter {name[:80]} is given twice.")
