"""The embedded DynamoDB: one class for all of its functions."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cirrusmq_local.engine.batches as batches
import cirrusmq_local.engine.changes as changes
import cirrusmq_local.engine.expiry as expiry
import cirrusmq_local.engine.queries as queries
import cirrusmq_local.engine.single as single
import cirrusmq_local.engine.transactions as transactions
from cirrusmq_local.engine.capacity import Meter
from cirrusmq_local.engine.changes import StreamClock, StreamRecord
from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.description import describe_table
from cirrusmq_local.engine.errors import UnsupportedError
from cirrusmq_local.engine.export import export_table
from cirrusmq_local.engine.schema import Table, create_tables, read_folder_id
from cirrusmq_local.engine.store import Store
from cirrusmq_local.engine.tables import TableSpec
from cirrusmq_local.engine.wal import find_damage, keep_aside

_OPERATIONS: Mapping[str, Callable[[Core, Mapping[str, Any]], dict[str, Any]]] = {
    "GetItem": single.get_item,
    "PutItem": single.put_item,
    "UpdateItem": single.update_item,
    "DeleteItem": single.delete_item,
    "Query": queries.query,
    "Scan": queries.scan,
    "BatchGetItem": batches.batch_get_item,
    "BatchWriteItem": batches.batch_write_item,
    "TransactGetItems": transactions.transact_get_items,
    "TransactWriteItems": transactions.transact_write_items,
    "DescribeTable": describe_table,
}


def _check_log(log: Path, now_ms: int, tell: Callable[[str], None]) -> None:
    damage = find_damage(log)
    if damage is None:
        return
    try:
        kept = f"a copy of it is kept as {keep_aside(log, now_ms)}"
    except OSError as error:
        kept = f"no copy of it could be kept ({error.strerror})"
    tell(
        f"{log} is damaged at frame {damage.frame}: what its last {damage.lost_frames} frames hold"
        f" was stored and is lost now; {kept}"
    )


class Engine:
    """DynamoDB's operations on tables in one SQLite file, or in memory when `path` is None.

    Usable from any number of threads; one process at a time may have a file open. `now_ms` is
    the only clock, and must never decrease: expiry, tokens, streams and exports use it.

    `on_failure` gets SQLite's error if the file fails later; the failed calls raise
    StorageFailedError.
    """

    def __init__(
        self,
        path: Path | None,
        tables: Sequence[TableSpec],
        *,
        now_ms: Callable[[], int],
        on_failure: Callable[[sqlite3.Error], None] = lambda error: None,
        on_damage: Callable[[str], None] = lambda sentence: None,
        like: Engine | None = None,
    ) -> None:
        """`on_damage` gets a sentence if SQLite will drop a part of a damaged log.

        `like`: an engine of the same tables with whose content this one, in memory, begins.

        Raises sqlite3.Error if the file cannot be opened, OtherFormError if it has a table with
        other columns, other keys or another TTL attribute.
        """
        if path is not None:
            _check_log(path.with_name(f"{path.name}-wal"), now_ms(), on_damage)
        self._streams = StreamClock(keep_ends=path is None)
        by_name = {spec.name: Table(spec) for spec in tables}
        store = Store(path, now_ms, self._streams.advance, on_failure)
        # In memory nothing outlives the engine, and a test's events are the same in each run.
        new_id = "" if path is None else secrets.token_hex(16)

        def create(connection: sqlite3.Connection) -> None:
            if like is None:
                create_tables(connection, list(by_name.values()), now_ms(), new_id)
            else:
                like._core.store.copy_to(connection)

        store.prepare(create)
        with store.reading() as connection:
            folder_id = read_folder_id(connection)
        self._core = Core(store, by_name, Meter(), folder_id)
        newest = {name: changes.newest_sequence(self._core, each) for name, each in by_name.items()}
        self._streams.advance(newest)
        ends = {} if like is None else like._streams.ends
        self._streams.ends = {name: [*each] for name, each in ends.items()}

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does one operation. Request and answer are in DynamoDB's wire shapes, binary as bytes.

        Raises EngineError.
        """
        run = _OPERATIONS.get(operation)
        if run is None:
            raise UnsupportedError(f"the operation {operation}")
        return run(self._core, request)

    def newest_write_ms(self) -> int:
        """Returns the time of the last kept write, or 0 if there is none."""
        return changes.newest_write_ms(self._core)

    def capacity(self) -> dict[str, Any]:
        """Returns consumed units: `write_units`, `read_units`, `by_operation` and `by_table`.

        The latter two map a name to its own `write_units` and `read_units`.
        """
        return self._core.meter.totals()

    def reset_capacity(self) -> None:
        """Sets the counts of units to zero."""
        self._core.meter.reset()

    def read_stream(self, table: str, after: int, limit: int) -> list[StreamRecord]:
        """Returns the first `limit` changes of a table's stream behind the sequence `after`."""
        return changes.read_stream(self._core, self._streamed(table), after, limit)

    def stream_position(self, table: str) -> int:
        """Returns the sequence of the newest change, or 0 if there is none."""
        return self._streams.newest(self._streamed(table).spec.name)

    def wait_for_stream(self, table: str, after: int, timeout_seconds: float) -> bool:
        """Waits for a change behind `after`. Returns False if none came in time."""
        return self._streams.wait(self._streamed(table).spec.name, after, timeout_seconds)

    def trim_stream(self, table: str, up_to: int) -> None:
        """Trims the changes up to and including a sequence: no reader will ask for them again."""
        changes.trim_stream(self._core, self._streamed(table), up_to)

    def save_position(self, reader: str, position: int) -> None:
        """Stores a reader's position durably."""
        changes.save_position(self._core, reader, position)

    def load_position(self, reader: str) -> int:
        """Returns a reader's position, or 0 if none is stored."""
        return changes.load_position(self._core, reader)

    def remove_expired(self, limit: int = 1000) -> int:
        """Removes items whose TTL attribute is before now. Returns their number."""
        return expiry.remove_expired(self._core, limit)

    def export(self, table: str, folder: Path, *, since_ms: int | None = None) -> Path:
        """Exports a table to a folder in Amazon's layout. Returns the export's own folder.

        Exports all items, or with `since_ms` the changes from then (inclusive) to now (exclusive).
        Raises EngineError if the changes of that window are not kept.
        """
        return export_table(self._core, self._core.table(table), folder, since_ms=since_ms)

    def mark(self, number: int) -> Mapping[str, int]:
        """Makes a mark of an engine in memory; each one's number is above those before it.

        Returns the positions of its streams, which `go_back` needs.
        """
        self._core.store.mark(number)
        return self._streams.all()

    def go_back(self, number: int, positions: Mapping[str, int]) -> None:
        """Takes back all that was written since a mark. Consumed units stay counted."""
        self._core.store.go_back(number)
        self._streams.go_back(positions)

    def commit_ends(self, table: str) -> list[int]:
        """Returns the sequence of the last change of each commit, of an engine in memory.

        A stream does not show which of its changes were made together.
        """
        return [*self._streams.ends.get(table, ())]

    def contents(self) -> tuple[tuple[Any, ...], ...]:
        """Returns the items of all tables as they are stored, in the order of names and keys."""
        with self._core.store.reading() as connection:
            return tuple(
                row
                for _, table in sorted(self._core.tables.items())
                for row in connection.execute(f"SELECT pk, sk, item FROM {table.items}")
            )

    def close(self) -> None:
        """Closes the file. No call may be under way or follow."""
        self._core.store.close()

    def _streamed(self, name: str) -> Table:
        table = self._core.table(name)
        if not table.spec.stream:
            raise UnsupportedError(f"a stream of {name}, which was opened without one")
        return table
