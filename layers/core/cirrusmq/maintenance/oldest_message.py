"""The send time of the oldest message that waits, once a minute, for an operator's alarm."""

from __future__ import annotations

from itertools import islice

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.scan import from_key, pages_by_group, read_page, until_key

LOOKED_AT = 20
"""Parcels at the head of each partition: enough to see past those that are held."""
_GROUP_PAGES = 64
"""Of a partition of a fair source, each with the heads of some groups, or of one."""


def oldest_ms(core: Core, source: Source) -> int | None:
    """When the oldest message was sent that could be received now and is not; None: none is.

    Only heads are read: behind 20 held parcels a message is not seen until those are removed. In
    a fair source those are of the groups, as many as 64 pages of a partition have.
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
    if source.fair:
        pages = islice(pages_by_group(core, pk, LOOKED_AT), _GROUP_PAGES)
        return [parcel for page in pages for parcel in page.parcels]
    return read_page(core, pk, start, until, LOOKED_AT, consistent=False).parcels
