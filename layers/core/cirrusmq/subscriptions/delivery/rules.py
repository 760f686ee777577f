"""An HTTP subscription's delivery state: delivering or retrying, slow or not, its poster's lease.

    DELIVERING ──(a message fails and waits)──> RETRYING, an execution wakes when it is due
        ^                                           │
        └─────────(nothing waits any more)──────────┘

Only the holder of the lease posts, with any policy (`push.poster_lease`), and nobody while it is
paused: an execution that wakes then ends, and resuming starts another.

A subscription whose URL takes long to answer is slow: `push_slow` posts to it separately.

    push        posts ── over a second: begins no more ── releases: slow for 10 minutes ── ends
    push_slow                                                          posts ── over a second: on
    push        20 minutes later: posts ── over a second: slow for 20 minutes, then 40 … a day

A new subscription is slow until a session has posted, and each of its posts took less. One that was
fast for as long as it had been slow begins again with 10 minutes.

    the state   slow_until  <──  the release of the lease, which each session writes anyway
    push        asks for the lease if it is not slow: that costs nothing more, and a unit if it is
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from cirrusmq.model.breaker import Circuit
from cirrusmq.model.topic import Subscription

HOLD_MS = 30_000
"""Real milliseconds of a lease, in which only its holder posts."""
POST_MS = 17_000
"""Real milliseconds that a post, of 15 s at most, and storing its outcome may take."""
SKEW_MS = 2_000
"""How far two environments' clocks may differ: a lease ends that much later for others."""
LATE_MS = 30_000
"""A record that is fanned out this time after its publishing is late."""
SETTLED_MS = 2 * LATE_MS
"""Age of messages before which only late parcels are still put."""
OVERDUE_MS = 30_000
"""A message that has been due for this time has no worker any more."""
UNTRIED_MS = 9_999_999_999_999
"""The end of being slow, for a subscription to which nothing was posted yet."""
State: TypeAlias = Literal["delivering", "retrying"]
Wake: TypeAlias = Literal["", "resumed", "hurried"]
"""Why a worker is started: there are new messages; posting was resumed; waiting retries are to be
posted now."""
SLOW_MS = 1_000
"""Real milliseconds of a post above which its subscription is slow."""
SHARING_MS = 50
"""Real milliseconds more for each other subscription of an invocation: they share a CPU."""
BESIDE_MS = 10
"""Real milliseconds more for each other post of the subscription that runs beside it."""
FIRST_MS = 600_000
"""For how long a subscription is slow the first time; each time after that for twice as long."""
LONGEST_MS = 86_400_000


class DeliveryState(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription's delivery state as it was read. Times are in milliseconds since the epoch.

    Each number of a tuple is of one partition; the tuples are empty until the first is known.
    """

    account: str
    topic: str
    subscription: str
    subscription_id: str
    state: State = "delivering"
    starts: int = 0
    """How many executions were started: the newest one's number, and part of its name."""
    generation: int = 0
    """The number of the execution that is in charge; earlier ones end when they wake."""
    alarm_ms: int = 0
    """When the execution that was started last, or continues, wakes; 0 if none will."""
    holder: str = ""
    held_until_ms: int = 0
    again: str | None = None
    """The sort key from which on the holder must scan again before it releases, or None."""
    next_due_ms: int = 0
    """When the next message is due; 0 if none waits."""
    last_error: str | None = None
    """Why that message's newest post failed."""
    clean_ms: tuple[int, ...] = ()
    """Messages with an earlier key are ended, or are found by their marks."""
    marks_ms: tuple[int, ...] = ()
    """All marks with an earlier time are done."""
    dues_ms: tuple[int, ...] = ()
    """Time of the first mark that is not done; 0 if there is none."""
    kept_until_ms: int = 0
    """When the last message expires whose retries are used up and that no queue took."""
    blocks: bool = False
    """True if the last holder's policy made failing messages hold the others back."""
    looked_ms: int = 0
    """When a poster last scanned all keys that are not clean."""
    posted_ms: int = 0
    """When a poster last posted."""
    paused: bool = False
    """True if no post begins, and no lease."""
    rate: int = 0
    """How many posts may start within a second; 0 means no limit."""
    full_ms: int = 0
    """When the bucket of these is full again, as the last holder left it."""
    hurried: bool = False
    """True if the next holder, or the present one, posts all waiting retries at once."""
    delays: int = 0
    """How many notices announced messages that were to be posted later; 0 if none waits so."""
    late: int = 0
    """How often a parcel was late enough to be before the clean keys."""
    slow_until_ms: int = 0
    """Until then `push_slow` posts, since a post took long; `UNTRIED_MS` until a first post."""
    slow_for_ms: int = 0
    """For how long it was slow the last time; 0 if it never was."""

    circuit: Circuit = Circuit()
    """The state of its breaker, as the last holder left it."""
    probe_due_ms: int = 0
    """When an execution tries a message of an open breaker; 0 if none is ready for it."""

    def held(self, now_ms: int, scale: float) -> bool:
        """Returns True if the lease runs, with regard to clocks that differ."""
        return bool(self.holder) and now_ms <= self.held_until_ms + SKEW_MS * scale

    def slow(self, now_ms: int) -> bool:
        """Returns True if `push_slow` posts for it."""
        return now_ms < self.slow_until_ms

    def stuck(self, now_ms: int, scale: float) -> bool:
        """Returns True if a due message has no worker, or the last holder died."""
        if self.held(now_ms, scale):
            return False
        overdue = bool(self.next_due_ms) and now_ms > self.next_due_ms + OVERDUE_MS
        return bool(self.holder) or overdue


def unread(subscription: Subscription) -> DeliveryState:
    """Returns a delivery state without any values that are stored, as if nobody held it."""
    return DeliveryState(
        account=subscription.account,
        topic=subscription.topic,
        subscription=subscription.name,
        subscription_id=subscription.id,
    )


def hold_ms(scale: float) -> int:
    """Returns the length of a lease on a clock of this scale: posts take real seconds."""
    return int(HOLD_MS * scale)


def latest_post_ms(begun_ms: int, scale: float) -> int:
    """Returns when the last post may start under a lease that was asked for at `begun_ms`.

    A: asks for 30 s ── a late answer ─────────────> 25 s later: a post would outlive its lease
    """
    return begun_ms + int((HOLD_MS - POST_MS) * scale)


def place_of(subscription: Subscription) -> dict[str, Any]:
    """Returns the names by which an invocation finds its subscription, and its id: names return."""
    return {
        "topic_id": subscription.topic_id,
        "subscription": subscription.name,
        "id": subscription.id,
    }


def waiting(
    subscription: Subscription,
    start: str = "",
    partitions: Iterable[int] = (),
    hops: int = 0,
    wake: Wake = "",
    *,
    delayed: bool = False,
) -> dict[str, Any]:
    """Returns a worker's event about a subscription's waiting messages.

    start: only from that sort key on; empty for all. partitions: only these; empty for all. So a
    message costs no read of earlier ones.
    """
    event: dict[str, Any] = {"start": start, "partitions": sorted(partitions), "hops": hops}
    if wake:
        event["wake"] = wake
    if delayed:
        event["delayed"] = True
    return {**place_of(subscription), **event}


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
