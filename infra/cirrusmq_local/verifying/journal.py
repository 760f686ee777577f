"""The journal of faults: how each is undone is written down before it is made.

write the step, fsync ── make the fault ── undo it ── write that it is done
                       x a crash here leaves a step that `play` finds
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Step = dict[str, Any]
"""{"kind": …} and what the kind needs."""
Undo = Callable[[Step], None]


class Journal:
    """A file of steps, one a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def note(self, step: Step) -> int:
        """Write how a fault is undone, before it is made. Returns the number of the step."""
        with self._lock:
            number = len(read_steps(self.path)) if self.path.exists() else 0
            self._append({"number": number, "undo": step})
        return number

    def done(self, number: int) -> None:
        """Write that a step was undone."""
        with self._lock:
            self._append({"done": number})

    def _append(self, line: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def read_steps(path: Path) -> dict[int, Step | None]:
    """Number -> how it is undone; None if that was done. A torn last line was never made."""
    steps: dict[int, Step | None] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            held = json.loads(line)
        except ValueError:
            break
        if "undo" in held:
            steps[held["number"]] = held["undo"]
        else:
            steps[held["done"]] = None
    return steps


def play(path: Path, kinds: Mapping[str, Undo]) -> list[Step]:
    """Undo the steps that are left, the last first, and return them. Raises KeyError for a kind."""
    journal, undone = Journal(path), []
    for number, step in sorted(read_steps(path).items(), reverse=True):
        if step is not None:
            kinds[step["kind"]](step)
            journal.done(number)
            undone.append(step)
    return undone
