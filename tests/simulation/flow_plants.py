"""Faults planted into the rate of posts: what a holder of the lease leaves to the next one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.plants import plant
from tests.simulation.scenario import FLOW

from cirrusmq.push import lease_session, rate_limiter


@plant(FLOW, found_by=4_000_005)
def each_holder_begins_with_a_full_bucket(patch: pytest.MonkeyPatch) -> None:
    """The next holder of the lease does not know what the last one posted."""
    patch.setattr(lease_session, "taken_over", lambda rate, *_, **__: rate_limiter.Pace(rate))


@plant(FLOW, found_by=4_000_005)
def the_next_holder_trusts_the_clock_of_the_last_one(patch: pytest.MonkeyPatch) -> None:
    """Clocks that differ let it begin before the last one's second is over."""
    taken_over = rate_limiter.taken_over

    def trusting(
        rate: int, full_ms: int, now_ms: int, skew_ms: int, **died: Any
    ) -> rate_limiter.Pace:
        return taken_over(rate, full_ms, now_ms, 0, **died)

    patch.setattr(lease_session, "taken_over", trusting)


@plant(FLOW, found_by=4_000_005)
def tokens_are_taken_when_a_post_is_let_through(patch: pytest.MonkeyPatch) -> None:
    """What is done before the post takes time, and the starts come closer together."""

    def let_through(self: rate_limiter.Pace) -> None:
        as_it_is(self)
        self._begun -= 1
        self.full_ms += self._interval_ms

    as_it_is = rate_limiter.Pace.let_through
    patch.setattr(rate_limiter.Pace, "let_through", let_through)
    patch.setattr(rate_limiter.Pace, "start", lambda self, core: core.now_ms())
