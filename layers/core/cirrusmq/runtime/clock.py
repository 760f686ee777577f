"""Time as a port: the only way in which the core reads the time or waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """The service's time. On one machine it may run faster than real time."""

    @property
    def scale(self) -> float:
        """Its seconds in a real one."""

    def now_ms(self) -> int:
        """Returns milliseconds since the Unix epoch; never decreases within one process."""

    def sleep(self, seconds: float) -> None:
        """Lets `seconds` of this clock pass."""


class SystemClock:
    """The machine's clock, made monotonic: it neither decreases nor stops.

    If the system sets its clock back, this one runs a little slower until the system's clock has
    caught up: a lease must not look longer than it is, and a wait for some time must end.
    """

    scale = 1.0
    SLOWED = 15 / 16
    """A wait of 28 s, the longest, is over before the API's 30 s are."""

    def __init__(
        self,
        *,
        system_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._system_ms = system_ms
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._latest_ms = 0.0
        self._latest_at = monotonic()

    def now_ms(self) -> int:
        with self._lock:
            at = self._monotonic()
            passed_ms = (at - self._latest_at) * 1_000 * self.SLOWED
            self._latest_ms = max(self._latest_ms + passed_ms, self._system_ms())
            self._latest_at = at
            return int(self._latest_ms)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))
