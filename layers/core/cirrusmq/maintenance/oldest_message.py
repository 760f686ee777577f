"""The send time of the oldest message that waits, once a minute, for an operator's alarm."""

from __future__ import annotations

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.scan import from_key, read_page, until_key

LOOKED_AT = 20
"""Parcels at the head of each partition: enough to see past those that are held."""


def oldest_ms(core: Core, source: Source) -> int | None:
    """When the oldest message was sent that could be received now and is not; None: none is.

    Only heads are read: behind 20 held parcels a message is not seen until those are removed.
    """
    now_ms = core.now_ms()
    start, until = from_key(core, source, now_ms) or "!", until_key(source, now_ms)
    if until <= start:
        return None
    return min(
        (
            parcel.sent_ms
            for partition in range(source.partitions)
            for parcel in _head(core, source, partition, start, until)
            if now_ms < parcel.expires_ms and source.keeps(parcel)
            if any(parcel.receivable(place, now_ms) for place in range(parcel.count))
        ),
        default=None,
    )


def _head(core: Core, source: Source, partition: int, start: str, until: str) -> list[Parcel]:
    pk = partition_key(PARCELS, source.id, partition)
    return read_page(core, pk, start, until, LOOKED_AT, consistent=False).parcels
