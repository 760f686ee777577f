"""The texts of a file that people read: docstrings, comments, messages of errors, pages.

Code spans, fenced code, tables' rules and drawings are no prose, and are left out. The made parts
of pages have their texts from elsewhere.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

_SPAN = re.compile(r"``?[^`\n]+``?")
_LINK = re.compile(r"\]\([^)\s]*\)")
_DRAWN = re.compile(r"[─│┌└├┤┬┴┼═║>]{2}|-->|──|│")
_FENCE = re.compile(r"```.*?```", re.DOTALL)
_MADE = re.compile(r"<!-- made: .*?<!-- end -->", re.DOTALL)
_INDENTED = re.compile(r"^ {4,}\S.*$", re.MULTILINE)


def texts_of(path: Path) -> Iterator[str]:
    """The prose of a file, one piece of text after another."""
    source = path.read_text()
    if path.suffix == ".md":
        yield _prose(_FENCE.sub("", _MADE.sub("", source)))
        return
    for text in [*_strings(ast.parse(source)), *_comments(source)]:
        yield _prose(text)


def _prose(text: str) -> str:
    lines = [line for line in text.splitlines() if not _DRAWN.search(line)]
    text = _INDENTED.sub("", "\n".join(lines))
    return _LINK.sub("]", _SPAN.sub("X", text))


def _strings(tree: ast.Module) -> Iterator[str]:
    """Docstrings, of attributes too, and the texts of errors that are raised."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield _unindented(node.value.value)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _unindented(text: str) -> str:
    first, _, rest = text.partition("\n")
    lines = rest.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join([first, *(line[margin:] for line in lines)])


def _comments(source: str) -> Iterator[str]:
    """Comments, those of neighbouring lines as one text."""
    together: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1 and together:
            yield "\n".join(together)
            together = []
        together.append(token.string.lstrip("# "))
        last = token.start[0]
    if together:
        yield "\n".join(together)
