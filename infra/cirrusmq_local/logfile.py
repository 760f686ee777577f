"""Where the functions' output goes on one machine: a file that does not grow for ever."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

FILE_BYTES = 16 * 1_024 * 1_024


class LogFile(io.TextIOBase):
    """A text stream into a file; a full one is kept as `<name>.1`, the one before is dropped."""

    def __init__(self, path: Path, limit: int = FILE_BYTES) -> None:
        self._path = path
        self._limit = limit
        self._lock = threading.Lock()
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def writable(self) -> bool:
        """True: it is for writing."""
        return True

    def write(self, text: str) -> int:
        """Append a text. Its lines are not cut by those of other threads."""
        data = text.encode(errors="replace")
        with self._lock:
            if self._file.closed:
                return len(text)
            if self._size + len(data) > self._limit and self._size:
                self._file.close()
                os.replace(self._path, self._path.with_name(self._path.name + ".1"))
                self._file = self._path.open("ab", buffering=0)
                self._size = 0
            self._file.write(data)
            self._size += len(data)
        return len(text)

    def close(self) -> None:
        """Close the file; what is written later goes nowhere."""
        with self._lock:
            self._file.close()
