"""Writes of a run for which there is no room."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from cirrusmq_reports.files import LocalFiles
from cirrusmq_reports.publication import Outputs


class DiskFull:
    """Lets so many writes pass; the next finds no room, after it has begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 1_000_000
        write, rows = LocalFiles.write, Outputs.write

        def write_files(files: LocalFiles, contents: dict[str, bytes]) -> None:
            for path, content in contents.items():
                write(files, {path: content[: len(content) if self._room() else 3]})
                self._check(path)

        def write_rows(outputs: Outputs, *arguments: Any) -> Any:
            room = self._room()
            parts = rows(outputs, *arguments)
            if not room:
                self._check(outputs.folder)
            return parts

        monkeypatch.setattr(LocalFiles, "write", write_files)
        monkeypatch.setattr(Outputs, "write", write_rows)

    def _room(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def _check(self, path: str) -> None:
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device", path)
