"""The kinds of items that the core's code can write, read from the code itself."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_LETTERS = re.compile(r"([A-Z]{1,2})(#|\Z)")
_BY_KIND = ("shard_key", "shard_keys", "partition_key")
"""Functions whose first argument is a kind."""


def kinds_of(folder: Path) -> set[str]:
    """The first parts of the partition keys in a folder's modules.

    A kind of capital letters begins a text such as `f"Q#{id}"` or `"T#groups"`, or is given to a
    function that makes keys. A word is the whole partition key of its items: `key(*_ROUND)` with
    `_ROUND = ("sweep", "visits")`, or `ItemKey("deployment", …)`.
    """
    trees = [ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))]
    reader = _Reader()
    for tree in trees:
        reader.note_constants(tree)
    for tree in trees:
        reader.visit(tree)
    return reader.kinds


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._constants: dict[str, set[str]] = defaultdict(set)
        """Name of a module's constant → its texts in all modules; the first one of a tuple."""

    def note_constants(self, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.Assign):
                for name, value in _pairs(node):
                    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        self._constants[name].add(first.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and "#" in node.value:
            self._add_letters(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        first = node.values[0] if node.values else None
        if isinstance(first, ast.FormattedValue) and len(node.values) > 1:
            behind = node.values[1]
            if isinstance(behind, ast.Constant) and str(behind.value).startswith("#"):
                self._add_all(first.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = _name(node.func)
        if function in _BY_KIND and node.args:
            self._add_all(node.args[0])
        elif function == "ItemKey" and node.args and isinstance(node.args[0], ast.Constant):
            self.kinds.add(str(node.args[0].value))
        elif function in ("key", "get"):
            for argument in node.args:
                if isinstance(argument, ast.Starred):
                    self.kinds |= self._constants.get(_name(argument.value), set())
        self.generic_visit(node)

    def _add_all(self, node: ast.expr) -> None:
        texts = [str(node.value)] if isinstance(node, ast.Constant) else ()
        for text in (*texts, *self._constants.get(_name(node), ())):
            self._add_letters(text)

    def _add_letters(self, text: str) -> None:
        if found := _LETTERS.match(text):
            self.kinds.add(found[1])


def _pairs(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(map(_name, target.elts), node.value.elts, strict=True)
        else:
            yield _name(target), node.value


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
