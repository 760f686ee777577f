"""The time of a world: it passes when a test moves it."""

from __future__ import annotations

START_MS = 1_795_000_000_000
"""The time at which a world begins: milliseconds since the Unix epoch."""


class ManualClock:
    """A clock that moves only when a caller sleeps on it or moves it."""

    scale = 1.0
    stopped = False

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Returns milliseconds since the Unix epoch."""
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        """Moves the clock instead of a wait: a world has one thread."""
        self._now_ms += max(1, round(seconds * 1000))

    def pass_seconds(self, seconds: float) -> None:
        """Moves the clock forward."""
        self._now_ms += round(seconds * 1000)
