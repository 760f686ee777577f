"""The number of tries of a call, and the pauses between them."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Exponential backoff with jitter for repeated calls.

    An `attempt` is valid for 120 s, so no call is repeated after `max_seconds`, which is less.
    """

    tries: int = 6
    first_seconds: float = 0.1
    longest_seconds: float = 5.0
    max_seconds: float = 90.0

    def pause(self, tried: int, elapsed_seconds: float, least_seconds: float = 0.0) -> float | None:
        """Returns the pause before the next try, or None to give up.

        `tried`: tries until now. `least_seconds`: minimum pause, which the service asked for.
        """
        if tried >= self.tries:
            return None
        full = min(self.longest_seconds, self.first_seconds * 2.0 ** (tried - 1))
        pause = max(random.uniform(full / 2, full), least_seconds)
        return None if elapsed_seconds + pause > self.max_seconds else pause
