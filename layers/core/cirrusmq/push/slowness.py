"""Slow subscriptions, whose URL takes long to answer. `push_slow` posts to them separately.

    push        posts ── over a second: begins no more ── releases: slow for 10 minutes ── ends
    push_slow                                                          posts ── over a second: on
    push        20 minutes later: posts ── over a second: slow for 20 minutes, then 40 … a day

A new subscription is slow until a session has posted, and each of its posts took less. One that was
fast for as long as it had been slow begins again with 10 minutes.

    the state   slow_until  <──  the release of the lease, which each session writes anyway
    push        asks for the lease if it is not slow: that costs nothing more, and a unit if it is
"""

from __future__ import annotations

from typing import NamedTuple

from cirrusmq.subscriptions.delivery_state import UNTRIED_MS, DeliveryState

SLOW_MS = 1_000
"""Real milliseconds of a post above which its subscription is slow."""
SHARING_MS = 50
"""Real milliseconds more for each other subscription of an invocation: they share a CPU."""
BESIDE_MS = 10
"""Real milliseconds more for each other post of the subscription that runs beside it."""
FIRST_MS = 600_000
"""For how long a subscription is slow the first time; each time after that for twice as long."""
LONGEST_MS = 86_400_000


class Slowness(NamedTuple):
    """For how long a subscription is slow, as its delivery state has it; 0 if it is not."""

    until_ms: int
    for_ms: int


def patience_ms(beside: int, sharing: int) -> int:
    """Returns the real milliseconds that a post may take before its subscription is slow.

    beside: posts of the same subscription that ran when it began. sharing: other subscriptions of
    the invocation.
    """
    return SLOW_MS + BESIDE_MS * beside + SHARING_MS * sharing


def judge(delivery: DeliveryState, now_ms: int, *, posted: bool, was_slow: bool) -> Slowness:
    """Returns the slowness after a session that ends now, from the state that it began with.

    posted: whether the session posted at all. was_slow: whether one of its posts took too long.
    """
    before = Slowness(delivery.slow_until_ms, delivery.slow_for_ms)
    untried = before.until_ms >= UNTRIED_MS
    if not was_slow:
        return Slowness(0, 0) if posted and untried else before
    recovered = now_ms >= before.until_ms + before.for_ms
    if untried or recovered or not before.for_ms:
        for_ms = FIRST_MS
    elif is_demoted(delivery, now_ms):
        for_ms = min(2 * before.for_ms, LONGEST_MS)
    else:
        for_ms = before.for_ms
    return Slowness(now_ms + for_ms, for_ms)


def is_demoted(delivery: DeliveryState, now_ms: int) -> bool:
    """Returns True if a slow session from this state on makes a fast subscription slow."""
    return not delivery.slow(now_ms)
