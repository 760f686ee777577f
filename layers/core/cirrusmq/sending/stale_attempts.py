"""Sends that are stored long after their attempt began: their keys must not be older than they.

    a client     attempt ── tries ── tries ──────────────── is answered
    the head     ....passed....: a key of the attempt's time is hidden by the mark for 27 s
    instead      [tombstone under that key, for repetitions]   [the messages under the present]

Both in one transaction. A key that is a second old at most needs none of this.
"""

from __future__ import annotations

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.model.parcel import MOVED, key_ms, tombstone_until
from cirrusmq.model.transitions import under_key
from cirrusmq.runtime.store import Item
from cirrusmq.sending.making import Items
from cirrusmq.storage.parcels import parcel_item, read_parcel, ttl_seconds


def under_present_keys(items: Items, now_ms: int, scale: float) -> Items:
    """The items for an unordered queue, its parcels with old keys re-keyed."""
    parcels = [each for item in items.parcels for each in _fresh(item, now_ms, scale)]
    return replace(items, parcels=tuple(parcels))


def under_due_key(items: Items, due_ms: int, scale: float) -> Items:
    """The items of one message, due at `due_ms`, which does not follow from its send's id.

    A message that was re-keyed already has its tombstone.
    """
    *marks, item = items.parcels
    if not marks:
        return replace(items, parcels=tuple(_rekeyed(item, due_ms, due_ms, scale)))
    moved = under_key(read_parcel(item), [0], due_ms, due_ms, None)
    return replace(items, parcels=(*marks, parcel_item(moved)))


def _fresh(item: Item, now_ms: int, scale: float) -> list[Item]:
    if now_ms - key_ms(item["sk"]["S"]) <= limits.FRESH_KEY_MS:
        return [item]
    return _rekeyed(item, now_ms, None, scale)


def _rekeyed(item: Item, new_key_ms: int, due_ms: int | None, scale: float) -> list[Item]:
    """The tombstone under the old key, and the messages under the new one.

    due_ms: None leaves them due when they are.
    """
    parcel = read_parcel(item)
    tombstone = replace(parcel, visible_ms=(MOVED,) * parcel.count, content=None)
    end_ms = tombstone_until(parcel, scale) + 1
    places = range(parcel.count)
    due_ms = parcel.visible_ms[0] if due_ms is None else due_ms
    moved = under_key(parcel, places, new_key_ms, due_ms, parcel.moved_from)
    return [
        parcel_item(tombstone) | {"expires_at": {"N": str(ttl_seconds(end_ms))}},
        parcel_item(moved),
    ]
