"""How many messages a source holds: counted exactly up to a bound, beyond it in proportion."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq import counters
from cirrusmq.core import Core
from cirrusmq.limits import COUNT_EXACT_MESSAGES
from cirrusmq.parcel import Parcel
from cirrusmq.scan import from_key, scan_pages
from cirrusmq.source import Source
from cirrusmq.spent import rewindable, rewindable_until
from cirrusmq.storage.parcels import ARCHIVE, PARCELS, partition_key


class Counts(msgspec.Struct):
    """Messages by state; `oldest_ms` is when the oldest active one was sent."""

    active: int = 0
    inactive: int = 0
    delayed: int = 0
    rewindable: int = 0
    oldest_ms: int | None = None

    @property
    def kept(self) -> int:
        """Messages not yet deleted."""
        return self.active + self.inactive + self.delayed

    def show(self, now_ms: int) -> dict[str, Any]:
        """The counts as answers show them."""
        age_ms = 0 if self.oldest_ms is None else now_ms - self.oldest_ms
        return {
            "active": self.active,
            "inactive": self.inactive,
            "delayed": self.delayed,
            "rewindable": self.rewindable,
            "oldest_active_age_seconds": age_ms // 1000,
        }


def count(core: Core, source: Source) -> Counts:
    """Count a source's messages now.

    Beyond 10,000 the rest is taken from the meter's counter, divided as those counted are.
    """
    now_ms = core.now_ms()
    counts = Counts()
    complete = _count_live(core, source, counts, now_ms)
    if source.rewind_seconds:
        complete = _count_archive(core, source, counts, now_ms) and complete
    if not complete and counts.kept:
        kept = counters.read_kept(core, source.id).messages
        factor = max(1.0, kept / counts.kept)
        counts.active = round(counts.active * factor)
        counts.inactive = round(counts.inactive * factor)
        counts.delayed = round(counts.delayed * factor)
    return counts


def _count_live(core: Core, source: Source, counts: Counts, now_ms: int) -> bool:
    """Whether all was counted."""
    start = from_key(core, source, now_ms)
    for partition in range(source.partitions):
        pk = partition_key(PARCELS, source.id, partition)
        for page in scan_pages(core, pk, start):
            for parcel in page.parcels:
                if now_ms < parcel.expires_ms and parcel.sent_ms > source.purged_ms:
                    _add(counts, source, parcel, now_ms)
            if counts.kept > COUNT_EXACT_MESSAGES:
                return False
    return True


def _add(counts: Counts, source: Source, parcel: Parcel, now_ms: int) -> None:
    within = rewindable_until(source, parcel) > now_ms
    for place in range(parcel.count):
        if parcel.receivable(place, now_ms) or parcel.awaits_group(place):
            counts.active += 1
            counts.oldest_ms = min(counts.oldest_ms or parcel.sent_ms, parcel.sent_ms)
        elif parcel.delayed(place, now_ms):
            counts.delayed += 1
        elif parcel.live(place):
            counts.inactive += 1
        elif within and rewindable(source, parcel, place):
            counts.rewindable += 1


def _count_archive(core: Core, source: Source, counts: Counts, now_ms: int) -> bool:
    oldest_ms = max(0, now_ms - source.rewind_seconds * 1000)
    for partition in range(source.partitions):
        pk = partition_key(ARCHIVE, source.id, partition)
        for page in scan_pages(core, pk, f"{oldest_ms:013d}"):
            for parcel in page.parcels:
                within = rewindable_until(source, parcel) > now_ms
                if within and parcel.sent_ms > source.purged_ms:
                    places = range(parcel.count)
                    counts.rewindable += sum(rewindable(source, parcel, n) for n in places)
            if counts.rewindable > COUNT_EXACT_MESSAGES:
                return False
    return True
