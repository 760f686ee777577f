"""A message that comes to a subscription alone, not with its publish, and with its own expiry.

Its parcel has the time of its arrival, or the end of its group, so that a scan finds it. Content
that does not fit into it has a record in a log of the subscription, which nobody reads in order: a
record in the topic's log would be published again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cirrusmq.base import limits
from cirrusmq.fanout.reader_parcels import ReaderShare, parcels_of
from cirrusmq.model.message import Message, pack
from cirrusmq.model.parcel import Parcel, lone_parcel_id
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.sending.making import Entry, group_partition
from cirrusmq.storage.bodies.objects import keep_object
from cirrusmq.storage.parcels import log_item, parcel_item
from cirrusmq.storage.sequences import take_sequence

LIFE_MS = limits.TOPIC_LIFE_SECONDS * 1000


def lone_parcel(
    core: Core,
    subscription: Subscription,
    message: Message,
    place: tuple[str, int],
    came_from: str,
    now_ms: int,
    *,
    others: Mapping[str, Any],
    object_days: int = 0,
    visibility_seconds: int = 0,
) -> Parcel | None:
    """Returns the parcel of a message in its subscription, or None if its object is gone.

    `place`: its publish, and its number there. `came_from`: what makes the parcel's id unlike
    others of this message. `others`: extra attributes of the parcel. `object_days`: the class of
    life of the object with its body; 0: none.
    """
    (send_id, position), days = place, object_days
    if days:
        kept = keep_object(core, send_id, days, now_ms + LIFE_MS, now_ms)
        if kept is None:
            return None
        days = kept
    partition = subscription.partition_of(send_id)
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
                visibility_seconds=visibility_seconds,
            )
        ],
        parcel_id=lone_parcel_id(send_id, position, now_ms, came_from),
        partition=partition,
        log=f"{subscription.id}#{partition}",
        sent_ms=now_ms,
        expires_ms=now_ms + LIFE_MS,
        sequences=sequences,
        group_partitions=subscription.log_partitions,
        object_days=days,
        invokes=subscription.invoke is not None,
        others=others,
    )
    (arrived,) = parcels_of(share)
    return arrived


def items_of(arrived: Parcel, message: Message) -> list[Item]:
    """The items of a lone parcel: itself, and a record if it has no room for its message."""
    items = [parcel_item(arrived)]
    if arrived.log is not None:
        times = arrived.sent_ms, arrived.expires_ms
        positions, content = (arrived.position(0),), pack([message])
        items.append(log_item(arrived.log, arrived.parcel_id, positions, content, *times, None))
    return items


def _sequence(core: Core, subscription: Subscription, message: Message) -> int:
    """Returns its number in its group, after all published messages, or 1 if it has no group."""
    if message.group is None:
        return 1
    partition = group_partition(message.group, subscription.log_partitions)
    return take_sequence(core, subscription.topic_id, partition, 1)
