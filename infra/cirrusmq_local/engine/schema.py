"""The SQL of the engine: its tables, and every statement that names one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache

from cirrusmq_local.engine.errors import OtherFormError
from cirrusmq_local.engine.tables import TableSpec

# One row for each table: `definition` detects a change of keys, `trimmed` is the last sequence
# that was trimmed, and all changes since `kept_since_ms` are kept. `folder` has one row: "" in a
# database of a release without folder ids, whose events keep their ids.
_SHARED = """
CREATE TABLE IF NOT EXISTS tables (
    name TEXT PRIMARY KEY, definition TEXT NOT NULL, created_ms INTEGER NOT NULL,
    trimmed INTEGER NOT NULL DEFAULT 0, kept_since_ms INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (reader TEXT PRIMARY KEY, position INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    token TEXT PRIMARY KEY, digest BLOB NOT NULL, at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tokens_by_age ON tokens (at_ms);
CREATE TABLE IF NOT EXISTS folder (id TEXT NOT NULL);
"""

# Columns without a type keep text and binary as they are and compare them bytewise. The item is
# the last column: sizes and expiry are read without walking over its overflow pages.
_OF_A_TABLE = """
CREATE TABLE IF NOT EXISTS {items} (
    pk NOT NULL, sk NOT NULL, size INTEGER NOT NULL, expires INTEGER, item BLOB NOT NULL,
    PRIMARY KEY (pk, sk)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {expiry} ON {items} (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS {changes} (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, pk NOT NULL, sk NOT NULL,
    by_service INTEGER NOT NULL, old BLOB, new BLOB
);
"""

# The floor of a table that keeps no changes for exports.
NEVER_KEPT = 2**62


@dataclass(frozen=True, slots=True)
class Table:
    """A table and its SQL statements."""

    spec: TableSpec
    select: str = field(init=False)
    insert: str = field(init=False)
    replace: str = field(init=False)
    delete: str = field(init=False)
    record: str = field(init=False)
    items: str = field(init=False)
    changes: str = field(init=False)

    def __post_init__(self) -> None:
        items, changes = _quoted(f"items:{self.spec.name}"), _quoted(f"changes:{self.spec.name}")
        statements = {
            "items": items,
            "changes": changes,
            "select": f"SELECT size, item FROM {items} WHERE pk = ? AND sk = ?",
            "insert": f"INSERT INTO {items} (size, expires, item, pk, sk) VALUES (?, ?, ?, ?, ?)",
            "replace": f"UPDATE {items} SET size = ?, expires = ?, item = ? "
            "WHERE pk = ? AND sk = ?",
            "delete": f"DELETE FROM {items} WHERE pk = ? AND sk = ?",
            "record": f"INSERT INTO {changes} (at_ms, pk, sk, by_service, old, new) "
            "VALUES (?, ?, ?, ?, ?, ?)",
        }
        for name, statement in statements.items():
            object.__setattr__(self, name, statement)

    @property
    def sequence_name(self) -> str:
        """SQLite's name for the sequence of this table's changes."""
        return f"changes:{self.spec.name}"


def create_tables(
    connection: sqlite3.Connection, tables: list[Table], now_ms: int, folder_id: str
) -> None:
    """Makes missing tables; an empty database gets `folder_id`.

    Raises OtherFormError if a table exists in another form.
    """
    wanted = _wanted(tuple(tables))
    # Checked first: tables of another version stay as they are.
    for name, columns in _columns(connection).items():
        if name in wanted and columns != wanted[name]:
            raise OtherFormError(f"the table {name} has the columns {', '.join(columns)}")
    _create(connection, tables)
    if connection.execute("SELECT id FROM folder").fetchone() is None:
        # A start that was stopped before this has registered no table yet.
        (old,) = connection.execute("SELECT COUNT(*) FROM tables").fetchone()
        connection.execute("INSERT INTO folder (id) VALUES (?)", ("" if old else folder_id,))
    for table in tables:
        _register(connection, table.spec, now_ms)


def read_folder_id(connection: sqlite3.Connection) -> str:
    """Returns the id of the database's folder, or "" if an earlier release made the database."""
    (folder_id,) = connection.execute("SELECT id FROM folder").fetchone()
    return str(folder_id)


@cache
def _wanted(tables: tuple[Table, ...]) -> dict[str, list[str]]:
    """Returns the columns of each table of a new database."""
    with closing(sqlite3.connect(":memory:")) as model:
        _create(model, tables)
        return _columns(model)


def _create(connection: sqlite3.Connection, tables: Sequence[Table]) -> None:
    connection.executescript(_SHARED)
    for table in tables:
        connection.executescript(
            _OF_A_TABLE.format(
                items=table.items,
                changes=table.changes,
                expiry=_quoted(f"expiry:{table.spec.name}"),
            )
        )


def _columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Returns the columns of each table of a database."""
    found: dict[str, list[str]] = {}
    for table, column in connection.execute(
        "SELECT held.name, info.name FROM sqlite_schema AS held, pragma_table_info(held.name) "
        "AS info WHERE held.type = 'table' ORDER BY held.name, info.cid"
    ):
        found.setdefault(table, []).append(column)
    return found


def _register(connection: sqlite3.Connection, spec: TableSpec, now_ms: int) -> None:
    definition = repr((spec.key_types, spec.ttl_attribute))
    found = connection.execute(
        "SELECT definition, kept_since_ms FROM tables WHERE name = ?", (spec.name,)
    ).fetchone()
    if found is None:
        found = definition, 0
        connection.execute(
            "INSERT INTO tables (name, definition, created_ms) VALUES (?, ?, ?)",
            (spec.name, definition, now_ms),
        )
    if found[0] != definition:
        raise OtherFormError(
            f"the table {spec.name} exists with {found[0]}, it cannot become {definition}"
        )
    kept_since_ms = found[1]
    if not spec.point_in_time_recovery:
        kept_since_ms = NEVER_KEPT
    elif kept_since_ms == NEVER_KEPT:
        kept_since_ms = now_ms
    connection.execute(
        "UPDATE tables SET kept_since_ms = ? WHERE name = ?", (kept_since_ms, spec.name)
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
