"""Removing a parcel in which nothing is left: whoever sees that, does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cirrusmq import limits, ulid
from cirrusmq.core import Core
from cirrusmq.parcel import DELETED, DROPPED, GONE, MOVED, Parcel
from cirrusmq.source import Source
from cirrusmq.storage.parcels import PARCELS, archive_item, partition_key
from cirrusmq.storage.store import ConditionFailed, TransactionRefused, key


def parcel_key(parcel: Parcel) -> dict[str, Any]:
    """The key of a parcel's item."""
    return key(partition_key(PARCELS, parcel.source_id, parcel.partition), parcel.sort_key)


def may_vanish(
    source: Source, states: Sequence[int], parcel: Parcel, now_ms: int, scale: float
) -> bool:
    """Whether a parcel whose messages ended in these states may be removed.

        client    send (attempt) ──> answer lost ............ the same send again
        store     stored ──> received ──> moved to a retry    key taken? else a second copy

    Until no attempt can be that old, the empty parcel stays and holds the key. One that says of a
    published message that it is dead stays for the message's trace, until TTL removes it.
    """
    if source.traced and (GONE in states or DROPPED in states):
        return False
    moved = GONE in states or MOVED in states
    age_ms = now_ms - ulid.time_of(parcel.send_id)
    return not moved or age_ms > limits.TOMBSTONE_MS * scale


def clear(core: Core, source: Source, parcel: Parcel, now_ms: int) -> None:
    """Remove a spent parcel, into the archive where its deleted messages can be rewound."""
    deleted = any(rewindable(source, parcel, place) for place in range(parcel.count))
    if not may_vanish(source, parcel.visible_ms, parcel, now_ms, core.clock.scale):
        return
    conditions = " AND ".join(f"v[{place}] <= :none" for place in range(parcel.count))
    removal = {
        "TableName": core.tables.messages,
        "Key": parcel_key(parcel),
        "ConditionExpression": conditions,
        "ExpressionAttributeValues": {":none": {"N": "0"}},
    }
    until_ms = rewindable_until(source, parcel)
    try:
        if deleted and until_ms > now_ms:
            put = {
                "TableName": core.tables.messages,
                "Item": archive_item(parcel, until_ms),
            }
            core.store.transact([{"Delete": removal}, {"Put": put}])
        else:
            core.store.write("DeleteItem", removal)
    except (ConditionFailed, TransactionRefused):
        return  # somebody else removed it, or rewound it meanwhile


def rewindable(source: Source, parcel: Parcel, place: int) -> bool:
    """Whether the message at `place` was deleted since rewinding is on.

    A deleted message has the time of its deletion in the place of its first receive.
    """
    deleted = parcel.visible_ms[place] == DELETED
    return deleted and parcel.first_received_ms[place] > source.rewind_floor_ms


def rewindable_until(source: Source, parcel: Parcel) -> int:
    """When a deleted message of the parcel can no longer be rewound; 0 = it never can."""
    if not source.rewind_seconds:
        return 0
    return min(parcel.sent_ms + source.rewind_seconds * 1000, parcel.expires_ms)
