"""How fast a subscription is posted to: its `rate`, kept as a token bucket.

    rate 40, full bucket of 3:   ||| |  |  |  |  |      40 within any second, and no more

A start takes a token. The bucket holds a twentieth of the rate, one at least, so that a poster that
was busy for a moment catches up, and is filled so much more slowly that no second has more starts
than the rate says, wherever it begins.

Its state is one number, when it is full again; the release of the lease has it for the next holder:

    A:  posts ─── releases: full at 12:00:00.700
    B:                     holds ── whose clock may differ: its bucket is empty at most

As many tokens as the bucket has are gone at most, whatever the clocks say. They count as gone where
the last holder died: how many it took is not known.
"""

from __future__ import annotations

import math
import threading

from cirrusmq.runtime.core import Core

_BURST_SHARE = 20


class Pace:
    """The tokens of one holder of the lease; several threads take them.

    `rate`: starts a second at most, 0: as many as there are. `full_ms`: when the bucket is full.
    """

    def __init__(self, rate: int, full_ms: float = 0) -> None:
        self.full_ms = full_ms
        self._lock = threading.Lock()
        self._begun = 0
        """Posts that were let through and have not taken their tokens yet."""
        self.rate = rate

    @property
    def rate(self) -> int:
        """Starts a second at most; 0: as many as there are."""
        return self._rate

    @rate.setter
    def rate(self, rate: int) -> None:
        self._rate = rate
        self._burst = 1 + rate // _BURST_SHARE
        # n + 1 starts take at least n + 1 - burst of these: a second for n = rate.
        self._interval_ms = 1_000 / (rate - self._burst + 1) if rate else 0.0

    @property
    def handed_ms(self) -> int:
        """When the bucket is full, for the next holder; 0: there is no bound."""
        return math.ceil(self.full_ms) if self._rate else 0

    def empty_ms(self, now_ms: int) -> float:
        """When a bucket that is empty now is full; it is never later for one that is not."""
        return now_ms + 1 + self._burst * self._interval_ms

    def wait_ms(self, now_ms: int) -> int:
        """How long the next post must wait, with those that were let through."""
        return self._wait_ms(now_ms, self._begun)

    def let_through(self) -> None:
        """A post begins: it takes its token when it starts."""
        with self._lock:
            self._begun += 1

    def start(self, core: Core) -> int:
        """Take the token of a post that was let through, as soon as there is one; answers when."""
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
    """The pace of a new holder of the lease, `now_ms`: when it had it.

    `full_ms`: as the last one left it, by a clock that may differ by `skew_ms`; `dirty`: it died.
    """
    pace = Pace(rate)
    empty_ms = pace.empty_ms(now_ms)
    pace.full_ms = empty_ms if dirty else min(empty_ms, full_ms + skew_ms)
    return pace
