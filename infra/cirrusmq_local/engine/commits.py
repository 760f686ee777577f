"""Group commit: writers that wait at the same time share one commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any


class Entry:
    """A write that waits for its commit: a job, and later its result or its error."""

    __slots__ = ("done", "error", "job", "result", "wake")

    def __init__(self, job: Callable[[Any], Any]) -> None:
        self.job = job
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        # Held until a leader has done this entry, or has appointed its thread as the next leader.
        self.wake = threading.Lock()
        self.wake.acquire()

    def outcome(self) -> Any:
        """The job's result; raises what the job raised."""
        if self.error is not None:
            raise self.error
        return self.result


class CommitQueue:
    """Lets one waiting thread at a time, the leader, commit for all that wait.

    ::

        A |-- leads: commits A -----|
        B      |-- waits -----------|-- leads: commits B and C --|
        C         |-- waits ------------------------------------|-- answered

    There is no thread of its own, so a lone writer commits at once, without a change of threads.
    """

    def __init__(self, commit: Callable[[Sequence[Entry]], None]) -> None:
        """`commit` does the jobs of all the entries given, durably; it never raises."""
        self._commit = commit
        self._mutex = threading.Lock()
        self._waiting: list[Entry] = []
        self._led = False

    def submit(self, job: Callable[[Any], Any]) -> Any:
        """Do the job in the next commit, and give its result once that is durable."""
        entry = Entry(job)
        with self._mutex:
            self._waiting.append(entry)
            leads, self._led = not self._led, True
        if not leads:
            entry.wake.acquire()
        if not entry.done:
            self._lead()
        return entry.outcome()

    def _lead(self) -> None:
        with self._mutex:
            batch, self._waiting = self._waiting, []
        self._commit(batch)
        with self._mutex:
            successor = self._waiting[0] if self._waiting else None
            self._led = successor is not None
        for entry in batch:
            entry.done = True
            entry.wake.release()
        if successor is not None:
            successor.wake.release()
