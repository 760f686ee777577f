"""A form of the query protocol, as a tree: `Tags.member.1.Key=a` is in `Tags`, `member`, `1`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

_FIELDS = 2_000
"""Maximum fields of a form: ten messages with ten attributes each have 800."""
_DEPTH = 9
"""Maximum parts of a name."""


class FormError(ValueError):
    """The form is not in UTF-8 or has too many fields, or two of its names contradict."""


def read(form: bytes) -> dict[str, Any]:
    """Returns the values of a form in a tree of their names' parts. Raises FormError."""
    tree: dict[str, Any] = {}
    # A structure's fields mostly stand together: it is looked up once.
    structures: dict[str, dict[str, Any]] = {}
    for name, value in _fields(form):
        parent, dot, last = name.rpartition(".")
        structure = structures.get(parent) if dot else tree
        if structure is None:
            structure = structures[parent] = _structure(tree, parent.split("."))
        if isinstance(structure.get(last), dict):
            raise _given_twice(last)
        structure[last] = value
    return tree


def _fields(form: bytes) -> Iterator[tuple[str, str]]:
    """The names and values, as `parse_qsl` reads them, which decodes texts without escapes too."""
    if form.count(b"&") >= _FIELDS:
        raise FormError("The form has too many fields.")
    try:
        for field in form.decode().split("&"):
            if field:
                name, _, value = field.partition("=")
                yield _decoded(name), _decoded(value)
    except UnicodeDecodeError as error:
        raise FormError("The body is not a form in UTF-8.") from error


def _decoded(text: str) -> str:
    return unquote_plus(text, errors="strict") if "%" in text or "+" in text else text


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
