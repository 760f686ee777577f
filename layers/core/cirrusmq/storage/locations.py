"""Notes of the keys of messages whose due time was changed, for look-ups by their ids.

pk: `M#<source id>#<send id>`; sk: its number in the send, one hex digit. It is written in the
transaction that re-keys the message, and stays to the end of its life: one that is out of date
points to a parcel that does not have the message any more.
"""

from __future__ import annotations

from cirrusmq.model.parcel import Parcel
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import PARCELS, partition_key, ttl_seconds

_NOTES = "M"


def place_note(parcel: Parcel, index: int) -> Item:
    """Returns the note of a message in a parcel."""
    return {
        **key(*_note_key(parcel.source_id, parcel.send_id, parcel.position(index))),
        "q": {"N": str(parcel.partition)},
        "n": {"S": parcel.sort_key},
        "expires_at": {"N": str(ttl_seconds(parcel.expires_ms))},
    }


def read_place(core: Core, source_id: str, send_id: str, position: int) -> tuple[str, str] | None:
    """Returns the key of the parcel in a message's note, or None without a note. One read unit."""
    item = core.store.get(core.tables.messages, *_note_key(source_id, send_id, position))
    if item is None:
        return None
    return partition_key(PARCELS, source_id, int(item["q"]["N"])), item["n"]["S"]


def _note_key(source_id: str, send_id: str, position: int) -> tuple[str, str]:
    return f"{_NOTES}#{source_id}#{send_id}", f"{position:X}"
