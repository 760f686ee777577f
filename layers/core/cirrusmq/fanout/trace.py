"""The trace of a published message: its state at each subscription.

A URL's parcels are kept until the message's expiry and show its state. A group's and a queue's are
removed when their messages are deleted, and no item says that a record was fanned out: that would
be a write for each. So for these a message whose fan-out is late is shown as delivered until then.
A dead letter that was given back is followed, as far as a look-up reads; one that was delivered
again by its id is shown as it is since then.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import MessageNotFound
from cirrusmq.fanout.reader_parcels import FannedOut, parcels_of
from cirrusmq.fanout.redelivered import redelivered_to
from cirrusmq.fanout.returned_letters import given_back
from cirrusmq.fanout.topic_shares import own_share, subscriptions_of
from cirrusmq.model.parcel import (
    DELETED,
    DROPPED,
    GONE,
    MOVED,
    Parcel,
    message_id,
    send_and_position,
)
from cirrusmq.model.post_history import Post
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.model.trace_context import trace_id_of
from cirrusmq.publishing.log_reader import Logged, read_logged
from cirrusmq.publishing.records import (
    Delivery,
    TopicRecord,
    is_topic_record,
    read_record,
    topic_log_key,
)
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel
from cirrusmq.storage.queries import scan_pages
from cirrusmq.subscriptions.sources import group_source, subscription_source

FAN_OUT_MS = 5_000
"""After this time since the publishing, a parcel that does not exist is taken as made and
removed."""
State: TypeAlias = Literal["pending", "delivered", "retrying", "discarded", "dead"]
_ENDS: dict[int, State] = {DELETED: "delivered", GONE: "dead", DROPPED: "discarded"}


class TracedState(msgspec.Struct, frozen=True):
    """The state of a message at one subscription.

    `next_attempt_ms`, `last_error`: if it is `retrying`, as far as known.
    """

    state: State
    attempts: int = 0
    next_attempt_ms: int | None = None
    last_error: str | None = None
    dead_letter_queue: str | None = None
    """The queue that a `dead` message went to."""
    posts: tuple[Post, ...] = ()
    """The latest attempts, in order, if they are posts to a URL."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a message at each subscription that gets it."""

    id: str
    sent_ms: int
    states: dict[str, TracedState]
    """By the subscription's name."""
    trace_id: str | None = None
    """The trace in the message's `traceparent`, or None."""
    message: Logged | None = None
    """The message, if its body was asked for and can be read."""


def trace(core: Core, topic: Topic, message_id: str, *, body: bool = False) -> Trace:
    """Returns the message's deliveries. Raises MessageNotFound once it has expired."""
    found = find_logged(core, topic, message_id)
    if found is None:
        raise MessageNotFound
    record, index = found
    position = record.positions[index]
    subscriptions = subscriptions_of(core, record)
    states = {}
    for delivery in record.header.deliveries:
        subscription = subscriptions.get(delivery.subscription_id)
        if subscription is not None and index in delivery.indexes:
            states[subscription.name] = _state(core, subscription, record, delivery, position)
    message = read_logged(core, topic, record, index) if body else None
    return Trace(
        id=message_id,
        sent_ms=record.sent_ms,
        states=states,
        trace_id=trace_id_of(record.messages[index].attributes),
        message=message,
    )


def find_logged(core: Core, topic: Topic, message_id: str) -> tuple[TopicRecord, int] | None:
    """Returns the record of a message and its index in it, or None if it is no longer there."""
    known = send_and_position(message_id)
    if known is None:
        return None
    send_id, position = known
    item = core.store.get(core.tables.messages, *topic_log_key(topic, send_id))
    record = None if item is None or not is_topic_record(item) else read_record(item)
    if record is None or position not in record.positions:
        return None
    if core.now_ms() >= record.sent_ms + limits.TOPIC_LIFE_SECONDS * 1_000:
        return None
    return record, record.positions.index(position)


def _state(
    core: Core, subscription: Subscription, record: TopicRecord, delivery: Delivery, position: int
) -> TracedState:
    fanned_out = (
        record.send_id in core.memory(FannedOut) or core.now_ms() - record.sent_ms > FAN_OUT_MS
    )
    if subscription.mode == "broadcasting":
        return TracedState("delivered")
    if subscription.protocol == "queue":
        return TracedState("delivered" if fanned_out else "pending")
    made, index = _made(subscription, record, delivery, position)
    if subscription.replay and group_source(core, subscription).withholds(made):
        return TracedState("pending")
    key = partition_key(PARCELS, made.source_id, made.partition), made.sort_key
    elsewhere = redelivered_to(core, subscription, message_id(record.send_id, position))
    item = core.store.get(core.tables.messages, *(elsewhere or key))
    parcel = None if item is None else read_parcel(item)
    if elsewhere is not None:
        if parcel is None:
            return TracedState("delivered")  # its consumer deleted it
        made, index = parcel, 0
    if parcel is None and (subscription.protocol == "http" or not fanned_out):
        return TracedState("pending")
    if parcel is None or parcel.visible_ms[index] == MOVED:
        parcel, index, whole = _rekeyed(core, made, index)
        if parcel is None:
            return TracedState("delivered" if whole else "pending")
    if parcel.visible_ms[index] == GONE:
        again = given_back(core, subscription, made, index)
        parcel, index = (parcel, index) if again is None else (again, 0)
    state = _push_state if subscription.protocol == "http" else _pull_state
    shown = state(parcel, index, core.now_ms())
    if shown.state == "dead":
        went = subscription_source(subscription).dead_letter
        return shown if went is None else replace(shown, dead_letter_queue=went.queue)
    return shown


def _made(
    subscription: Subscription, record: TopicRecord, delivery: Delivery, position: int
) -> tuple[Parcel, int]:
    """The parcel that fan-out made for the message, and the message's index in it."""
    for made in parcels_of(own_share(subscription, record, delivery)):
        positions = [made.position(index) for index in range(made.count)]
        if position in positions:
            return made, positions.index(position)
    raise AssertionError("a delivery's places all have parcels")


def _rekeyed(core: Core, made: Parcel, index: int) -> tuple[Parcel | None, int, bool]:
    """Returns the parcel with the message since it was moved, its index, and if all was read.

    The parcel is None if it is gone, or lies beyond the part that was read. Its key has its
    due time, which is written nowhere else: this reads the partition, up to a bound beyond which
    counts are approximate too. A dead letter's parcel is kept, so that it is found.
    """
    position = made.position(index)
    pk = partition_key(PARCELS, made.source_id, made.partition)
    seen = 0
    for page in scan_pages(core, pk, made.sort_key):
        for parcel in page.parcels:
            if parcel.send_id != made.send_id:
                continue
            for place in range(parcel.count):
                # Each place that it left on its way says so.
                if parcel.position(place) == position and parcel.visible_ms[place] != MOVED:
                    return parcel, place, True
        seen += len(page.parcels)
        if seen > limits.COUNT_EXACT_MESSAGES:
            return None, 0, page.more_after is None
    return None, 0, True


def _pull_state(parcel: Parcel, index: int, now_ms: int) -> TracedState:
    attempts = parcel.tries(index)
    if parcel.live(index):
        return TracedState("pending", attempts)
    return TracedState(_ENDS[parcel.visible_ms[index]], attempts)


def _push_state(parcel: Parcel, index: int, now_ms: int) -> TracedState:
    """Returns the state in the message's parcel: parcels of a subscription have their own times."""
    attempts, visible_ms = parcel.receives[index], parcel.visible_ms[index]
    posts = parcel.posts(index)
    if not parcel.live(index):
        return TracedState(_ENDS[visible_ms], attempts, posts=posts)
    if not attempts or visible_ms >= parcel.expires_ms:
        return TracedState("pending", attempts, posts=posts)
    # A message that is due, or waits for the probe, has no time of its next attempt.
    next_ms = visible_ms if visible_ms > now_ms else None
    return TracedState("retrying", attempts, next_ms, parcel.last_error(index) or None, posts=posts)
