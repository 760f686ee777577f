"""What a receive may do besides claiming: messages moved on the way, and the time they take."""

from __future__ import annotations

from cirrusmq.runtime.core import Core

MOST_MESSAGES = 16
MOST_MS = 5
"""Work that has not begun by then waits for the next receive."""


class MoveBudget:
    """Messages that one receive may still move, and the time for it from its first use on."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left = MOST_MESSAGES
        self._until_ms = 0

    def spend(self) -> bool:
        """Take one message of the budget; whether it may be dealt with."""
        now_ms = self._core.now_ms()
        self._until_ms = self._until_ms or now_ms + MOST_MS
        self._left -= 1
        return self._left >= 0 and now_ms <= self._until_ms

    def end(self) -> None:
        """The store refuses: it is not asked again so soon."""
        self._left = 0
