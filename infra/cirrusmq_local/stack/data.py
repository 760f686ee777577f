"""The folder with all data of a stack, for one stack at a time, and its clients' connection."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cirrusmq_local.engine.data_errors import DataError, DataInUseError, naming

CONNECTION_FIELDS = ("url", "account", "access_key_id", "secret")
SIGNING_FIELDS = ("access_key_id", "secret")


class DataFolder:
    """Paths inside `--data`, and the lock on it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.store = self.path / "store.sqlite"
        self.clock = self.path / "clock.json"
        self.connection = self.path / "connection.json"
        self.secret = self.path / "secret.json"
        self.sealing = self.path / "sealing.key"
        """Encrypts the secrets of signing keys."""
        self.exports = self.path / "exports"
        self.reports = self.path / "reports"
        self.log = self.path / "functions.log"
        self.executions = self.path / "executions.log"
        self.unprocessed = self.path / "unprocessed.jsonl"
        self.bodies = self.path / "bodies"
        """A file for each object that holds the messages of a large send."""
        self._lock: int | None = None

    def lock(self) -> None:
        """Makes the folder and locks it. Raises DataInUseError if another stack has it.

        The lock is the system's: it ends with the process, also when that is killed.
        """
        path = self.path / "lock"
        # Secrets and messages are in it: they are for the owner alone.
        with naming(self.path):
            try:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            except FileExistsError:
                self.path.stat()  # says more of a symbolic link that leads nowhere
                raise
        with naming(path), contextlib.ExitStack() as opened:
            known = path.exists()
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            opened.callback(os.close, held)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(held, 20).decode(errors="replace").strip() or "unknown"
                raise DataInUseError(
                    f"{self.path} is in use by process {owner}: end it, or take another --data"
                ) from None
            os.ftruncate(held, 0)
            os.write(held, str(os.getpid()).encode())
            self._lock = held
            opened.pop_all()
        # A folder that holds files of something else is not ours to close; nor another owner's.
        if known or [each.name for each in self.path.iterdir()] == [path.name]:
            with contextlib.suppress(OSError):
                self.path.chmod(0o700)

    def unlock(self) -> None:
        """Releases the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def check_store(self) -> None:
        """Opens the store's files before SQLite does, for clearer errors; only we may read them.

        SQLite gives the files that it makes beside the store the same mode.
        """
        for ending in ("", "-wal", "-shm"):
            path = self.store.with_name(self.store.name + ending)
            make = 0 if ending else os.O_CREAT
            with naming(path), contextlib.suppress(FileNotFoundError):
                opened = os.open(path, os.O_RDWR | os.O_CLOEXEC | make, 0o600)
                try:
                    os.fchmod(opened, 0o600)
                finally:
                    os.close(opened)

    def damage(self, *, now: bool) -> str | None:
        """Returns what part of the store was lost and what to do, or None if no loss is known.

        A loss at an earlier start is reported until the copy of its log leaves the folder. `now`:
        True if this start lost something, of which there may be no copy.
        """
        name = f"{self.store.name}-wal"
        copies = sorted(each.name for each in self.path.glob(f"{name}.damaged-*"))
        if not copies and not now:
            return None
        lost = f"{name} was damaged: what its last frames held was answered as stored, and is lost"
        if not copies:
            return f"{lost}; there is no copy of it. This is told until the next start."
        return (
            f"{lost}. For a rescue the data folder has {', '.join(copies)}: move it away when that"
            " is dealt with."
        )

    def missing(self) -> Path | None:
        """Returns a part of the locked folder that is gone or was replaced, or None."""
        assert self._lock is not None
        lock = self.path / "lock"
        try:
            if not os.path.samestat(os.fstat(self._lock), lock.stat()):
                return lock
        except OSError:
            return lock
        return next((path for path in (self.store, self.bodies) if not path.exists()), None)

    def read_connection(self) -> dict[str, Any] | None:
        """Returns the content of `connection.json`, or None if the file does not exist yet."""
        return read_connection(self.connection)

    def write_connection(self, connection: Mapping[str, Any]) -> None:
        """Writes `connection.json`, whole or not at all, readable by its owner alone."""
        write_private(self.connection, json.dumps(connection, indent=2) + "\n")


def owner(path: Path) -> int | None:
    """Returns the id of the process whose stack has a data folder, or None if it is free."""
    try:
        held = os.open(path / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        written = os.read(held, 20).decode(errors="replace").strip()
        return int(written) if written.isdigit() else None
    finally:
        os.close(held)
    return None


def read_connection(path: Path) -> dict[str, Any] | None:
    """Returns the connection in a file, or None if the file does not exist.

    It may have a `dialect_url`, and a `signing_key` with its id and secret. Raises DataError if
    the file does not hold a connection.
    """
    with naming(path):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
    try:
        held = json.loads(text)
        found = {name: held[name] for name in CONNECTION_FIELDS}
        texts = list(found.values())
        if "signing_key" in held:
            found["signing_key"] = {name: held["signing_key"][name] for name in SIGNING_FIELDS}
            texts += found["signing_key"].values()
        if "dialect_url" in held:
            found["dialect_url"] = held["dialect_url"]
            texts.append(held["dialect_url"])
    except (ValueError, RecursionError, TypeError, KeyError):
        found, texts = {}, []
    if not found or not all(isinstance(value, str) for value in texts):
        raise DataError(
            f"{path} is damaged, or of another version: remove it, and the start writes a new one"
        )
    return found


def write_private(path: Path, text: str) -> None:
    """Replaces a file by one that only its owner may read. Raises DataError if that fails."""
    with naming(path):
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    with contextlib.suppress(FileNotFoundError):
        beside.unlink()
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
