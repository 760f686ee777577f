"""The progress of a member of a broadcasting group, kept by the member."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Progress(Protocol):
    """A store of the cursor behind the last handled messages."""

    def load(self) -> str | None:
        """Returns the cursor, or None if there is none: then the member starts at the latest."""
        ...

    def save(self, cursor: str) -> None:
        """Saves the cursor: all messages before it are handled."""
        ...


@dataclass(frozen=True)
class FileProgress:
    """Progress in a file, replaced whole, so that a crash leaves the old or the new one."""

    path: Path | str

    def load(self) -> str | None:
        """Returns the cursor in the file, or None if the file is missing or empty."""
        try:
            return Path(self.path).read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None

    def save(self, cursor: str) -> None:
        """Replaces the file."""
        path = Path(self.path)
        beside = path.with_name(path.name + ".new")
        with beside.open("w", encoding="ascii") as file:
            file.write(cursor + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)


@dataclass(frozen=True)
class CallbackProgress:
    """Progress kept by two functions of yours."""

    load: Callable[[], str | None]
    save: Callable[[str], None]


class NoProgress:
    """No progress: every start is at the latest message."""

    def load(self) -> None:
        """Returns None."""

    def save(self, cursor: str) -> None:
        """Does nothing."""
