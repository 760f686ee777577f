"""Parses the text of a rate card into mappings, lists and words.

EMR's Python has no YAML reader, and a job's zip has nothing but these modules. A card needs only
YAML's mappings and lists by indentation, which are read here strictly: the card stays one file that
people edit, without a converted copy that could differ from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from cirrusmq_reports.errors import BadInput

Value: TypeAlias = "str | dict[str, Value] | list[Value]"

_PAIR = re.compile(r'(?P<name>[A-Za-z][A-Za-z0-9_-]*):(?: +(?P<value>[A-Za-z0-9.-]+|"[^"]*"))?')
_COMMENT = re.compile(r'^((?:[^"#]|"[^"]*")*)#.*$')
_ITEM = "- "


class _Line(NamedTuple):
    number: int
    indent: int
    text: str


def read_card_text(path: str, text: str) -> dict[str, Value]:
    """Returns the mapping in `text`; `path` is for errors. Raises BadInput."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        content = _COMMENT.sub(r"\1", line).rstrip()
        if content:
            stripped = content.lstrip(" ")
            lines.append(_Line(number, len(content) - len(stripped), stripped))
    reader = _Reader(path, lines)
    card = reader.mapping(0) if lines else {}
    reader.end()
    return card


class _Reader:
    def __init__(self, path: str, lines: Sequence[_Line]) -> None:
        self._path, self._lines, self._place = path, list(lines), 0

    def mapping(self, indent: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        while (line := self._next(indent)) is not None:
            match = _PAIR.fullmatch(line.text)
            if match is None:
                raise self._error(line, f"not `name: value`: {line.text}")
            if match["name"] in found:
                raise self._error(line, f"{match['name']} stands here twice")
            self._place += 1
            value = match["value"]
            found[match["name"]] = value.strip('"') if value else self._inside(line)
        return found

    def end(self) -> None:
        """Raises BadInput if a line is left that belongs to no block."""
        if self._place < len(self._lines):
            line = self._lines[self._place]
            raise self._error(line, f"does not belong here: {line.text}")

    def _inside(self, above: _Line) -> Value:
        """Returns the indented block under a name without a value."""
        if self._place == len(self._lines) or self._lines[self._place].indent <= above.indent:
            raise self._error(above, f"nothing follows: {above.text}")
        first = self._lines[self._place]
        if first.text.startswith(_ITEM):
            return self._list(first.indent)
        return self.mapping(first.indent)

    def _list(self, indent: int) -> list[Value]:
        found: list[Value] = []
        while (line := self._next(indent)) is not None:
            if not line.text.startswith(_ITEM):
                raise self._error(line, f"not `- name: value`: {line.text}")
            inner = line.text[len(_ITEM) :].lstrip(" ")
            deeper = indent + len(line.text) - len(inner)
            self._lines[self._place] = _Line(line.number, deeper, inner)
            found.append(self.mapping(deeper))
        return found

    def _next(self, indent: int) -> _Line | None:
        """Returns the next line if it belongs to the block at `indent`, else None."""
        if self._place == len(self._lines):
            return None
        line = self._lines[self._place]
        if line.indent > indent:
            raise self._error(line, f"does not belong here: {line.text}")
        return line if line.indent == indent else None

    def _error(self, line: _Line, message: str) -> BadInput:
        return BadInput(f"{self._path}: line {line.number}: {message}")
