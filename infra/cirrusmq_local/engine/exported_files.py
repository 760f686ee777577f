"""The files of an export: compressed lines of JSON, and the manifest that lists them."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import secrets
from base64 import b64encode
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

ITEMS_IN_A_FILE = 50_000

_encode = msgspec.json.Encoder().encode


class DataFiles:
    """Takes records and cuts them into files of at most ITEMS_IN_A_FILE each.

    `root` is the folder in place of the bucket, `folder` the folder of the files. An empty export
    has one file without lines, as Amazon's has for a partition without items.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.items_exported = 0
        self.bytes_exported = 0
        self._root = root
        self._folder = folder
        self._listed: list[dict[str, Any]] = []
        self._paths: list[Path] = []
        self._path: Path | None = None
        self._lines: gzip.GzipFile | None = None
        self._count = 0

    def __enter__(self) -> DataFiles:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish()

    def add(self, record: dict[str, Any], size: int) -> None:
        """Writes one record; `size` is its billed size in bytes."""
        if self._count == ITEMS_IN_A_FILE:
            self._finish()
            self._open()
        assert self._lines is not None
        self._lines.write(_encode(record) + b"\n")
        self._count += 1
        self.items_exported += 1
        self.bytes_exported += size

    def discard(self) -> None:
        """Removes every file after a failure."""
        if self._lines is not None:
            with contextlib.suppress(OSError):
                self._lines.close()
        for path in self._paths:
            path.unlink(missing_ok=True)

    def manifest(self) -> bytes:
        """Returns the manifest: one line of JSON for each file."""
        return b"".join(_encode(entry) + b"\n" for entry in self._listed)

    def _open(self) -> None:
        self._path = self._folder / f"{secrets.token_hex(13)}.json.gz"
        self._paths.append(self._path)
        # No time in the header: equal content makes an equal file.
        self._lines = gzip.GzipFile(self._path, "wb", compresslevel=6, mtime=0)
        self._count = 0

    def _finish(self) -> None:
        assert self._lines is not None
        assert self._path is not None
        self._lines.close()
        digest = hashlib.md5(self._path.read_bytes(), usedforsecurity=False)
        self._listed.append(
            {
                "itemCount": self._count,
                "md5Checksum": b64encode(digest.digest()).decode(),
                "etag": f"{digest.hexdigest()}-1",
                "dataFileS3Key": self._path.relative_to(self._root).as_posix(),
            }
        )


def write_with_checksum(path: Path, content: bytes) -> None:
    """Writes a manifest, and beside it the base64 text of its MD5 digest."""
    path.write_bytes(content)
    digest = hashlib.md5(content, usedforsecurity=False).digest()
    path.with_suffix(".md5").write_bytes(b64encode(digest))
