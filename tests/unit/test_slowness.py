"""For how long a subscription is slow, by its turns."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cirrusmq.subscriptions.delivery.rules import (
    FIRST_MS,
    LONGEST_MS,
    UNTRIED_MS,
    DeliveryState,
    Slowness,
    judge,
    patience_ms,
)

NOW_MS = 1_700_000_000_000
FAST = DeliveryState(account="a", topic="t", subscription="s", subscription_id="S1")
UNTRIED = replace(FAST, slow_until_ms=UNTRIED_MS)


def slow(until_ms: int, for_ms: int) -> DeliveryState:
    return replace(FAST, slow_until_ms=until_ms, slow_for_ms=for_ms)


@pytest.mark.parametrize(
    ("state", "posted", "was_slow", "expected"),
    [
        (FAST, True, False, (0, 0)),
        (FAST, True, True, (NOW_MS + FIRST_MS, FIRST_MS)),
        (UNTRIED, False, False, (UNTRIED_MS, 0)),
        (UNTRIED, True, False, (0, 0)),
        (UNTRIED, True, True, (NOW_MS + FIRST_MS, FIRST_MS)),
        # It stays slow to its end, whatever a turn was like, and for as long if it is slow still.
        (slow(NOW_MS + 1, FIRST_MS), True, False, (NOW_MS + 1, FIRST_MS)),
        (slow(NOW_MS + 1, FIRST_MS), True, True, (NOW_MS + FIRST_MS, FIRST_MS)),
        # Fast for less long than it was slow: for twice as long.
        (slow(NOW_MS - 1, FIRST_MS), True, False, (NOW_MS - 1, FIRST_MS)),
        (slow(NOW_MS - 1, FIRST_MS), True, True, (NOW_MS + 2 * FIRST_MS, 2 * FIRST_MS)),
        (slow(NOW_MS - 1, LONGEST_MS), True, True, (NOW_MS + LONGEST_MS, LONGEST_MS)),
        (slow(NOW_MS - LONGEST_MS, LONGEST_MS), True, True, (NOW_MS + FIRST_MS, FIRST_MS)),
    ],
)
def test_a_turn_says_how_long_a_subscription_is_slow(
    state: DeliveryState, posted: bool, was_slow: bool, expected: tuple[int, int]
) -> None:
    assert judge(state, NOW_MS, posted=posted, was_slow=was_slow) == Slowness(*expected)


def test_a_subscription_is_slow_for_a_day_at_most() -> None:
    state, now_ms, times = FAST, NOW_MS, []
    for _ in range(10):
        until_ms, for_ms = judge(state, now_ms, posted=True, was_slow=True)
        times.append(for_ms // 60_000)
        state, now_ms = slow(until_ms, for_ms), until_ms + 1
    assert times == [10, 20, 40, 80, 160, 320, 640, 1_280, 1_440, 1_440]


def test_a_post_beside_others_may_wait_for_its_share_of_the_cpu() -> None:
    assert patience_ms(0, 0) == 1_000
    assert patience_ms(15, 0) == 1_150
    assert patience_ms(0, 40) == 3_000
