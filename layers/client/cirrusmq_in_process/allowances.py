"""Allowances: the URL accepted a send to a queue, or a receive from it, within the last minute.

The URL checks the key, its rights, the rate and the queue's limits, moves dead letters and tidies
up. So one call of each kind goes there each minute, and all of them while that is refused:

    12:00:00   send by the URL: accepted ── sends here ── 12:01:00   send by the URL: refused
                                                          so are all, until one is accepted
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

SECONDS = 60.0
REST_SECONDS = 10.0
"""All calls of a queue go by the URL for this time after something only the service can do."""
Right: TypeAlias = Literal["send", "receive"]


class Allowing(Protocol):
    """Says if a call may be made here."""

    def has(self, queue: str, right: Right) -> bool:
        """Returns True if the call may be made here now."""
        ...

    def grant(self, queue: str, right: Right, asked: float) -> None:
        """The URL accepted such a call, which was made at that time of `now`."""
        ...

    def rest(self, queue: str) -> None:
        """Leaves the queue to the URL for a while."""
        ...

    def rests(self, queue: str) -> bool:
        """Returns True if the queue is left to the URL now."""
        ...

    def now(self) -> float:
        """Seconds of a clock that is never set."""
        ...


class Allowances:
    """The allowances of one access key, by queue and right."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: dict[tuple[str, Right], float] = {}
        self._rests: dict[str, float] = {}

    def now(self) -> float:
        """Seconds of a clock that is never set."""
        return self._now()

    def has(self, queue: str, right: Right) -> bool:
        """Returns True within a minute of an accepted call, if the queue has no rest."""
        now = self._now()
        return now < self._until.get((queue, right), now) and not self.rests(queue)

    def grant(self, queue: str, right: Right, asked: float) -> None:
        """Allow such calls for a minute from `asked` on: the key was checked no earlier."""
        self._until[queue, right] = asked + SECONDS

    def rest(self, queue: str) -> None:
        """Leaves the queue to the URL for some seconds."""
        self._rests[queue] = self._now() + REST_SECONDS

    def rests(self, queue: str) -> bool:
        """Returns True if the queue is left to the URL now."""
        return self._now() < self._rests.get(queue, 0.0)
