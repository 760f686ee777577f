"""The mark of a partition's head: keys before which no message can be claimed, for all receivers.

Parcels in flight keep their keys, at the head of their partition. If it costs more than a unit to
read past them, one item for the partition has the key to begin behind:

    keys   ........in flight.........|..in flight..|.....receivable.....
                                   before        young
           read again after 1 to 27 s              read again after 0.3 s
           (its cost in units / 20)                (so that no first delivery is hidden)

`before` is never younger than 3 s: a key is at most 1 s older than its write (an attempt that is
older is stored under a later key), and clocks differ by 2 s. So the long-lived part hides leases
that end or were shortened, never a first delivery, nor a parcel that was moved to a later key.

A pass reads from the beginning. It ends where it finds something to claim, and leaves a cursor
there: all receivers begin at it, claim messages, and the first that finds none continues the pass.

    pass      ......in flight......F....in flight........|
                                   cursor              before, from the last pass

Pure values; `items` reads and writes them.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from cirrusmq.model.parcel import Parcel, key_ms

UNITS_PER_SECOND = 20
"""Read units a second, for a partition, that passes may cost."""
FREE_UNITS = 1.0
"""Every scan reads a range that costs at most this: to read the mark costs half of it."""
YOUNG_KEY_MS = 3_000
YOUNG_MS = 300
SHORTEST_MS = 1_000
LONGEST_MS = 27_000
"""With its jitter, and a scan that dies, an ended lease is seen within 30 s."""
LOOK_MS = 2_000
"""The lease of a receiver that continues a pass."""
YOUNG_LOOK_MS = 100
JITTER_MS, YOUNG_JITTER_MS = 500, 40
NEVER_MS = 1 << 60

BEGINNING = "!"
"""Sorts before all keys, and is not empty: a cursor there is a cursor."""

Role = Literal["pass", "young", "none"]
"""The part of the mark that a scan is to write: the progress of the pass, the young part, none."""
Place = Literal["beginning", "cursor", "before", "young"]
"""The start of a scan."""


class HeadMark(msgspec.Struct, frozen=True, kw_only=True):
    """The watermark of a head. Keys are sort keys of parcels, to begin behind; "" is before all."""

    before: str = ""
    until_ms: int = 0
    """When the next pass begins."""
    begun_ms: int = 0
    """When the present pass, or the last one, began."""
    units: float = 0.0
    """Read units that this pass has cost."""
    cursor: str = ""
    """The key that it has reached if it is not over, else ""."""
    lease_ms: int = 0
    """The end of the lease of the receiver that continues it."""
    young: str = ""
    """The end of the young part; empty if reading behind `before` costs a unit at most."""
    young_ms: int = 0
    """When a receiver last scanned the part behind `before`."""
    version: int = 0
    """Version of the item; 0 if none is stored."""

    def beyond(self, now_ms: int) -> str:
        """Returns the key to begin behind for a receiver that leaves the pass to others."""
        return max(self.before, self.young) if now_ms < self.young_ms + YOUNG_MS else self.before


class ScanStart(msgspec.Struct, frozen=True, kw_only=True):
    """The next step of a scan: behind the key `start`, to write its result as `role`."""

    start: str = ""
    place: Place = "beginning"
    role: Role = "none"
    mark: HeadMark = HeadMark()


class ScannedRange(msgspec.Struct):
    """The keys from a scan's start on in which it has found nothing to claim."""

    begun_ms: int
    units: float = 0.0
    end: str = ""
    """The last key."""
    old_units: float = 0.0
    old_end: str = ""
    """Units and last key of its beginning, whose keys are not young."""
    ready_ms: int = NEVER_MS
    """When the first message in its old part can be received, after the scan."""
    met_old: bool = False
    """True if a message to claim follows it under a key that is not young."""

    def add(self, parcels: list[Parcel], claimable: Parcel | None, units: float) -> None:
        """Adds a page that cost `units`, up to its first `claimable` parcel; None: it has none."""
        skipped = len(parcels) if claimable is None else parcels.index(claimable)
        each = units / max(1, len(parcels))
        self.units += units if claimable is None else each * skipped
        for parcel in parcels[:skipped]:
            self.end = parcel.sort_key
            if self._old(parcel):
                self.old_end = parcel.sort_key
                self.old_units += each
                self.ready_ms = min(self.ready_ms, self._ready_ms(parcel))
        self.met_old = claimable is not None and self._old(claimable)

    def _old(self, parcel: Parcel) -> bool:
        return key_ms(parcel.sort_key) <= self.begun_ms - YOUNG_KEY_MS

    def _ready_ms(self, parcel: Parcel) -> int:
        ready = [parcel.ready_ms(index) for index in range(parcel.count) if parcel.live(index)]
        return min((moment for moment in ready if moment > self.begun_ms), default=NEVER_MS)


def anything_due(mark: HeadMark, now_ms: int) -> bool:
    """Returns True if a receiver would write the mark now."""
    return now_ms >= mark.until_ms or (bool(mark.young) and now_ms >= mark.young_ms + YOUNG_MS)


def due(mark: HeadMark, now_ms: int, jitter: float) -> bool:
    """Returns True if it is time for another pass. jitter: this receiver's, from 0 to 1."""
    return now_ms >= mark.until_ms + jitter * JITTER_MS


def young_due(mark: HeadMark, now_ms: int, jitter: float) -> bool:
    """Returns True if a receiver should scan the part behind `before`."""
    return now_ms >= mark.young_ms + YOUNG_MS + jitter * YOUNG_JITTER_MS


def begin_pass(mark: HeadMark, now_ms: int) -> HeadMark:
    """Returns the mark after a receiver has begun a pass from the beginning."""
    return replace(mark, begun_ms=now_ms, units=0.0, cursor="", lease_ms=now_ms + LOOK_MS)


def go_on_with_pass(mark: HeadMark, now_ms: int) -> HeadMark:
    """Returns the mark after a receiver has continued the pass from its cursor."""
    return replace(mark, lease_ms=now_ms + LOOK_MS)


def look_at_young(mark: HeadMark, now_ms: int) -> HeadMark:
    """Returns the mark while a receiver scans the part behind `before`; the others wait."""
    return replace(mark, young_ms=now_ms - YOUNG_MS + YOUNG_LOOK_MS)


def after_pass(mark: HeadMark, start: str, stretch: ScannedRange) -> HeadMark | None:
    """Returns the mark after a pass from behind `start`, or None if it is not worth its cost."""
    units = round(mark.units + stretch.old_units, 3)
    cost_ms = int(units * 1000 / UNITS_PER_SECOND)
    ready_ms = min(SHORTEST_MS, stretch.ready_ms - stretch.begun_ms)
    until_ms = mark.begun_ms + min(LONGEST_MS, max(cost_ms, ready_ms))
    went = replace(mark, units=units, until_ms=until_ms, lease_ms=0)
    reached = stretch.old_end or start or BEGINNING
    if stretch.met_old:
        if units <= FREE_UNITS and mark.before <= reached:
            return None
        return replace(went, cursor=reached, before=max(mark.before, reached))
    if units + stretch.units - stretch.old_units <= FREE_UNITS:
        return None
    young = stretch.end if stretch.units - stretch.old_units > FREE_UNITS else ""
    return replace(went, cursor="", before=reached, young=young, young_ms=stretch.begun_ms)


def after_young(mark: HeadMark, stretch: ScannedRange) -> HeadMark:
    """Returns the mark after a receiver has scanned the part behind `before`.

    Keys that are no longer young make the next pass dearer, and put it off by their cost.
    """
    longer_ms = int(stretch.old_units * 1000 / UNITS_PER_SECOND)
    latest_ms = max(mark.until_ms, mark.begun_ms + LONGEST_MS)
    young = stretch.units - stretch.old_units > FREE_UNITS and not stretch.met_old
    return replace(
        mark,
        before=max(mark.before, stretch.old_end),
        until_ms=min(mark.until_ms + longer_ms, latest_ms),
        units=round(mark.units + stretch.old_units, 3),
        young=stretch.end if young else "",
        young_ms=stretch.begun_ms,
    )
