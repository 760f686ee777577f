"""Rewound messages of an ordered queue: none is received while a later one of its group is held.

    1 and 2 deleted, 3 held by B ──> rewind: 1 waits, and holds the others ──> B settles 3
    receivers look at 1: is something behind it held? yes: it waits ..................... no: free

The first rewound message of a group stays hidden (it "waits": its time is its expiry), and holds
back all others. A receiver that finds the group free makes it visible, and in the same transaction
changes the message that was first before, so that a claim of that message by a receiver that read
it earlier fails:

    B: reads 3 ........................................ claims 3 as it was read: refused
    A:          rewind: 1 waits ──> A: 1 is visible, 3 changed ──> claims 1
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cirrusmq.lifecycle.moves import REWOUND
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.transitions import Changes, MessageChange, admitted, changed, preceded
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.parcels import PARCELS, parcel_key, partition_key
from cirrusmq.storage.queries import LAST_KEY, scan_pages

_LOOKED_AT = 20
"""Parcels that one receiver, or a few after one another, can hold of a group."""


def group_of(parcel: Parcel) -> str:
    """Returns the prefix of the sort keys of a group's parcels."""
    return parcel.sort_key.partition("#")[0]


def let_in(core: Core, parcel: Parcel, now_ms: int) -> Parcel:
    """Makes the messages that wait in a parcel visible if their group is free.

    Returns the parcel after that.
    """
    waiting = [index for index in range(parcel.count) if parcel.awaits_group(index)]
    if not waiting:
        return parcel
    there = _messages_behind(core, parcel)
    if any(each.held(index, now_ms) for each in there for index in range(each.count)):
        return parcel
    parcels = {parcel.sort_key: parcel}
    changes: dict[str, dict[int, MessageChange]] = {parcel.sort_key: {}}
    since_ms = parcel.first_received_ms[waiting[0]]
    for each in there:
        indexes = _places_there(each, since_ms)
        if indexes:
            parcels[each.sort_key] = each
            changes[each.sort_key] = {indexes[0]: preceded(each, indexes[0])}
            break
    own = parcels[parcel.sort_key]
    let = {index: admitted(own, index, now_ms) for index in waiting}
    changes[parcel.sort_key] = let | changes[parcel.sort_key]
    try:
        core.store.transact(
            [_update(core, each, changes[sort_key]) for sort_key, each in parcels.items()]
        )
    except TransactionRefused:
        return parcel
    let = {index: admitted(parcel, index, now_ms) for index in waiting}
    return changed(changed(parcel, let), changes[parcel.sort_key])


def _messages_behind(core: Core, parcel: Parcel) -> list[Parcel]:
    """Returns the group's first parcels, from its first one before the rewind on.

    That one may be behind many rewound ones: its key is cached for a minute.
    """
    since_ms = next(
        parcel.first_received_ms[index]
        for index in range(parcel.count)
        if parcel.awaits_group(index)
    )

    def find() -> str:
        for each in _behind(core, parcel, parcel.sort_key, None):
            if _places_there(each, since_ms):
                return each.sort_key
        return ""

    pk = partition_key(PARCELS, parcel.source_id, parcel.partition)
    first = core.slow_cache.get((pk, parcel.sort_key, since_ms), find) or find()
    return list(_behind(core, parcel, first, _LOOKED_AT)) if first else []


def _behind(core: Core, parcel: Parcel, first: str, limit: int | None) -> Iterator[Parcel]:
    """Yields the parcels of the group from the key `first` on, at most `limit` if it is given."""
    pk = partition_key(PARCELS, parcel.source_id, parcel.partition)
    for page in scan_pages(core, pk, first, f"{group_of(parcel)}#{LAST_KEY}", limit=limit):
        yield from page.parcels
        if limit is not None:
            return


def _places_there(parcel: Parcel, since_ms: int) -> list[int]:
    """Returns the indexes of a parcel's messages that could be received before the rewind."""
    return [
        index
        for index in range(parcel.count)
        if parcel.live(index) and not parcel.awaits_group(index)
        if not (
            parcel.moved_from == REWOUND
            and not parcel.receives[index]
            and parcel.visible_ms[index] >= since_ms
        )
    ]


def _update(core: Core, parcel: Parcel, changes: Changes) -> dict[str, Any]:
    """Returns a transaction's change of messages that are as they were read."""
    still = as_read(parcel, changes, "visible_ms")
    return {"Update": change(core.tables.messages, parcel_key(parcel), changes, still)}
