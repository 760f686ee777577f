"""An output folder on one machine: swaps under a lock, and whole files by rename."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cirrusmq_reports.files import LocalFiles
from cirrusmq_reports.swap import digest_of


class LocalPlace:
    """The files below a folder; `put` is only called under `locked`."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._files = LocalFiles()

    @contextmanager
    def locked(self, report: str) -> Iterator[None]:
        """Keeps other runs of the report from a swap; the lock ends with the process."""
        lock = self._folder / "current" / f"{report}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Returns a file and its digest, or None if it is missing."""
        try:
            content = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        return content, digest_of(content)

    def put(self, name: str, content: bytes, version: str | None) -> bool:
        """Writes a file whole if its version is still this one; None: if it is missing."""
        path = self._folder / name
        found = self.read(name)
        if (found[1] if found else None) != version:
            return False
        if version is not None:
            self._files.replace(str(path), content)
            return True
        making = path.with_name(f"{path.name}.{uuid.uuid4().hex}.making")
        try:
            self._files.write({str(making): content})
            os.link(making, path)
        except FileExistsError:
            return False
        finally:
            making.unlink(missing_ok=True)
        return True
