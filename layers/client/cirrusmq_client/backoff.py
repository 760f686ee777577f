"""How often a call is repeated, and after which pauses."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """A pure decision: the pause before the next try, or None to give up.

    An `attempt` is taken for 120 s, so nothing is repeated after `most_seconds` below that.
    """

    tries: int = 6
    first_seconds: float = 0.1
    longest_seconds: float = 5.0
    most_seconds: float = 90.0

    def pause(self, tried: int, elapsed_seconds: float, least_seconds: float = 0.0) -> float | None:
        """After `tried` tries in so many seconds; never shorter than the service asked for."""
        if tried >= self.tries:
            return None
        full = min(self.longest_seconds, self.first_seconds * 2.0 ** (tried - 1))
        pause = max(random.uniform(full / 2, full), least_seconds)
        return None if elapsed_seconds + pause > self.most_seconds else pause
