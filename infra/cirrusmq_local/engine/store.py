"""The SQLite database behind the engine: who may write when, and who reads what."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from cirrusmq_local.engine.commits import CommitQueue, Entry
from cirrusmq_local.engine.errors import EngineError

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 30.0
PAGE_BYTES = 8192
CACHED_STATEMENTS = 256


@dataclass(slots=True)
class Transaction:
    """What a job writes with.

    `sequences` collects, by table, the last change that the job recorded.
    """

    connection: sqlite3.Connection
    now_ms: int
    sequences: dict[str, int] = field(default_factory=dict)


class Store:
    """One database: on disk with WAL and a full sync at every commit, or in memory.

    `on_commit` is told, after each commit, the last sequence of each table that changed.
    """

    def __init__(
        self,
        path: Path | None,
        now_ms: Callable[[], int],
        on_commit: Callable[[dict[str, int]], None],
    ) -> None:
        self._path = path
        self._now_ms = now_ms
        self._on_commit = on_commit
        self._writer = _connect(path)
        self._queue = CommitQueue(self._commit)
        # In memory there is one connection, so a reader has to wait for a writer.
        self._memory_lock = threading.Lock()
        self._idle_readers: deque[sqlite3.Connection] = deque()
        self._readers: list[sqlite3.Connection] = []

    def prepare(self, create: Callable[[sqlite3.Connection], None]) -> None:
        """Let `create` make the schema, before anything else is done."""
        create(self._writer)

    def write(self, job: Callable[[Transaction], T]) -> T:
        """Run the job inside a transaction, and give its result once that is durable.

        A job checks all that can fail (EngineError) before it writes anything, and may be run
        again: a commit that many share must not fail for one of them.
        """
        if self._path is not None:
            result: T = self._queue.submit(job)
            return result
        entry = Entry(job)
        with self._memory_lock:
            self._commit([entry])
        direct: T = entry.outcome()
        return direct

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees every answered write; for one statement, or with `snapshot`."""
        if self._path is None:
            with self._memory_lock:
                yield self._writer
            return
        try:
            connection = self._idle_readers.pop()
        except IndexError:
            connection = _connect(self._path)
            self._readers.append(connection)
        try:
            yield connection
        finally:
            self._idle_readers.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection on which all statements see the same moment."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close every connection; nothing may be under way."""
        for connection in (*self._readers, self._writer):
            connection.close()

    def _commit(self, entries: Sequence[Entry]) -> None:
        try:
            sequences = self._attempt(entries)
        except Exception as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            if len(entries) > 1:
                # One job broke the commit of all; alone, it breaks its own only.
                for entry in entries:
                    self._commit([entry])
                return
            entries[0].error = error
            return
        if sequences:
            self._on_commit(sequences)

    def _attempt(self, entries: Sequence[Entry]) -> dict[str, int]:
        sequences: dict[str, int] = {}
        self._writer.execute("BEGIN IMMEDIATE")
        for entry in entries:
            entry.result = entry.error = None
            transaction = Transaction(self._writer, self._now_ms())
            try:
                entry.result = entry.job(transaction)
            except EngineError as error:
                entry.error = error
            sequences.update(transaction.sequences)
        self._writer.execute("COMMIT")
        return sequences


def _connect(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path is None else path,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
    if path is None:
        return connection
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL syncs the log at each commit; on macOS only the second one reaches the disk itself.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    return connection
