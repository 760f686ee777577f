"""How far a member of a broadcasting group is: kept by the member itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Progress(Protocol):
    """Keeps the cursor behind the last messages that were handled."""

    def load(self) -> str | None:
        """The cursor; None where there is none: the member starts at the latest message."""
        ...

    def save(self, cursor: str) -> None:
        """Everything before the cursor is handled."""
        ...


@dataclass(frozen=True)
class FileProgress:
    """Progress in a file, replaced whole so that a crash leaves the old or the new one."""

    path: Path | str

    def load(self) -> str | None:
        """The cursor in the file; None where there is none."""
        try:
            return Path(self.path).read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None

    def save(self, cursor: str) -> None:
        """Replace the file."""
        path = Path(self.path)
        beside = path.with_name(path.name + ".new")
        with beside.open("w", encoding="ascii") as file:
            file.write(cursor + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)


@dataclass(frozen=True)
class CallbackProgress:
    """Progress wherever two functions keep it."""

    load: Callable[[], str | None]
    save: Callable[[str], None]


class NoProgress:
    """Every start is at the latest message."""

    def load(self) -> None:
        """Nothing."""

    def save(self, cursor: str) -> None:
        """Nowhere."""
