"""A push of one subscription: its messages that are still to be posted, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from cirrusmq import schedules
from cirrusmq.core import Core
from cirrusmq.parcel import Parcel
from cirrusmq.scan import scan_pages, until_key
from cirrusmq.schedules import Schedule
from cirrusmq.source import Source
from cirrusmq.storage import directory
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.subscription_source import subscription_source
from cirrusmq.subscriptions import cached_subscriptions
from cirrusmq.topic import Subscription, Topic

HELD_LOOK_MS = 1_000
"""Until a look at a message that somebody else is posting."""
RESCUE_MS = 120_000
"""The sweep, which comes each minute, has two looks at what is left of a message's life."""
_CLEAN_PARCELS = 50
"""So many that need no look any more are worth a write that says so."""


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation that pushes."""

    core: Core
    subscription: Subscription
    source: Source
    invocation_id: str
    deadline_ms: int
    """No post starts after this time of the core's clock."""
    start: str = ""
    """What comes before this sort key has an invocation of its own; empty where nothing has."""

    @property
    def in_order(self) -> bool:
        """Whether messages are attempted one at a time, in order."""
        return self.subscription.pushed_in_order

    @property
    def blocks(self) -> bool:
        """Whether a failing message holds the others back."""
        policy = self.subscription.policy
        return policy is not None and policy.blocking != "none"


def make_push(core: Core, place: dict[str, Any], invocation_id: str, most_ms: float) -> Push | None:
    """An invocation's push; None where the subscription is gone."""
    for subscription in cached_subscriptions(core, place["topic_id"]):
        if subscription.name == place["subscription"] and subscription.protocol == "http":
            return Push(
                core=core,
                subscription=subscription,
                source=subscription_source(subscription),
                invocation_id=invocation_id,
                deadline_ms=core.now_ms() + int(most_ms * core.clock.scale),
                start=place.get("start", ""),
            )
    return None


def push_of(core: Core, schedule: Schedule) -> Push | None:
    """A push of the schedule's subscription, without time to post; None where it is gone."""
    place = directory.topic_place(schedule.account, schedule.topic)
    topic = directory.read_cached(core, place, Topic)
    if topic is None:
        return None
    asked = {"topic_id": topic.id, "subscription": schedule.subscription}
    push = make_push(core, asked, "sweep", 0)
    if push is None or push.subscription.id != schedule.subscription_id:
        return None
    return push


def has_waiting(push: Push, schedule: Schedule) -> bool:
    """Whether a message waits that nobody attempts, behind none where order matters."""
    return bool(next_messages(push, schedule, 1))


def expiring(push: Push, schedule: Schedule) -> Iterator[tuple[Parcel, list[int]]]:
    """What was blocked for nearly its whole life, and has a dead-letter queue to go to."""
    if push.source.dead_letter is None:
        return
    latest_ms = push.core.now_ms() + RESCUE_MS
    for parcel, places in pending(msgspec.structs.replace(push, start=""), schedule):
        if parcel.expires_ms > latest_ms:
            return
        yield parcel, places


def next_messages(push: Push, schedule: Schedule, most: int) -> list[tuple[Parcel, list[int]]]:
    """What may be attempted now, at most so many messages."""
    now_ms = push.core.now_ms()
    chosen: list[tuple[Parcel, list[int]]] = []
    count = 0
    for parcel, places in pending(push, schedule):
        following = places[:1] if push.in_order else places
        ready = [place for place in following if parcel.receivable(place, now_ms)][: most - count]
        if ready:
            chosen.append((parcel, ready))
            count += len(ready)
        if count >= most or push.in_order:
            break
    return chosen


def next_due_ms(push: Push, schedule: Schedule) -> int | None:
    """When the next attempt is due; None where nothing is left to attempt."""
    due = []
    for parcel, places in pending(push, schedule):
        due += [_due_ms(parcel, place, push.core.now_ms()) for place in places]
        if push.blocks and due:
            return due[0]
    return min(due, default=None)


def _due_ms(parcel: Parcel, place: int, now_ms: int) -> int:
    """What is being posted is settled long before its lease ends, unless that process died."""
    due_ms = parcel.ready_ms(place)
    return min(due_ms, now_ms + HELD_LOOK_MS) if parcel.held(place, now_ms) else due_ms


def probe_sent_ms(push: Push, schedule: Schedule) -> int:
    """When the oldest message was sent that is still to be attempted; now, where none is."""
    oldest = next(pending(msgspec.structs.replace(push, start=""), schedule), None)
    return oldest[0].sent_ms if oldest else push.core.now_ms()


def pending(push: Push, schedule: Schedule) -> Iterator[tuple[Parcel, list[int]]]:
    """Parcels with the places of messages that are still to be attempted, in order."""
    core, now_ms = push.core, push.core.now_ms()
    pk = partition_key(PARCELS, push.source.id, 0)
    first = f"{push.source.query_from_ms(now_ms, core.clock.scale):013d}"
    start = "" if push.in_order else push.start
    # Who does not look at what came before cannot say that nothing is left there.
    clean, passed = "", -1 if start else 0
    for page in scan_pages(
        core, pk, max(first, start or schedule.clean_through), until_key(push.source, now_ms)
    ):
        for parcel in page.parcels:
            places = [
                place
                for place in range(parcel.count)
                if parcel.live(place) and parcel.ready_ms(place) < parcel.expires_ms > now_ms
            ]
            if places:
                if passed >= _CLEAN_PARCELS:
                    schedules.note_clean(core, schedule, clean)
                passed = -1
                yield parcel, places
            elif passed >= 0 and _settled(parcel, now_ms):
                clean, passed = parcel.sort_key, passed + 1
    if passed >= _CLEAN_PARCELS:
        schedules.note_clean(core, schedule, clean)


def _settled(parcel: Parcel, now_ms: int) -> bool:
    """Whether no fan-out puts a parcel in front of this one without saying that it is late."""
    return now_ms - parcel.sent_ms > schedules.SETTLED_MS
