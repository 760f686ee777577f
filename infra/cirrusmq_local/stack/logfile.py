"""The log file of the functions' output on one machine, of a bounded size."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path

FILE_BYTES = 16 * 1_024 * 1_024


class LogFile(io.TextIOBase):
    """A text stream into a file; a full one is kept as `<name>.1`, the one before is dropped.

    Text that cannot be written is dropped, and `failed` gets the error: no call fails for its log.
    """

    def __init__(
        self,
        path: Path,
        limit: int = FILE_BYTES,
        *,
        failed: Callable[[OSError], None] = lambda error: None,
    ) -> None:
        self._path = path
        self._limit = limit
        self._failed = failed
        self._lock = threading.Lock()
        self._torn = False
        self._closed = False
        # Before the file is opened: one that could not be is closed all the same, at its end.
        self._file: io.FileIO | None = None
        self._file = _open(path)
        self._size = self._file.tell()

    def writable(self) -> bool:
        """True: it is for writing."""
        return True

    def write(self, text: str) -> int:
        """Appends a text. Lines of other threads do not cut its lines."""
        data = text.encode(errors="replace")
        with self._lock:
            if self._closed:
                return len(text)
            try:
                self._append(data)
            except OSError as error:
                self._torn = True
                self._failed(error)
        return len(text)

    def close(self) -> None:
        """Closes the file; later output is dropped."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.close()

    def _append(self, data: bytes) -> None:
        if self._file is not None and self._size + len(data) > self._limit and self._size:
            full, self._file = self._file, None
            full.close()
            os.replace(self._path, self._path.with_name(self._path.name + ".1"))
        if self._file is None:
            self._file = _open(self._path)
            self._size = self._file.tell()
        # After a failure part of a line may be there.
        left = b"\n" + data if self._torn else data
        while left:
            written = self._file.write(left) or 0
            self._size += written
            left = left[written:]
        self._torn = False


def _open(path: Path) -> io.FileIO:
    """Names of accounts and queues are in it: it is for its owner alone."""
    return io.FileIO(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))
