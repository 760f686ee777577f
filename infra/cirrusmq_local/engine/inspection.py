"""Checks if an engine could open a file, without a change to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from cirrusmq_local.engine.schema import Table, create_tables
from cirrusmq_local.engine.store import BUSY_TIMEOUT_SECONDS, check_file, code_of
from cirrusmq_local.engine.tables import TableSpec


def inspect_store(path: Path, specs: Sequence[TableSpec]) -> None:
    """Raises the error that an engine of these tables would: sqlite3.Error, OtherFormError."""
    where = f"file://{quote(bytes(path.absolute()))}?mode=ro"
    if not path.with_name(path.name + "-wal").exists():
        # No process has it open: then even a reader would make files beside it, and leave them.
        where += "&immutable=1"
    with closing(sqlite3.connect(where, timeout=BUSY_TIMEOUT_SECONDS, uri=True)) as connection:
        check_file(connection)
        try:
            create_tables(connection, [Table(spec) for spec in specs], 0, "")
        except sqlite3.OperationalError as error:
            # A part is missing that a start makes.
            if code_of(error) != sqlite3.SQLITE_READONLY:
                raise
