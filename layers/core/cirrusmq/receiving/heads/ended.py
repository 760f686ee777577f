"""What has ended at the beginning of an ordered group, which looks need not read again and again.

Dead letters leave tombstones, and what has expired stays until TTL removes it. A look begins with
the first parcel of a group; behind many that have ended, an item has the key to begin behind:

    keys   ............ ended ............|.. ended lately ..|.. has a message ..
           cursor ──> a pass            before

`before` only passes what ended so long ago that no call can still put a lower number:

    a send of 5   takes its number ........................... puts 5: before it, still looked at
    a send of 6          takes its number ── puts 6 ── 6 ends

A copy that is put later than that, by a fan-out that is done again, is found by the next pass:
every 27 s at the earliest a look spends half of its units on what is before `before`, and leaves a
cursor where it stops. A rewind puts messages back under their own keys; the same transaction voids
the mark, so that none of them is passed, and who read the mark before writes none:

    a look   reads the mark, version 1 ── reads on: nothing .............. writes 2: refused
    rewind                                   puts 3 back, voids: version 2
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.heads.items import group_head, mark_place, put_mark, read_mark
from cirrusmq.receiving.heads.watermark import UNITS_PER_SECOND, HeadMark
from cirrusmq.receiving.ordered_pages import Pages
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.storage.queries import LAST_KEY

LONG = 8
"""Parcels of a group that have ended, read one after the other: to ask for its mark costs a unit,
as four of them do."""
_EXTRA_UNITS = 40.0
"""Of a look that has used up its own: what ended lately is read by every look."""
_KEPT_MS = 27_000
"""Until the next pass, unless the last one cost more than its share of that time."""


class _Way(msgspec.Struct):
    """What a look has read of a group's beginning, in one piece."""

    ended: str
    """The last key of which this and everything before it ended long ago; at first the start."""
    units: float = 0.0
    count: int = 0
    """Parcels that ended long ago."""
    left: list[Parcel] = []
    """The parcels of the last page, from the first one on that has not ended."""
    cut: bool = False
    """Whether the units were used up before anything was left, or the end was reached."""


class Beginning(msgspec.Struct):
    """The group that a look reads, and whether all that it has read of it has ended."""

    group: str = ""
    ended: int = 0
    """Parcels from its first one on; below 0 where one has not."""

    def meet(self, group: str, *, ended: bool) -> None:
        """The look has read a parcel."""
        if group != self.group:
            self.group, self.ended = group, 0
        self.ended = self.ended + 1 if ended and self.ended >= 0 else -1

    def close(self, group: str) -> None:
        """The look has come to what is left of a group, or as far as it may."""
        self.group, self.ended = group, -1

    def goes_on(self, pages: Pages) -> bool:
        """Whether there is more of the group, behind so much that the mark is to be asked for."""
        if pages.behind is None or not pages.behind.startswith(f"{self.group}#"):
            return False
        return self.ended >= LONG or (self.ended > 0 and not pages.paid)


def has_ended(source: Source, parcel: Parcel, now_ms: int) -> bool:
    """Whether the parcel has no message that may ever be received, as it is."""
    return parcel.spent() or source.is_over(parcel, now_ms)


def first_left(
    core: Core, source: Source, pages: Pages, group: str
) -> tuple[list[Parcel], list[Parcel]]:
    """Parcels of a group from the first one on that has not ended, none where that is not reached;
    and those that were read before them.

    `pages` then goes on behind them, behind the group, or where the look's units were used up.
    """
    head, now_ms = group_head(pages.pk, group), core.now_ms()
    item = core.store.get(core.tables.messages, *mark_place(head))
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
    """Reads on in a group, page by page, while everything has ended."""

    def __init__(self, core: Core, source: Source, pages: Pages, group: str) -> None:
        self._core, self._source, self._pages = core, source, pages
        self.first, self.last = f"{group}#", f"{group}#{LAST_KEY}"
        self.passed: list[Parcel] = []
        """All that it has read, and that has ended."""

    def read(self, after: str, until: str, most_units: float) -> _Way:
        """Read from behind a key to another one."""
        pages, now_ms = self._pages, self._core.now_ms()
        way, limit, long_ago = _Way(after), LONG, True
        begun_units = pages.units_left
        while True:
            parcels = pages.read_ended(after, until, limit)
            way.units = begun_units - pages.units_left
            for number, parcel in enumerate(parcels):
                if not has_ended(self._source, parcel, now_ms):
                    way.left = parcels[number:]
                    return way
                long_ago = long_ago and self._ended_long_ago(parcel, now_ms)
                if long_ago:
                    way.ended, way.count = parcel.sort_key, way.count + 1
                self.passed.append(parcel)
            if pages.behind is None:
                return way
            if way.units >= most_units:
                way.cut = True
                return way
            after, limit = pages.behind, 2 * limit

    def _ended_long_ago(self, parcel: Parcel, now_ms: int) -> bool:
        """Whether no call that began before the parcel was put can still be at work."""
        core = self._core
        latest_ms = max(parcel.first_received_ms)  # a deleted message has the time of its deletion
        if not parcel.spent():
            expired = now_ms >= parcel.expires_ms
            latest_ms = parcel.expires_ms if expired else self._source.purged_ms
        return latest_ms + int(limits.CALL_MS * core.clock.scale) + core.skew_ms < now_ms


def _again(mark: HeadMark, way: _Way) -> HeadMark:
    """The mark when a pass has read on from its cursor, at most to `before`."""
    units = round(mark.units + way.units, 3)
    if way.cut:
        return replace(mark, units=units, cursor=way.ended)
    # Something that was put late ends what may be passed.
    before = way.ended if way.left else mark.before
    return replace(mark, units=units, cursor="", before=before, until_ms=_until_ms(mark, units))


def _further(mark: HeadMark, way: _Way) -> HeadMark:
    """The mark when a look has read on from behind `before`."""
    first = not mark.before
    units = round(mark.units + way.units, 3) if way.count else mark.units
    before = way.ended if way.count else mark.before
    after = replace(mark, units=units, before=before, until_ms=_until_ms(mark, units))
    return replace(after, cursor="") if first else after


def _until_ms(mark: HeadMark, units: float) -> int:
    return mark.begun_ms + max(_KEPT_MS, int(units * 1000 / UNITS_PER_SECOND))


def _write(core: Core, head: str, seen: HeadMark, mark: HeadMark, now_ms: int) -> None:
    """Put a mark over the one seen, which only saves units: it may fail."""
    mark = replace(mark, version=seen.version + 1)
    try:
        core.store.write("PutItem", put_mark(core.tables.messages, head, mark, now_ms))
    except (ConditionFailed, Unavailable):
        return
