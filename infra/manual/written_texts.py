"""Texts as they stand in code, and as Markdown."""

from __future__ import annotations

import ast

ANYTHING = "…"
"""Stands for a value that is put into a text."""


def text_of(node: ast.expr) -> str:
    """A text as it is written, with … for each value."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(map(text_of, values))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
    return ANYTHING


def escaped(text: str) -> str:
    """A text as Markdown that shows it as it is, in a table too."""
    shown = text
    for mark in "\\`*_[]<>|":
        shown = shown.replace(mark, f"\\{mark}")
    return shown
