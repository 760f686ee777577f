"""The output of the commands: tables, JSON, progress, and one line for an error."""

from __future__ import annotations

import contextlib
import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

REFUSED = 1
_WIDEST = 10_000


def fail(message: str, hint: str | None = None) -> NoReturn:
    """Print an error and its hint in one line on standard error; exit with 1."""
    tell(f"{message} ({hint})" if hint else message)
    raise SystemExit(REFUSED)


def tell(message: str) -> None:
    """Print one line on standard error."""
    # The reader of standard error may be gone.
    with contextlib.suppress(OSError, ValueError):
        print("cirrusmq: " + show(" ".join(message.split())), file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a JSON document on one line, and flush it for a pipe."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None
) -> None:
    """Print a table. Cells are printed literally, never read as markup; numbers are right-aligned.

    If the terminal is too narrow for a word of the table, each row is a block of lines instead,
    because a time or a name must not be cut.
    """
    held = [[show(cell) if not _is_number(cell) else cell for cell in row] for row in rows]
    console = Console()
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        numbers = held and all(_is_number(row[index]) for row in held)
        # The first column names the row, and a name must not be cut.
        table.add_column(column, justify="right" if numbers else "left", no_wrap=index == 0)
    for row in held:
        table.add_row(*(Text(str(cell)) for cell in row))
    wide = console.options.update(max_width=_WIDEST)
    if len(columns) > 2 and Measurement.get(console, wide, table).minimum > console.width:
        _print_blocks(columns, held, title)
    else:
        console.print(table)


def _print_blocks(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None) -> None:
    """Print a block for each row: its first cell, and a line for each other non-empty cell."""
    if title:
        print(title)
    names = max(map(len, columns[1:]))
    for first, *cells in rows:
        print(first)
        for column, cell in zip(columns[1:], cells, strict=True):
            if cell != "":
                print(f"  {column:{names}}  {cell}")


def print_record(record: Mapping[str, Any], as_json: bool) -> None:
    """Print a resource: one attribute on each line."""
    if as_json:
        print_json(record)
    else:
        print_table(["attribute", "value"], list(record.items()))


def print_listing(
    records: Sequence[Mapping[str, Any]], columns: Sequence[str], as_json: bool, empty: str
) -> None:
    """Print resources: some attributes, one resource on each line; all attributes in JSON."""
    if as_json:
        print_json(records)
    elif records:
        print_table(columns, [[record.get(name) for name in columns] for record in records])
    else:
        print(empty)


def make_progress(total: bool = False) -> Progress:
    """Return a progress display on standard error, only for a terminal, erased at the end."""
    bar = (BarColumn(), TextColumn("{task.completed}/{task.total}")) if total else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *bar, TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def show(value: Any) -> str:
    """Return a value as text for a terminal, with control characters made visible."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(_visible(character) for character in text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _visible(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs"):
        return character
    return character.encode("unicode_escape").decode()
