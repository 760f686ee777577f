"""A push of one subscription: an invocation that posts, with the consequences of its policy."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq.access.shares import PoolShare
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory import subscription_key, topic_key
from cirrusmq.subscriptions.delivery.rules import POST_MS, DeliveryState, Wake
from cirrusmq.subscriptions.sources import subscription_source
from cirrusmq.subscriptions.subscriptions import cached_subscriptions


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation that pushes, for one subscription."""

    core: Core
    subscription: Subscription
    source: Source
    all_partitions: range
    """The numbers of its parcels' partitions."""
    in_order: bool
    """True if messages are attempted one at a time, in order."""
    blocks: bool
    """True if a failing message holds the others back."""
    invocation_id: str
    deadline_ms: int
    """No post starts after this time of the core's clock."""
    start: str = ""
    """Messages before this sort key have an invocation of their own; empty if there are none."""
    partitions: tuple[int, ...] = ()
    """Partitions of the new messages; empty if all may have some."""
    wake: Wake = ""
    delayed: bool = False
    """True if some of the new messages are to be posted later."""
    hops: int = 0
    """How many invocations in a row before this one ran out of time."""
    shared_until_ms: int | None = None
    """When a busy push leaves an invocation that it shares; None if it is alone."""
    sharing: int = 0
    """How many other subscriptions the invocation has."""
    takes_slow: bool = False
    """True if it also posts for slow subscriptions, and continues when posts take long."""
    share: PoolShare | None = None
    """Its account's part of `push_slow`; None if it posts in no pool that has shares."""

    @property
    def left_ms(self) -> float:
        """Real milliseconds until its invocation is over at last."""
        return (self.deadline_ms - self.core.now_ms()) / self.core.clock.scale + POST_MS


def make_push(
    core: Core,
    place: dict[str, Any],
    invocation_id: str,
    max_ms: float,
    shared_ms: float | None = None,
    *,
    sharing: int = 0,
    takes_slow: bool = False,
) -> Push | None:
    """Returns an invocation's push, or None if the subscription is gone.

    shared_ms: real milliseconds after which a busy push leaves the invocation; None if it is alone.
    sharing, takes_slow: as in `Push`.
    """
    subscription = _find(core, place)
    if subscription is None or subscription.protocol != "http":
        return None
    begun_ms, scale = core.now_ms(), core.clock.scale
    blocking = subscription.blocking
    return Push(
        core=core,
        subscription=subscription,
        source=subscription_source(subscription),
        all_partitions=range(subscription.partitions),
        in_order=blocking == "in_order",
        blocks=blocking != "none",
        invocation_id=invocation_id,
        deadline_ms=begun_ms + int(max_ms * scale),
        start=place.get("start", ""),
        partitions=tuple(place.get("partitions", ())),
        wake=place.get("wake", ""),
        delayed=place.get("delayed", False),
        hops=place.get("hops", 0),
        shared_until_ms=None if shared_ms is None else begun_ms + int(shared_ms * scale),
        sharing=sharing,
        takes_slow=takes_slow,
    )


def push_of(core: Core, delivery: DeliveryState) -> Push | None:
    """Returns a push of this subscription, without time to post, or None if it is gone."""
    of_topic = topic_key(delivery.account, delivery.topic)
    topic = directory.read_cached(core, of_topic, Topic)
    if topic is None:
        return None
    place = {
        "topic_id": topic.id,
        "subscription": delivery.subscription,
        "id": delivery.subscription_id,
    }
    return make_push(core, place, "sweep", 0)


def _find(core: Core, place: dict[str, Any]) -> Subscription | None:
    """Returns the subscription of this id, also if the cache does not know it yet."""
    for subscription in cached_subscriptions(core, place["topic_id"]):
        if subscription.id == place["id"]:
            return subscription
    found = directory.read(
        core, subscription_key(place["topic_id"], place["subscription"]), Subscription
    )
    return found.value if found is not None and found.value.id == place["id"] else None
