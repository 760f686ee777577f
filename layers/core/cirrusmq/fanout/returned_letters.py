"""Giving a dead letter back to the subscription that gave it up, and to no other one.

Its life begins anew, and its parcel is its own: under the time of the move, or at the end of its
group. What does not fit into it has a record in a log of the subscription, which nobody reads in
order: one in the topic's log would be published again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.fanout.push_triggers import Notice, Notices
from cirrusmq.fanout.reader_parcels import ReaderShare, parcels_of
from cirrusmq.lifecycle.moves import move_out, origin
from cirrusmq.model.message import Message, pack
from cirrusmq.model.parcel import MOVED, Parcel, lone_parcel_id, others_of
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Subscription
from cirrusmq.receiving.lookup.find import LOOKUP_UNITS, near_both_ends
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.sending.making import Entry, group_partition
from cirrusmq.storage.bisection import ReadBudget
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.bodies.objects import keep_object
from cirrusmq.storage.parcels import PARCELS, log_item, parcel_item, partition_key
from cirrusmq.storage.queries import LAST_KEY
from cirrusmq.storage.sequences import take_sequence

LIFE_MS = limits.TOPIC_LIFE_SECONDS * 1000


def move_back(
    core: Core,
    source: Source,
    parcel: Parcel,
    place: int,
    subscription: Subscription,
    now_ms: int,
    notices: Notices,
    *,
    nonce: bytes | None = None,
    alongside: Sequence[Mapping[str, Any]] = (),
) -> Parcel | None:
    """Move the message at `place` to a group or a URL, as `move_to_queue` does to a queue.

    A URL is noted in `notices`, for whoever moves to send them.
    """
    (messages,) = read_contents(core, source, [(parcel, [place])])
    if place not in messages:
        return None
    days = parcel.object_days
    if days:
        kept = keep_object(core, parcel.send_id, days, now_ms + LIFE_MS, now_ms)
        if kept is None:
            return None
        days = kept
    arrived = replace(
        _arriving(core, source, parcel, place, subscription, messages[place], days, now_ms),
        fanned_out=False,
        moved_from=origin(core, source, parcel, [place], now_ms),
        others=others_of(parcel, [place]),
    )
    items = [parcel_item(arrived), *_record(arrived, messages[place])]
    nonces = {} if nonce is None else {place: nonce}
    left = move_out(core, source, parcel, [place], items, now_ms, nonces, alongside=alongside)
    if left is not None and subscription.protocol == "http":
        # A group's consumers look, or the stream wakes its worker.
        notices.note(
            Notice(
                subscription=subscription,
                start=arrived.sort_key,
                partitions=frozenset({arrived.partition}),
                posts=1,
                bytes=arrived.answer_bytes(0),
            )
        )
    return left


def _arriving(
    core: Core,
    source: Source,
    parcel: Parcel,
    place: int,
    subscription: Subscription,
    message: Message,
    days: int,
    now_ms: int,
) -> Parcel:
    """The parcel of the message in its subscription."""
    position, partition = parcel.position(place), subscription.partition_of(parcel.send_id)
    seconds = parcel.visibility_seconds
    sequences = None
    if subscription.ordered and subscription.protocol == "pull":
        sequences = [_sequence(core, subscription, message)]
    share = ReaderShare(
        source_id=subscription.present_id,
        entries=[
            Entry(
                position=position,
                message=message,
                available_ms=now_ms,
                visibility_seconds=seconds[place] if seconds else 0,
            )
        ],
        parcel_id=lone_parcel_id(
            *(parcel.send_id, position, now_ms), f"{source.id}#{parcel.sort_key}"
        ),
        partition=partition,
        log=f"{subscription.id}#{partition}",
        sent_ms=now_ms,
        expires_ms=now_ms + LIFE_MS,
        skew_ms=0,
        sequences=sequences,
        group_partitions=subscription.log_partitions,
        inline=True,
        log_is_own=False,
        object_days=days,
        invokes=subscription.invoke is not None,
    )
    (arrived,) = parcels_of(share)
    return arrived


def given_back(core: Core, subscription: Subscription, made: Parcel, index: int) -> Parcel | None:
    """The parcel of a dead letter since it came back to its subscription, the newest one; None
    where there is none, or not found within `LOOKUP_UNITS`: a group's is gone when it is deleted.

    `made`: the one that fan-out made, with the message at `index`.
    """
    source_ids = [subscription.present_id, *(epoch.id for epoch in reversed(subscription.epochs))]
    partition, between = subscription.partition_of(made.send_id), (made.sort_key, LAST_KEY)
    if subscription.ordered and subscription.protocol == "pull":
        group, _, _ = made.sort_key.partition("#")
        partition, between = made.partition, (f"{group}#", f"{group}#{LAST_KEY}")
    budget = ReadBudget(LOOKUP_UNITS)
    for number, source_id in enumerate(source_ids):
        share = budget.portion(budget.left / (len(source_ids) - number))
        pk = partition_key(PARCELS, source_id, partition)
        found = [
            parcel
            for parcel in near_both_ends(core, pk, between, share)
            if parcel.send_id == made.send_id
            and parcel.came_alone
            and parcel.position(0) == made.position(index)
            and parcel.visible_ms[0] != MOVED
        ]
        if found:
            return max(found, key=lambda each: (each.live(0), each.sort_key))
    return None


def _sequence(core: Core, subscription: Subscription, message: Message) -> int:
    """Its place in its group's order, behind all that were published; 1 in a group of its own."""
    if message.group is None:
        return 1
    partition = group_partition(message.group, subscription.log_partitions)
    return take_sequence(core, subscription.topic_id, partition, 1)


def _record(arrived: Parcel, message: Message) -> list[Item]:
    """The record of a message that its parcel has no room for."""
    if arrived.log is None:
        return []
    times = arrived.sent_ms, arrived.expires_ms
    positions = (arrived.position(0),)
    content = pack([message])
    return [log_item(arrived.log, arrived.parcel_id, positions, content, *times, None)]
