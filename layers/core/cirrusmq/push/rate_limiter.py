"""How fast a subscription is posted to: its `rate`, kept as a token bucket.

    rate 40, full bucket of 3:   ||| |  |  |  |  |      40 within any second, at most

A start takes a token. The bucket holds a twentieth of the rate, at least one token, so that a
poster that was busy for a moment catches up. It is filled slower by as much, so that no second has
more starts than the rate, wherever it begins.

Its state is one number, when it is full again; the release of the lease has it for the next holder:

    A:  posts ─── releases: full at 12:00:00.700
    B:                     holds ── whose clock may differ: its bucket is empty at most

At most the bucket's tokens are lost, whatever the clocks say. They count as taken if the last
holder died, since the number that it took is not known.
"""

from __future__ import annotations

import math
import threading

from cirrusmq.runtime.core import Core

_BURST_SHARE = 20


class Pace:
    """The tokens of one holder of the lease; several threads take them.

    rate: starts a second at most; 0 means no limit. full_ms: when the bucket is full.
    """

    def __init__(self, rate: int, full_ms: float = 0) -> None:
        self.full_ms = full_ms
        self._lock = threading.Lock()
        self._begun = 0
        """Posts that may start and have not taken their tokens yet."""
        self.rate = rate

    @property
    def rate(self) -> int:
        """Starts a second at most; 0 means no limit."""
        return self._rate

    @rate.setter
    def rate(self, rate: int) -> None:
        self._rate = rate
        self._burst = 1 + rate // _BURST_SHARE
        # n + 1 starts take at least n + 1 - burst of these: a second for n = rate.
        self._interval_ms = 1_000 / (rate - self._burst + 1) if rate else 0.0

    @property
    def handed_ms(self) -> int:
        """When the bucket is full, for the next holder; 0 without a limit."""
        return math.ceil(self.full_ms) if self._rate else 0

    def empty_ms(self, now_ms: int) -> float:
        """Returns when a bucket that is empty now is full; any other bucket is full earlier."""
        return now_ms + 1 + self._burst * self._interval_ms

    def wait_ms(self, now_ms: int) -> int:
        """Returns how long the next post must wait, behind posts that may start already."""
        return self._wait_ms(now_ms, self._begun)

    def let_through(self) -> None:
        """Lets a post begin, which takes its token when it starts."""
        with self._lock:
            self._begun += 1

    def start(self, core: Core) -> int:
        """Takes the token of a post, as soon as there is one. Returns the time of its start."""
        while True:
            with self._lock:
                now_ms = core.now_ms()
                wait_ms = self._wait_ms(now_ms, 0)
                if not wait_ms:
                    self._begun -= 1
                    # The clock's milliseconds are whole: it may be almost one later.
                    self.full_ms = max(self.full_ms, now_ms + 1) + self._interval_ms
                    return now_ms
            core.clock.sleep(wait_ms / 1_000)

    def _wait_ms(self, now_ms: int, begun: int) -> int:
        if not self._rate:
            return 0
        missing = begun + 1 - self._burst
        full_ms = max(self.full_ms, now_ms)
        return max(0, math.ceil(full_ms + missing * self._interval_ms - now_ms))


def taken_over(rate: int, full_ms: int, now_ms: int, skew_ms: int, *, dirty: bool) -> Pace:
    """Returns the rate limiter of a new holder of the lease, which acquired it at `now_ms`.

    full_ms: as the last holder left it, by a clock that may differ by `skew_ms`. dirty: it died.
    """
    pace = Pace(rate)
    empty_ms = pace.empty_ms(now_ms)
    pace.full_ms = empty_ms if dirty else min(empty_ms, full_ms + skew_ms)
    return pace
