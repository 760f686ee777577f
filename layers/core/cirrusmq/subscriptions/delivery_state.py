"""An HTTP subscription's delivery state: delivering or retrying, and the lease of its poster.

    DELIVERING ──(a message fails and waits)──> RETRYING, an execution wakes when it is due
        ^                                           │
        └─────────(nothing waits any more)──────────┘

Only the holder of the lease posts, with any policy (`push.poster_lease`), and nobody while it is
paused: an execution that wakes then ends, and resuming starts another. The item is in the message
table under separate partition keys, so that the sweep finds all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from cirrusmq.model.breaker import Circuit, unpack
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key, shard_key, shard_keys

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
SHARDS = 128
"""Partition keys of delivery states: a busy subscription writes its own 200 times a second, and no
key should hold more than four such states out of a hundred."""
State: TypeAlias = Literal["delivering", "retrying"]
Wake: TypeAlias = Literal["", "resumed", "hurried"]
"""Why a worker is started: there are new messages; posting was resumed; waiting retries are to be
posted now."""


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
    probe_sent_ms: int = 0
    """When that message was sent."""
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


def read(core: Core, subscription_id: str) -> DeliveryState | None:
    """Returns the delivery state now, strongly consistent, or None if the subscription is gone."""
    pk = state_key(subscription_id)["pk"]["S"]
    item = core.store.get(core.tables.messages, pk, subscription_id)
    return None if item is None else read_item(item)


def unread(subscription: Subscription) -> DeliveryState:
    """Returns a delivery state without any values that are stored, as if nobody held it."""
    return DeliveryState(
        account=subscription.account,
        topic=subscription.topic,
        subscription=subscription.name,
        subscription_id=subscription.id,
    )


def read_all(core: Core) -> Iterator[DeliveryState]:
    """Yields the delivery states of all subscriptions of the deployment, keys read in parallel.

    Eventually consistent, at half the units: every use is a hint or has its condition, and a state
    that one read misses is in the next one.
    """

    def items_of(pk: str) -> list[Item]:
        return list(core.store.query_all(core.tables.messages, pk, consistent=False))

    for items in core.in_parallel(items_of, shard_keys("S", SHARDS)):
        for item in items:
            yield read_item(item)


def hold_ms(core: Core) -> int:
    """Returns the length of a lease on the core's clock: posts take real seconds."""
    return int(HOLD_MS * core.clock.scale)


def latest_post_ms(core: Core, begun_ms: int) -> int:
    """Returns when the last post may start under a lease that was asked for at `begun_ms`.

    A: asks for 30 s ── a late answer ─────────────> 25 s later: a post would outlive its lease
    """
    return begun_ms + int((HOLD_MS - POST_MS) * core.clock.scale)


def state_key(subscription_id: str) -> Item:
    """Returns the key of a subscription's delivery state."""
    return key(shard_key("S", subscription_id, SHARDS), subscription_id)


def read_item(item: Item) -> DeliveryState:
    """Returns the delivery state in an item."""

    def number(name: str) -> int:
        return int(item.get(name, {"N": "0"})["N"])

    def numbers(name: str) -> tuple[int, ...]:
        return tuple(int(each["N"]) for each in item.get(name, {"L": []})["L"])

    def text(name: str) -> str:
        return str(item.get(name, {"S": ""})["S"])

    return DeliveryState(
        account=text("account"),
        topic=text("topic"),
        subscription=text("subscription"),
        subscription_id=item["sk"]["S"],
        state="retrying" if text("state") == "retrying" else "delivering",
        starts=number("starts"),
        generation=number("generation"),
        alarm_ms=number("alarm"),
        holder=text("holder"),
        held_until_ms=number("held_until"),
        again=text("again") if "again" in item else None,
        next_due_ms=number("next_due"),
        last_error=text("last_error") or None,
        probe_sent_ms=number("probe_sent"),
        clean_ms=numbers("clean"),
        marks_ms=numbers("marks"),
        dues_ms=numbers("dues"),
        kept_until_ms=number("kept_until"),
        blocks=number("blocks") > 0,
        looked_ms=number("looked"),
        posted_ms=number("posted"),
        paused=number("paused") > 0,
        rate=number("rate"),
        full_ms=number("bucket_full"),
        hurried=number("hurried") > 0,
        delays=number("delays"),
        late=number("late"),
        slow_until_ms=number("slow_until"),
        slow_for_ms=number("slow_for"),
        circuit=unpack(numbers("breaker"), text("breaker_error")),
        probe_due_ms=number("probe_due"),
    )


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


def notify(core: Core, first: dict[str, Any], *others: dict[str, Any], slow: bool = False) -> None:
    """Starts a worker that delivers waiting messages of these subscriptions (`waiting`).

    slow: True if they are known to be slow; else `push` finds out.
    """
    event = {"deliver": first, **({"others": others} if others else {})}
    if slow:
        core.invoke("push_slow", event)
    else:
        core.invoke("push", event)
