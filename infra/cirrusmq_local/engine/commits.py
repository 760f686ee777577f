"""Group commit: writers that wait at the same time share one commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from cirrusmq_local.hub import current


class Entry:
    """A write that waits for its commit: its job, then its result or error."""

    __slots__ = ("done", "error", "job", "result", "wake")

    def __init__(self, job: Callable[[Any], Any]) -> None:
        self.job = job
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        # Held until a leader has committed this entry, or has made its thread the next leader.
        self.wake = threading.Lock()
        self.wake.acquire()

    def outcome(self) -> Any:
        """Returns the job's result, or raises its error."""
        if self.error is not None:
            raise self.error
        return self.result


class CommitQueue:
    """Lets one waiting thread at a time, the leader, commit for all waiting writers.

    ::

        A |-- leads: commits A -----|
        B      |-- waits -----------|-- leads: commits B and C --|
        C         |-- waits ------------------------------------|-- answered

    There is no commit thread: a single writer commits at once, without a thread switch. Greenlets
    of one thread that wait in the same turn of the event loop count as one writer.
    """

    def __init__(self, commit: Callable[[Sequence[Entry]], None]) -> None:
        """`commit` does the jobs of all its entries durably; it never raises."""
        self._commit = commit
        self._mutex = threading.Lock()
        self._waiting: list[Entry] = []
        self._led = False

    def submit(self, job: Callable[[Any], Any]) -> Any:
        """Does the job in the next commit. Returns its result when the commit is durable."""
        entry = Entry(job)
        hub = current()
        if hub is None:
            self._submit([entry])
        else:
            hub.gather(self._submit, entry)
        return entry.outcome()

    def _submit(self, entries: Sequence[Entry]) -> None:
        """Commits the entries together: a leader takes all waiting entries."""
        with self._mutex:
            self._waiting += entries
            leads, self._led = not self._led, True
        first = entries[0]
        if not leads:
            first.wake.acquire()
        if not first.done:
            self._lead()

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
