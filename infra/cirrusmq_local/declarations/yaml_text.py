"""The unambiguous part of YAML: texts, numbers, true, false, null, lists, mappings.

YAML 1.1 reads `no` as false, `12:30` as 750 and `2026-11-20` as a date. Here they are texts, as in
JSON. Every value has its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"-?(0|[1-9][0-9]*)", list("-0123456789")),
    "float": (
        r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?",
        list("-0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}


class TextError(Exception):
    """The text is not such YAML; with the line of the first fault."""

    def __init__(self, line: int, detail: str) -> None:
        super().__init__(detail)
        self.line, self.detail = line, detail


class _Loader(yaml.SafeLoader):
    pass


_Loader.yaml_implicit_resolvers = {}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Line breaks of other alphabets are kept only in double quotes.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar(_TAG + "str", text, style=style)


_Dumper.add_representer(str, _represent_text)
for _name, (_pattern, _first) in _PLAIN.items():
    _whole = re.compile(f"(?:{_pattern})\\Z")
    _Loader.add_implicit_resolver(_TAG + _name, _whole, _first)
    # A text that any reader would take for another type is quoted.
    _Dumper.add_implicit_resolver(_TAG + _name, _whole, _first)


def load(text: str) -> tuple[Any, Mapping[tuple[str, ...], int]]:
    """Returns the value of a text, and the line of each value by its path. Raises TextError."""
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise TextError(line, "must not have control characters") from error
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {(): 1}
        _check_keys(node, ())
        value = loader.construct_document(node)
        return value, dict(_lines(node, (), node.start_mark.line + 1))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise TextError(mark.line + 1 if mark else 1, error.problem or "is not YAML") from error
    except RecursionError as error:
        raise TextError(1, "is nested too deeply") from error
    finally:
        loader.dispose()


def dump(value: Any) -> str:
    """Returns the value as a text: mappings in their order, one entry in a line."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )


def _check_keys(node: yaml.Node, above: tuple[int, ...]) -> None:
    """Refuses duplicate keys, keys that are no texts, and values that contain themselves."""
    if id(node) in above:
        raise TextError(node.start_mark.line + 1, "a value must not hold itself")
    above = (*above, id(node))
    if isinstance(node, yaml.SequenceNode):
        for held in node.value:
            _check_keys(held, above)
    if not isinstance(node, yaml.MappingNode):
        return
    seen = set()
    for key, held in node.value:
        line = key.start_mark.line + 1
        if key.tag not in (_TAG + "str", _TAG + "merge"):
            raise TextError(line, "a name must be a text: put it in quotes")
        if key.value in seen:
            raise TextError(line, f"{key.value} is given twice")
        seen.add(key.value)
        _check_keys(held, above)


def _lines(
    node: yaml.Node, path: tuple[str, ...], line: int
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yields each path and its line: an entry's is its key's. Merged mappings are in the node."""
    yield path, line
    if isinstance(node, yaml.MappingNode):
        for key, held in node.value:
            yield from _lines(held, (*path, key.value), key.start_mark.line + 1)
