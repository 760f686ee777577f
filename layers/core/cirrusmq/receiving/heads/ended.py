"""Parcels that have ended at the beginning of an ordered group, which scans need not read again.

Dead letters leave tombstones, and expired parcels stay until TTL removes them. A scan begins with
the first parcel of a group; behind many that have ended, an item has the key to begin behind:

    keys   ............ ended ............|.. ended lately ..|.. has a message ..
           cursor ──> a pass            before

`before` passes a parcel only if all calls that began before its end are over: such a call may put
a lower number:

    a send of 5   takes its number ........................... puts 5: before it, still scanned
    a send of 6          takes its number ── puts 6 ── 6 ends

A copy that is put later, by a fan-out that is done again, is found by the next pass: every 27 s at
the earliest, a scan spends half of its units on the keys up to `before`, and leaves a cursor where
it stops. A rewind puts messages back under their own keys; the same transaction voids the mark, so
that none of them is passed, and a scan that read the mark earlier cannot write it:

    a scan   reads the mark, version 1 ── reads on: nothing .............. writes 2: refused
    rewind                                   puts 3 back, voids: version 2
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.heads.items import group_head, mark_key, put_mark, read_mark
from cirrusmq.receiving.heads.watermark import UNITS_PER_SECOND, HeadMark
from cirrusmq.receiving.ordered_pages import Pages
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.storage.queries import LAST_KEY

LONG = 8
"""Parcels of a group that have ended, in a row, from which on its mark is read: that costs a unit,
as four parcels do."""
_EXTRA_UNITS = 40.0
"""Units for a scan that has used up its own: every scan reads the parcels that ended lately."""
_KEPT_MS = 27_000
"""Time until the next pass, unless the last one cost more than its share of that time."""


class _Way(msgspec.Struct):
    """The result of reading a group's beginning, in one piece."""

    ended: str
    """The last key up to which everything ended long ago; at first the start."""
    units: float = 0.0
    count: int = 0
    """Parcels that ended long ago."""
    left: list[Parcel] = []
    """The parcels of the last page, from the first one on that has not ended."""
    cut: bool = False
    """True if the units were used up before a parcel that has not ended, and before the end."""


class Beginning(msgspec.Struct):
    """The group that a scan reads, and the number of ended parcels at its beginning."""

    group: str = ""
    ended: int = 0
    """Ended parcels from the group's first one on; below 0 if a parcel has not ended."""

    def meet(self, group: str, *, ended: bool) -> None:
        """Counts a parcel that the scan has read."""
        if group != self.group:
            self.group, self.ended = group, 0
        self.ended = self.ended + 1 if ended and self.ended >= 0 else -1

    def close(self, group: str) -> None:
        """Ends the count: the scan is behind the group's ended parcels, or out of units."""
        self.group, self.ended = group, -1

    def goes_on(self, pages: Pages) -> bool:
        """Returns True if the group goes on, behind enough ended parcels that its mark is read."""
        if pages.behind is None or not pages.behind.startswith(f"{self.group}#"):
            return False
        return self.ended >= LONG or (self.ended > 0 and not pages.paid)


def first_left(
    core: Core, source: Source, pages: Pages, group: str
) -> tuple[list[Parcel], list[Parcel]]:
    """Returns parcels of a group from the first one on that has not ended, and the parcels before.

    The first list is empty if no such parcel is reached. `pages` then goes on behind these
    parcels, behind the group, or where the scan's units were used up.
    """
    head, now_ms = group_head(pages.pk, group), core.now_ms()
    item = core.store.get(core.tables.messages, *mark_key(head))
    seen = HeadMark() if item is None else read_mark(item)
    reader = _Reader(core, source, pages, group)
    mark, left = seen, list[Parcel]()
    if now_ms >= mark.until_ms and not mark.cursor:
        mark = replace(mark, begun_ms=now_ms, units=0.0, cursor=reader.first)
    if mark.before and mark.cursor:
        again = reader.read(mark.cursor, mark.before, pages.units_left / 2)
        mark, left = _again(mark, again), again.left
    way = _Way(mark.before)
    if not left:
        way = reader.read(mark.before or reader.first, reader.last, pages.units_left + _EXTRA_UNITS)
        mark, left = _further(mark, way), way.left
    if way.count >= LONG or (way.cut and way.count) or (seen.before and mark.cursor != seen.cursor):
        _write(core, head, seen, mark, now_ms)
    if not way.cut and pages.behind is None:
        pages.behind = reader.last
    return left, reader.passed


class _Reader:
    """Reads on in a group, page by page, while all parcels have ended."""

    def __init__(self, core: Core, source: Source, pages: Pages, group: str) -> None:
        self._core, self._source, self._pages = core, source, pages
        self.first, self.last = f"{group}#", f"{group}#{LAST_KEY}"
        self.passed: list[Parcel] = []
        """All parcels that it has read and that have ended."""

    def read(self, after: str, until: str, max_units: float) -> _Way:
        """Reads from behind a key to another one, until a parcel has not ended."""
        pages, now_ms = self._pages, self._core.now_ms()
        way, limit, long_ago = _Way(after), LONG, True
        begun_units = pages.units_left
        while True:
            parcels = pages.read_ended(after, until, limit)
            way.units = begun_units - pages.units_left
            for number, parcel in enumerate(parcels):
                if not self._source.has_ended(parcel, now_ms):
                    way.left = parcels[number:]
                    return way
                long_ago = long_ago and self._ended_long_ago(parcel, now_ms)
                if long_ago:
                    way.ended, way.count = parcel.sort_key, way.count + 1
                self.passed.append(parcel)
            if pages.behind is None:
                return way
            if way.units >= max_units:
                way.cut = True
                return way
            after, limit = pages.behind, 2 * limit

    def _ended_long_ago(self, parcel: Parcel, now_ms: int) -> bool:
        """Returns True if all calls that began before the parcel's end are over."""
        core = self._core
        latest_ms = max(parcel.first_received_ms)  # a deleted message has the time of its deletion
        if not parcel.spent():
            expired = now_ms >= parcel.expires_ms
            latest_ms = parcel.expires_ms if expired else self._source.purged_ms
        return latest_ms + int(limits.CALL_MS * core.clock.scale) + core.skew_ms < now_ms


def _again(mark: HeadMark, way: _Way) -> HeadMark:
    """Returns the mark after a pass has read on from its cursor, at most to `before`."""
    units = round(mark.units + way.units, 3)
    if way.cut:
        return replace(mark, units=units, cursor=way.ended)
    # A parcel that was put late ends the part that may be passed.
    before = way.ended if way.left else mark.before
    return replace(mark, units=units, cursor="", before=before, until_ms=_until_ms(mark, units))


def _further(mark: HeadMark, way: _Way) -> HeadMark:
    """Returns the mark after a scan has read on from behind `before`."""
    first = not mark.before
    units = round(mark.units + way.units, 3) if way.count else mark.units
    before = way.ended if way.count else mark.before
    after = replace(mark, units=units, before=before, until_ms=_until_ms(mark, units))
    return replace(after, cursor="") if first else after


def _until_ms(mark: HeadMark, units: float) -> int:
    return mark.begun_ms + max(_KEPT_MS, int(units * 1000 / UNITS_PER_SECOND))


def _write(core: Core, head: str, seen: HeadMark, mark: HeadMark, now_ms: int) -> None:
    """Puts a mark over the version that was read. It only saves units, so it may fail."""
    mark = replace(mark, version=seen.version + 1)
    try:
        core.store.write("PutItem", put_mark(core.tables.messages, head, mark, now_ms))
    except (ConditionFailed, Unavailable):
        return
