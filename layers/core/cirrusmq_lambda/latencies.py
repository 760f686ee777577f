"""The times of receives without their waits, collected in an environment and logged in groups.

    receive   0.02 ── 0.02 ── 0.03 ── … 50 of them, or a minute ── one line of the log

A line for each call would cost as much as the call's share of the log. Values that an environment
has not logged at its end are lost: in a distribution some values more or less do not matter.
"""

from __future__ import annotations

import threading

from cirrusmq.runtime.core import Core

MAX_VALUES, MAX_SECONDS = 50, 60
"""Values are logged when there are this many, or after this time."""


class Latencies:
    """The values that an environment has not logged yet; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: list[float] = []
        self._since_ms = 0

    def note(self, now_ms: int, seconds: float) -> list[float]:
        """Keeps a value. Returns the values to log now, mostly none."""
        with self._lock:
            if not self._values:
                self._since_ms = now_ms
            self._values.append(seconds)
            late = now_ms - self._since_ms >= 1_000 * MAX_SECONDS
            if len(self._values) < MAX_VALUES and not late:
                return []
            told, self._values = self._values, []
            return told


_receives = Latencies()


def note_receive(core: Core, begun_ms: int, waited_ms: int) -> None:
    """Counts a receive that ends now; times are by the core's clock."""
    now_ms = core.now_ms()
    seconds = max(0, now_ms - begun_ms - waited_ms) / core.clock.scale / 1_000
    values = _receives.note(now_ms, seconds)
    if values:
        # Imported here: only one receive in fifty writes figures.
        from cirrusmq_lambda import figures

        figures.tell({figures.RECEIVE: values})
