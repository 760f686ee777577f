"""The SQLite database behind the engine: one writer, and readers of snapshots."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from cirrusmq_local.engine.commits import CommitQueue, Entry
from cirrusmq_local.engine.errors import EngineError, StorageFailedError

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 10.0
"""Wait for a lock by another program; below the 30 s after which a call is given up."""
PAGE_BYTES = 8192
CACHED_STATEMENTS = 256
CHECKED_BYTES = 64 * 1_024 * 1_024
"""Maximum size of a file that is checked at the start; a larger one would take seconds."""


@dataclass(slots=True)
class Transaction:
    """The connection and the time of a job's writes.

    `sequences` collects, by table, the last change that the job recorded.
    """

    connection: sqlite3.Connection
    now_ms: int
    sequences: dict[str, int] = field(default_factory=dict)


class Store:
    """One database: on disk with WAL and a full sync at every commit, or in memory.

    `on_commit` gets, after each commit, the last sequence of each changed table; `on_failure` gets
    the error each time that the file cannot be read or written.
    """

    def __init__(
        self,
        path: Path | None,
        now_ms: Callable[[], int],
        on_commit: Callable[[dict[str, int]], None],
        on_failure: Callable[[sqlite3.Error], None] = lambda error: None,
    ) -> None:
        self._path = path
        self._now_ms = now_ms
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._writer = _connect(path, create=True)
        if path is None:
            # Closed with its last user: Python 3.13 warns of a connection that nobody closed.
            weakref.finalize(self, self._writer.close)
        self._broken = False
        """True if a rollback failed: then the transaction ends with the connection."""
        self._marked = False
        self._queue = CommitQueue(self._commit)
        # In memory there is one connection, so a reader has to wait for a writer.
        self._memory_lock = threading.Lock()
        self._idle_readers: deque[sqlite3.Connection] = deque()
        self._readers: list[sqlite3.Connection] = []

    def prepare(self, create: Callable[[sqlite3.Connection], None]) -> None:
        """Lets `create` make the schema, before any other call. Closes the store if that fails."""
        try:
            check_file(self._writer)
            create(self._writer)
        except BaseException:
            self.close()
            raise

    def copy_to(self, connection: sqlite3.Connection) -> None:
        """Copies this database to another one, which is empty."""
        with self.reading() as source:
            if source.in_transaction:  # behind a mark, which a backup waits for
                connection.deserialize(source.serialize())
            else:
                source.backup(connection)

    def mark(self, number: int) -> None:
        """Makes a mark in memory, to which `go_back` returns; numbers grow.

        From the first mark on all that is written is one open transaction.
        """
        self._marked = True
        self._writer.execute(f"SAVEPOINT mark_{number}")

    def go_back(self, number: int) -> None:
        """Takes back all that was written since a mark, and the marks behind it."""
        self._writer.execute(f"ROLLBACK TO mark_{number}")

    def write(self, job: Callable[[Transaction], T]) -> T:
        """Runs the job inside a transaction. Returns its result when the commit is durable.

        A job must do all checks (EngineError) before its first write, and may be run again: a
        commit that many jobs share must not fail because of one.
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
        """Yields a connection that sees every answered write; for one statement."""
        if self._path is None:
            with self._memory_lock:
                yield self._writer
            return
        with self._telling_failures():
            try:
                connection = self._idle_readers.pop()
            except IndexError:
                connection = _connect(self._path)
                self._readers.append(connection)
            try:
                yield connection
            except sqlite3.Error:
                # No other reader may get its open transaction: a snapshot of an earlier moment.
                self._readers.remove(connection)
                connection.close()
                raise
            except BaseException:
                self._idle_readers.append(connection)
                raise
            self._idle_readers.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Yields a connection on which all statements see the same moment."""
        with self.reading() as connection:
            if self._marked:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Closes every connection. No call may be under way."""
        for connection in (*self._readers, self._writer):
            connection.close()

    def _commit(self, entries: Sequence[Entry]) -> None:
        try:
            sequences = self._attempt(entries)
        except Exception as failure:
            error = self._told(failure)
            self._roll_back()
            if len(entries) > 1:
                # One job broke the shared commit; alone, it breaks only its own.
                for entry in entries:
                    self._commit([entry])
                return
            entries[0].error = error
            return
        if sequences:
            self._on_commit(sequences)

    def _roll_back(self) -> None:
        """Rolls back an open transaction: the next writer begins its own."""
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error:
            self._broken = True

    @contextmanager
    def _telling_failures(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            told = self._told(error)
            if told is error:
                raise
            raise told from error

    def _told(self, error: Exception) -> Exception:
        """Returns StorageFailedError for SQLite's error about its file, else the error itself."""
        if not isinstance(error, sqlite3.Error) or not is_of_the_file(error):
            return error
        self._on_failure(error)
        told = StorageFailedError(error)
        told.__cause__ = error
        return told

    def _attempt(self, entries: Sequence[Entry]) -> dict[str, int]:
        sequences: dict[str, int] = {}
        if self._broken:
            self._writer.close()
            self._writer = _connect(self._path)
            self._broken = False
        if not self._marked:
            self._writer.execute("BEGIN IMMEDIATE")
        for entry in entries:
            entry.result = entry.error = None
            transaction = Transaction(self._writer, self._now_ms())
            try:
                entry.result = entry.job(transaction)
            except EngineError as error:
                entry.error = error
            sequences.update(transaction.sequences)
        if not self._marked:
            self._writer.execute("COMMIT")
        return sequences


def check_file(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError if a quick check finds damage in the file."""
    pages, size = (
        connection.execute(f"PRAGMA {of}").fetchone()[0] for of in ("page_count", "page_size")
    )
    if pages * size > CHECKED_BYTES:
        return
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        error = sqlite3.DatabaseError(found.splitlines()[-1])
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


_FILE_CODES = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
}


def code_of(error: Exception) -> int:
    """Returns SQLite's primary result code, or 0 if the error has none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_of_the_file(error: sqlite3.Error) -> bool:
    """Returns True if the error is about the file or its disk, not about the statement."""
    return code_of(error) in _FILE_CODES


def _connect(path: Path | None, *, create: bool = False) -> sqlite3.Connection:
    # A file that is gone must not be created again under a running service.
    mode = "rwc" if create else "rw"
    connection = sqlite3.connect(
        ":memory:" if path is None else f"file://{quote(bytes(path.absolute()))}?mode={mode}",
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
        uri=path is not None,
    )
    if path is None:
        return connection
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL syncs the log at each commit; on macOS only the second one reaches the disk itself.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
