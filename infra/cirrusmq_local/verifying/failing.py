"""Parts of a run whose messages fail on purpose: now and then, or all for a while."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any, ClassVar

from cirrusmq_local.judging.scenario import Scenario

SENDERS = 2
"""Threads of a part that send."""
_FAILING = 0.3
"""The share of tries that fail."""
_WELL_AFTER = 0.4
"""The share of a wave behind which a part that is broken succeeds."""


class FailingPart:
    """Messages of which three tries in ten fail, each message at most `max_failures` times."""

    name: ClassVar[str]
    max_failures: ClassVar[int]

    def __init__(self, seed: int) -> None:
        self.disturbed = False
        """True if a fault of the machine may have ended a worker."""
        self._random = random.Random(seed)
        self._failures: Counter[str] = Counter()

    def play(self, seconds: float) -> None:
        """Send for a while."""
        ends = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._send, args=(number, ends), daemon=True)
            for number in range(SENDERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send(self, number: int, ends: float) -> None:
        """Send until a time of the monotonic clock, as one of the threads."""
        raise NotImplementedError

    def _fails(self, message_id: str) -> bool:
        """Returns True if the next try of a message fails."""
        fails = self._failures[message_id] < self.max_failures and self._random.random() < _FAILING
        self._failures[message_id] += fails
        return fails

    def _scenario(self, **given: Any) -> Scenario:
        """Returns the part as the simulation's checks read it. given: its queues, subscriptions."""
        return Scenario(
            family=self.name,
            cast=(),
            pause_ms=0,
            big_bodies=False,
            attempts=0,
            deduplication=0,
            unfailing=True,
            **given,
        )


class BrokenPart(FailingPart):
    """Messages of which all tries fail in the first part of a wave, and none behind it."""

    def play(self, seconds: float) -> None:
        """Send for a while."""
        self._well_at = time.monotonic() + _WELL_AFTER * seconds
        super().play(seconds)

    def _fails(self, message_id: str) -> bool:
        return time.monotonic() < self._well_at
