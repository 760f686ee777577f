"""Limits of a receive's work besides claiming: the messages that it may move, and the time."""

from __future__ import annotations

from cirrusmq.runtime.core import Core

MAX_MESSAGES = 16
MAX_MS = 5
"""Milliseconds from the first move on; a later move waits for the next receive."""


class MoveBudget:
    """Messages that one receive may still move; their time begins with the first one."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left = MAX_MESSAGES
        self._until_ms = 0

    def spend(self) -> bool:
        """Takes one message of the budget. Returns False if no message or no time is left."""
        now_ms = self._core.now_ms()
        self._until_ms = self._until_ms or now_ms + MAX_MS
        self._left -= 1
        return self._left >= 0 and now_ms <= self._until_ms

    def end(self) -> None:
        """Ends the budget after the store refused a move, so that this receive tries no other."""
        self._left = 0
