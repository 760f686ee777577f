"""What the commands print: tables, JSON, progress, and one line for what went wrong."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

REFUSED = 1


def fail(message: str, hint: str | None = None) -> NoReturn:
    """Say what went wrong, and what to do next, in one line on standard error; exit with 1."""
    line = f"{message} ({hint})" if hint else message
    print("cirrusmq: " + " ".join(line.split()), file=sys.stderr)
    raise SystemExit(REFUSED)


def print_json(value: Any) -> None:
    """One JSON document on one line, written at once so that a pipe gets it."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table. Cells are shown as they are, never read as markup."""
    table = Table()
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(show(cell)) for cell in row))
    Console().print(table)


def show(value: Any) -> str:
    """A value as text for a terminal: what could steer it is made visible."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs"):
        return character
    return character.encode("unicode_escape").decode()
