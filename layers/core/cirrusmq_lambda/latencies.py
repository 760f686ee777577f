"""How long receives take without their waits: a figure of an environment, told from time to time.

    receive   0.02 ── 0.02 ── 0.03 ── … 50 of them, or a minute ── one line of the log

A line for each call would cost as much as the call's share of the log. What an environment has not
told when it ends is lost: it is a distribution, and some values more would not change it.
"""

from __future__ import annotations

import threading

from cirrusmq.runtime.core import Core

MOST_VALUES, MOST_SECONDS = 50, 60
"""As many values as a line of figures has, or those of so many seconds."""


class Latencies:
    """The values that an environment has not told yet; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: list[float] = []
        self._since_ms = 0

    def note(self, now_ms: int, seconds: float) -> list[float]:
        """Keep a value. Returns those that are to be told now, most times none."""
        with self._lock:
            if not self._values:
                self._since_ms = now_ms
            self._values.append(seconds)
            late = now_ms - self._since_ms >= 1_000 * MOST_SECONDS
            if len(self._values) < MOST_VALUES and not late:
                return []
            told, self._values = self._values, []
            return told


_receives = Latencies()


def note_receive(core: Core, begun_ms: int, waited_ms: int) -> None:
    """Count a receive that ends now; times are of the core's clock."""
    now_ms = core.now_ms()
    seconds = max(0, now_ms - begun_ms - waited_ms) / core.clock.scale / 1_000
    values = _receives.note(now_ms, seconds)
    if values:
        # Figures, and what writes them, are for one receive in fifty.
        from cirrusmq_lambda import figures

        figures.tell({figures.RECEIVE: values})
