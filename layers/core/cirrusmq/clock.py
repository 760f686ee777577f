"""Time, injected: the one door through which the core learns the time or lets it pass."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The service's time. On one machine it may run faster than real time."""

    @property
    def scale(self) -> float:
        """Its seconds in a real one."""
        ...

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; never goes back within one process."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of this clock pass."""
        ...


class SystemClock:
    """The machine's clock."""

    scale = 1.0

    def __init__(self) -> None:
        self._latest_ms = 0

    def now_ms(self) -> int:
        # A clock that the system sets back must not make a lease look longer than it is.
        self._latest_ms = max(self._latest_ms, time.time_ns() // 1_000_000)
        return self._latest_ms

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))
