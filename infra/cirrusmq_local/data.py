"""The folder that keeps all of a stack: one stack at a time, and the connection for its clients."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

CONNECTION_FIELDS = ("url", "account", "access_key_id", "secret")


class DataInUseError(Exception):
    """Another stack runs on the same data."""


class DataFolder:
    """Paths inside `--data`, and the lock on it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.store = self.path / "store.sqlite"
        self.clock = self.path / "clock.json"
        self.connection = self.path / "connection.json"
        self.exports = self.path / "exports"
        self.reports = self.path / "reports"
        self.log = self.path / "functions.log"
        self.executions = self.path / "executions.log"
        self.parked = self.path / "unprocessed.jsonl"
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """Make the folder and take it, or raise DataInUseError.

        The lock is the system's and ends with the process, however that ends.
        """
        # Secrets and messages lie in it: they are for the owner alone.
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = (self.path / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.seek(0)
            owner = held.read().strip() or "unknown"
            held.close()
            raise DataInUseError(
                f"{self.path} is in use by process {owner}: end it, or take another --data"
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        self._lock = held

    def unlock(self) -> None:
        """Give the folder free."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def read_connection(self) -> dict[str, str] | None:
        """What `connection.json` holds, or None if there is none yet."""
        return read_connection(self.connection)

    def write_connection(self, connection: dict[str, str]) -> None:
        """Write `connection.json`, whole or not at all, for its owner's eyes alone."""
        write_private(self.connection, json.dumps(connection, indent=2) + "\n")

    def park(self, what: dict[str, Any]) -> None:
        """Note what could not be processed, one JSON object a line."""
        with self.parked.open("a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")


def read_connection(path: Path) -> dict[str, str] | None:
    """The connection in a file, or None where there is no such file.

    Raises ValueError where it does not hold one.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not isinstance(held, dict) or not all(
        isinstance(held.get(name), str) for name in CONNECTION_FIELDS
    ):
        raise ValueError(f"{path} does not hold a connection")
    return {name: held[name] for name in CONNECTION_FIELDS}


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner reads."""
    beside = path.with_name(path.name + ".new")
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
