"""A section for each error: its sentences, read from the code that raises it, and what to do."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import cirrusmq
import cirrusmq_lambda
from cirrusmq.base import errors
from cirrusmq_client import errors as client_errors
from cirrusmq_lambda import problems

from .program_texts import program_errors
from .written_texts import ANYTHING, escaped, text_of

ACTIONS = Path(__file__).with_name("troubleshooting.yaml")
"""What to do, by code."""
_SOURCES = (Path(cirrusmq.__file__).parent, Path(cirrusmq_lambda.__file__).parent)
_NAMES_FIRST = {"InvalidParameter"}
"""Codes whose first argument is the parameter, and whose second is the sentence."""


def troubleshooting() -> str:
    """A section for each code, by status; then the errors that the client library adds; then
    the sentences of each program."""
    actions = yaml.safe_load(ACTIONS.read_text("utf-8"))
    sections = [_section(kind, actions[kind.__name__]) for kind in contract_errors()]
    sections.append(
        "## In the library\n\nErrors of `cirrusmq_client` that have no answer of the service."
    )
    for kind in library_errors():
        sections.append(
            f"### `{kind.__name__}`\n\n- {_docstring(kind)}\n\n**Do**: {actions[kind.__name__]}"
        )
    sections.append(program_errors())
    return "\n\n".join(sections)


def contract_errors() -> list[type[errors.CirrusMQError]]:
    """The errors with a code of their own, by status."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in found if _is_below(kind, errors.CirrusMQError)]
    return sorted(kinds, key=lambda kind: (problems.status_of(kind.__name__), kind.__name__))


def library_errors() -> list[type[client_errors.CirrusMQError]]:
    """The client library's own errors, which are none of the contract."""
    contract = {kind.__name__ for kind in contract_errors()}
    found = [kind for kind in vars(client_errors).values() if isinstance(kind, type)]
    return [
        kind
        for kind in found
        if _is_below(kind, client_errors.CirrusMQError) and kind.__name__ not in contract
    ]


@cache
def sentences() -> Mapping[str, frozenset[str]]:
    """Code -> the sentences of its `detail`, with … for what is put in."""
    kinds = {kind.__name__: kind for kind in contract_errors()}
    found: dict[str, set[str]] = defaultdict(set)
    for name, kind in kinds.items():
        if name not in _NAMES_FIRST:
            found[name].add(_docstring(kind))
    for name, texts in _calls(set(kinds)):
        if name in _NAMES_FIRST and len(texts) > 1:
            found[name].add(f"{texts[0]}: {texts[1]}")
        elif name not in _NAMES_FIRST and texts and texts[0] != ANYTHING:
            found[name].add(texts[0])
    found["InvalidParameter"] |= {f"{ANYTHING}: {each}" for each in _of_fields()}
    return {
        name: frozenset(each for each in held if each.strip(f"{ANYTHING}: "))
        for name, held in found.items()
    }


def _of_fields() -> Iterator[str]:
    """Sentences about a field of a body: its description in the contract, and what it was."""
    yield from ("this field is not known", "this field is needed")
    document = json.loads(Path(problems.__file__).with_name("openapi.json").read_text("utf-8"))
    for name, schema in document["components"]["schemas"].items():
        if name.endswith(("Request", "Input", "Message", "Policy", "Filter", "Entry", "Scope")):
            for held in _described(schema.get("properties", {})):
                yield f"must be {held} ({ANYTHING})"


def _described(node: Any) -> Iterator[str]:
    """The descriptions in a schema that begin as the end of *must be*."""
    if isinstance(node, list):
        for each in node:
            yield from _described(each)
    elif isinstance(node, dict):
        text = node.get("description")
        if isinstance(text, str) and re.match(r"(an?|one) ", text):
            yield text
        for each in node.values():
            yield from _described(each)


def _section(kind: type[errors.CirrusMQError], action: str) -> str:
    name = kind.__name__
    lines = "\n".join(f"- {escaped(each)}" for each in sorted(sentences()[name], key=str.lower))
    return f"## `{name}` ({problems.status_of(name)})\n\n{lines}\n\n**Do**: {action}"


def _calls(names: set[str]) -> Iterator[tuple[str, list[str]]]:
    """The name and the texts of each call of one of these in the service's code."""
    for path in (path for folder in _SOURCES for path in sorted(folder.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func
                name = called.attr if isinstance(called, ast.Attribute) else ""
                name = called.id if isinstance(called, ast.Name) else name
                if name in names:
                    yield name, [text_of(each) for each in node.args]


def _is_below(kind: type, base: type) -> bool:
    return issubclass(kind, base) and kind is not base


def _docstring(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())
