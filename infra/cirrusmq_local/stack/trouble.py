"""The reason why the data folder cannot be written, reported once, never in a log inside it."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from cirrusmq_local.engine.store import code_of

QUIET_SECONDS = 5.0
PROBE_BYTES = 1_048_576


class Trouble:
    """The folder's state: writable, or the reason why it is not.

    From the first failure on there is a reason. It ends when no write has failed for some seconds
    and a file of 1 MiB could be written: on an almost full disk small writes succeed.
    """

    def __init__(
        self,
        folder: Path,
        tell: Callable[[str], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tell` gets one sentence when trouble begins, and one when it is over."""
        self._folder = folder
        self._tell = tell
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._failed_at = 0.0
        self._for_good = False

    @property
    def reason(self) -> str | None:
        """The reason why calls fail, as in their answers, or None if there is no trouble."""
        return self._reason

    def note(self, error: OSError) -> None:
        """Notes a failed write."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            self.begin("its disk is full", "it goes on when there is space")
        else:
            self.begin(f"it cannot be written ({error.strerror})", "it goes on when it can")

    def note_store(self, name: str, error: sqlite3.Error) -> None:
        """Notes an error of SQLite about its file `name`."""
        match code_of(error):
            case sqlite3.SQLITE_FULL:
                self.note(OSError(errno.ENOSPC, ""))
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                outlook = "end the service, and put a copy of the folder in its place"
                self.begin(f"{name} is damaged ({error})", outlook, for_good=True)
            case _:
                self.begin(f"{name} failed ({error})", "it goes on when it can")

    def begin(self, reason: str, outlook: str, *, for_good: bool = False) -> None:
        """Reports a trouble: its reason, and the outlook or the remedy.

        `for_good`: the trouble does not end while the service runs.
        """
        with self._lock:
            told = self._reason is not None and (self._for_good or not for_good)
            self._failed_at = self._monotonic()
            if told:
                return
            self._reason = f"The service's data cannot be stored: {reason}; {outlook}."
            self._for_good = for_good
        self._tell(f"{self._folder}: {reason}: calls are answered with 503; {outlook}")

    def look(self) -> None:
        """Ends the trouble if it is over. Upkeep calls this again and again."""
        if self._reason is None or self._for_good:
            return
        if self._monotonic() - self._failed_at < QUIET_SECONDS or not self._is_writable():
            return
        with self._lock:
            self._reason = None
        self._tell(f"{self._folder}: it can be written again")

    def _is_writable(self) -> bool:
        try:
            # A file without a name, or one that is removed at once.
            with tempfile.TemporaryFile(dir=self._folder) as probe:
                probe.write(bytes(PROBE_BYTES))
                probe.flush()
                os.fsync(probe.fileno())
        except OSError:
            return False
        return True
