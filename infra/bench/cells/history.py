"""The notes of producers and workers, and the judgement of them.

A message's key is the first word of its body. Its line of events, for one that needs two attempts:

    asked ── sent ── started ── failed ── started ── done        doubled: done twice
    asked ── refused ── asked ── sent ...                        lost: sent, and never done
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ASKED, SENT, REFUSED = "asked", "sent", "refused"
STARTED, FAILED, DONE = "started", "failed", "done"


@dataclass(frozen=True, order=True)
class Event:
    """One line of a process."""

    at: float
    """Seconds of the machine's clock."""
    kind: str
    key: str
    process: str = ""


class Notes:
    """A process's file of events."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def note(self, kind: str, key: str) -> None:
        """Appends one line by one write, which SIGKILL does not cut."""
        os.write(self._file, f"{time.time():.6f} {kind} {key}\n".encode())


def read(folder: Path) -> list[Event]:
    """Returns the events of all processes in a folder, in their order in time."""
    events = []
    for path in folder.glob("*.notes"):
        for line in path.read_text().splitlines():
            at, kind, key = line.split(" ")
            events.append(Event(float(at), kind, key, path.stem))
    return sorted(events)


@dataclass(frozen=True)
class Verdict:
    """The fate of the messages of one cell."""

    sent: int
    """Messages whose send was answered."""
    lost: frozenset[str]
    """Answered sends that no worker completed."""
    doubled: frozenset[str]
    """Messages that workers completed more than once."""
    unknown: frozenset[str]
    """Completed messages that nobody sent: always empty, or the cell itself is wrong."""
    last_done: float | None
    """Time of the last first completion."""


def judge(events: Iterable[Event]) -> Verdict:
    """Judges the history of a cell that ended."""
    asked, sent = set(), set()
    done: Counter[str] = Counter()
    first_done: dict[str, float] = {}
    for event in sorted(events):
        if event.kind == ASKED:
            asked.add(event.key)
        elif event.kind == SENT:
            sent.add(event.key)
        elif event.kind == DONE:
            done[event.key] += 1
            first_done.setdefault(event.key, event.at)
    return Verdict(
        sent=len(sent),
        lost=frozenset(sent - done.keys()),
        doubled=frozenset(key for key, times in done.items() if times > 1),
        unknown=frozenset(done.keys() - asked),
        last_done=max(first_done.values(), default=None),
    )


def open_calls(events: Iterable[Event]) -> dict[str, float]:
    """Returns the producers that wait for an answer -> the time since which they do."""
    waiting: dict[str, float] = {}
    for event in sorted(events):
        if event.kind == ASKED:
            waiting[event.process] = event.at
        elif event.kind in (SENT, REFUSED):
            waiting.pop(event.process, None)
    return waiting


def delays(events: Iterable[Event], keys: Iterable[str]) -> list[float]:
    """Returns the seconds from the first asking to the first start, of each key with both."""
    firsts: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for event in sorted(events):
        firsts[event.key].setdefault(event.kind, event.at)
    met = (firsts[key] for key in keys if key in firsts)
    return sorted(each[STARTED] - each[ASKED] for each in met if {ASKED, STARTED} <= each.keys())


def retry_wait(events: Iterable[Event]) -> float | None:
    """Returns the median seconds from a failure to the message's next start, or None."""
    failed: dict[str, float] = {}
    waits = []
    for event in sorted(events):
        if event.kind == FAILED:
            failed[event.key] = event.at
        elif event.kind == STARTED and event.key in failed:
            waits.append(event.at - failed.pop(event.key))
    return median(waits) if waits else None


def rate(events: Iterable[Event], keys: set[str]) -> float:
    """Returns messages per second, from the first start of these keys to their last completion."""
    of_keys = [event for event in events if event.key in keys]
    began = min(event.at for event in of_keys if event.kind == STARTED)
    ended = max(event.at for event in of_keys if event.kind == DONE)
    return len(keys) / max(ended - began, 0.001)
