"""When the next message of a source can be received, as its heads tell.

Delays and ended waits cause no event of the stream, so whoever leaves a source asks for the next.
Held messages do not count: their worker asks when it leaves, and if it dies the sweep does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from cirrusmq.base.limits import CALLED_BYTES
from cirrusmq.model.parcel import Parcel, key_prefix
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.scan import LAST_KEY, from_key, pages_by_group, read_page

LOOKED_AT = 20
"""Parcels at the head of each partition: the first that are not held are mostly among them."""
_GROUP_PAGES = 64
"""Of a partition of a fair source, each with the heads of some groups, or of one."""


def next_ready_ms(core: Core, source: Source) -> int | None:
    """When the next message is ready, which may be over; None where none is seen to wait.

    At most two small pages a partition: the head, and behind it the first key that is still to
    come. Of an ordered source, only the head: its keys do not say when messages are ready. Of a
    fair one both for each group, as far as 64 small pages of a partition reach.
    """
    now_ms = core.now_ms()
    times = [
        ready_ms
        for each in source.all
        for partition in range(each.partitions)
        for parcels in _pages(core, each, partition, now_ms)
        for ready_ms in _ready_of(each, parcels, now_ms)
    ]
    return min(times, default=None)


def _pages(core: Core, source: Source, partition: int, now_ms: int) -> Iterator[list[Parcel]]:
    pk = partition_key(PARCELS, source.id, partition)
    if source.fair:
        for page in islice(pages_by_group(core, pk, LOOKED_AT), _GROUP_PAGES):
            yield page.parcels
            if page.more_after is not None:
                prefix = key_prefix(page.more_after)
                coming, until = f"{prefix}{now_ms:013d}", f"{prefix}{LAST_KEY}"
                coming = max(page.more_after, coming)
                yield read_page(core, pk, coming, until, 1, consistent=False).parcels
        return
    start = from_key(core, source, now_ms) or "!"
    head = read_page(core, pk, start, LAST_KEY, LOOKED_AT, consistent=False)
    yield head.parcels
    if head.more_after is not None and not source.ordered:
        coming = max(head.more_after, f"{now_ms:013d}")
        yield read_page(core, pk, coming, LAST_KEY, 1, consistent=False).parcels


def _ready_of(source: Source, parcels: Iterable[Parcel], now_ms: int) -> Iterator[int]:
    """When messages are ready that nobody holds; in an ordered source the first of each group."""
    groups: set[str] = set()
    for parcel in parcels:
        if not source.keeps(parcel) or parcel.expires_ms <= now_ms:
            continue
        if source.withholds(parcel):
            continue  # whoever rewinds the group wakes a worker when it may be received
        for place in range(parcel.count):
            if not parcel.live(place):
                continue
            if source.ordered:
                group = parcel.sort_key.partition("#")[0]
                if group in groups:
                    continue
                groups.add(group)
            if parcel.answer_bytes(place) > CALLED_BYTES:
                continue  # no worker can hand it over
            if not parcel.held(place, now_ms) and parcel.ready_ms(place) < parcel.expires_ms:
                yield parcel.ready_ms(place)
