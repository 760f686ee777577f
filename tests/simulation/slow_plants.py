"""Faults planted into slow URLs: into shares of `push_slow`, and into who is taken for slow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.plants import plant
from tests.simulation.scenario import SLOW

from cirrusmq.access import shares
from cirrusmq.push.blocking_queue import BlockingFeed
from cirrusmq.subscriptions.delivery import rules as delivery_rules
from cirrusmq.subscriptions.delivery.rules import Slowness


@plant(SLOW, found_by=7_500_002)
def the_share_does_nothing(patch: pytest.MonkeyPatch) -> None:
    """An account may have all that runs."""
    patch.setattr(shares.PoolShare, "_begins", lambda *_: True)
    patch.setattr(shares.PoolShare, "may_go_on", lambda _: True)


@plant(SLOW, found_by=7_500_002)
def an_account_does_not_see_who_else_is_at_work(patch: pytest.MonkeyPatch) -> None:
    """It has three quarters beside another one."""
    patch.setattr(shares.PoolShare, "_read", lambda _: shares._Seen(0, others=False))


@plant(SLOW, found_by=7_500_010)
def who_is_above_the_quarter_does_not_give_way(patch: pytest.MonkeyPatch) -> None:
    """An invocation goes on when another account has come."""
    patch.setattr(shares.PoolShare, "may_go_on", lambda share: share.admitted)


@plant(SLOW, found_by=7_500_000)
def a_demotion_never_ends(patch: pytest.MonkeyPatch) -> None:
    """A URL that was slow once is slow for good."""

    def for_good(*given: Any, **named: Any) -> Slowness:
        judged = judge(*given, **named)
        return Slowness(judged.until_ms + 10**10, judged.for_ms) if judged.for_ms else judged

    judge = delivery_rules.judge
    patch.setattr(delivery_rules, "judge", for_good)


@plant(SLOW, found_by=7_500_001)
def a_slow_url_is_demoted_by_nobody(patch: pytest.MonkeyPatch) -> None:
    """The release of the lease does not say how long its posts took."""
    judge = delivery_rules.judge

    def blind(*given: Any, posted: bool, was_slow: bool) -> Slowness:
        return judge(*given, posted=posted, was_slow=False)

    patch.setattr(delivery_rules, "judge", blind)


@plant(SLOW, found_by=7_500_002)
def who_has_no_time_left_does_not_tell_what_failed(patch: pytest.MonkeyPatch) -> None:
    """A post fails when no other may begin: new messages pass it by before its retry."""

    def of_the_next(feed: Any) -> Any:
        return None if feed._probe is None else first_due(feed)

    first_due = BlockingFeed.first_due
    patch.setattr(BlockingFeed, "first_due", of_the_next)
