"""Scans for messages to claim behind a head of an unordered source, past messages in flight."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from cirrusmq.lifecycle import chores
from cirrusmq.lifecycle.dead_letters.move import leaves
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim_batch import Batch
from cirrusmq.receiving.heads.memory import HeadMemory
from cirrusmq.receiving.heads.shared import begin, meet, tell
from cirrusmq.receiving.heads.watermark import FREE_UNITS, YOUNG_MS, ScannedRange, ScanStart
from cirrusmq.receiving.ordered_pages import GroupLooks
from cirrusmq.runtime.core import Core, LeftToService
from cirrusmq.storage.bodies.own_records import reads_bodies
from cirrusmq.storage.parcels import ParcelPage
from cirrusmq.storage.queries import from_key, read_page, until_key

FEWEST_PER_PAGE = 10
_FEW_AT_CLEAR_HEAD = 4
"""First page of a receive of one message, if the last scan found one at once: half a unit."""
_MAX_PER_PAGE = 2_000


class Head(msgspec.Struct, frozen=True):
    """The beginning of the keys that receives scan: a partition's, or a fair source's group's."""

    pk: str
    prefix: str = ""
    """The group's part of the keys; empty in a plain source."""
    reach: str = ""
    """`plain` or `event` for receives that pass over messages too large for them, else empty."""

    @property
    def name(self) -> str:
        """The name under which an environment and the store keep the head's mark and hints.

        A receive that passes messages over has a separate mark: another receive can take them.
        """
        name = f"{self.pk}#{self.prefix[:-1]}" if self.prefix else self.pk
        return f"{name}#~{self.reach}" if self.reach else name


class LeftMessages:
    """Messages that looks of a client's own process met, and that only the service can read."""

    def __init__(self) -> None:
        self._met = False

    def note(self) -> None:
        """One was met."""
        self._met = True

    def take(self) -> bool:
        """Returns True if one was met since the last call."""
        met, self._met = self._met, False
        return met


class Claimable(NamedTuple):
    """A parcel as a scan read it, with the indexes of its messages to claim: at least one."""

    parcel: Parcel
    indexes: list[int]


def visible_indexes(source: Source, parcel: Parcel, now_ms: int) -> list[int]:
    """Returns the indexes of a parcel's messages that are active now."""
    if not source.keeps(parcel) or source.withholds(parcel):
        return []
    return parcel.visible_indexes(now_ms)


def claimable_indexes(core: Core, source: Source, parcel: Parcel, now_ms: int) -> list[int]:
    """Returns the indexes to claim: without messages to dead-letter, if a queue takes those.

    Raises LeftToService in a client's own process for messages whose bodies it cannot read. Nothing
    of their page is claimed then, and no mark passes them.
    """
    indexes = visible_indexes(source, parcel, now_ms)
    if indexes and core.settings.in_process and not reads_bodies(core, source, parcel):
        core.memory(LeftMessages).note()
        raise LeftToService
    if not source.gives_up:
        return indexes
    return [each for each in indexes if not leaves(core, source, parcel, each, now_ms)]


def pay(walk: GroupLooks, units: float) -> None:
    """Takes units that a scan has used."""
    walk.units += units
    walk.units_left -= units


def read_behind(
    core: Core, walk: GroupLooks, pk: str, after: str, until: str, limit: int
) -> ParcelPage:
    """Returns a page of parcels behind the key `after`, for which the scans of a receive pay."""
    page = read_page(core, pk, after, until, limit, from_exclusive=True, consistent=False)
    pay(walk, page.units)
    return page


def by_group(page: ParcelPage, source: Source, now_ms: int) -> Iterator[tuple[str, ParcelPage]]:
    """Yields the groups of a page, or its levels, each with its parcels; `more_after` is set if
    more of the group may be receivable behind the page."""
    for prefix, parcels in groupby(page.parcels, lambda parcel: parcel.key_prefix):
        held = list(parcels)
        last = held[-1].sort_key
        ends = last != page.more_after or last > until_key(source, now_ms, prefix)
        units = page.units * len(held) / len(page.parcels)
        yield prefix, ParcelPage(held, None if ends else last, units)


def pages_with_something(
    core: Core,
    source: Source,
    head: Head,
    maximum: int,
    read: ParcelPage | None = None,
    walk: GroupLooks | None = None,
    batch: Batch | None = None,
) -> Iterator[list[Claimable]]:
    """Yields pages of parcels, from the first one on that has a message to claim.

    Parcels before it are in flight, or need cleanup, which is noted. Pages grow, so that a long
    range in flight takes few calls. The first page is small if one message is wanted and the last
    scan had nothing to pass: each parcel read takes CPU time, taken or not.

    read: a page from the head on that was read before. walk: pays for every other page. batch:
    decides which messages its answer cannot hold; None takes all. A scan that meets the first such
    message begins again, with the mark for such receives.
    """
    now_ms, pk, heads = core.now_ms(), head.pk, core.memory(HeadMemory)
    if batch is not None and batch.wanted.reach and heads.passes_over(head.name, now_ms):
        head = replace(head, reach=batch.wanted.reach)
    skip = _Skip(core, head.name, now_ms)
    behind, from_ = skip.start, from_key(core, source, now_ms, head.prefix)
    start, exclusive = max(from_, behind), bool(behind)
    until, limit = until_key(source, now_ms, head.prefix), max(FEWEST_PER_PAGE, maximum)
    if maximum == 1 and heads.clear(head.name, now_ms):
        limit = _FEW_AT_CLEAR_HEAD
    first, found, page = True, False, None if behind else read
    # Other clocks may be ahead: no query may begin behind its own end.
    while start < until:
        if page is None:
            page = read_page(
                core, pk, start, until, limit, from_exclusive=exclusive, consistent=False
            )
            if walk is not None:
                pay(walk, page.units)
        claimable, passes = _hopeful_of(core, source, page, now_ms, batch)
        chores.note(core, source, pk, page.parcels, now_ms)
        if passes and not found and not head.reach:
            heads.pass_over(head.name, now_ms)
            at_head = page if first and not behind else None
            yield from pages_with_something(core, source, head, maximum, at_head, walk, batch)
            return
        if first and page.parcels:
            # A receive of several messages leaves leases in front of the next scan.
            clear = maximum == 1 and not behind and _begins_with(page.parcels, claimable)
            heads.note_first(head.name, clear=clear)
        start, exclusive, first = skip.pass_page(page, claimable), True, False
        if claimable:
            found = True
            yield claimable
        if not start:
            break
        start, page = max(start, from_), None
        limit = min(4 * limit, _MAX_PER_PAGE)


def _begins_with(parcels: list[Parcel], claimable: list[Claimable]) -> bool:
    return bool(claimable) and claimable[0].parcel is parcels[0]


def _hopeful_of(
    core: Core, source: Source, page: ParcelPage, now_ms: int, batch: Batch | None
) -> tuple[list[Claimable], bool]:
    """Returns a page's parcels with messages to claim; True if any before them is passed over."""
    claimable, passes = list[Claimable](), False
    for parcel in page.parcels:
        indexes = claimable_indexes(core, source, parcel, now_ms)
        if not indexes:
            continue
        if batch is None or batch.holds_any(parcel, indexes):
            claimable.append(Claimable(parcel, indexes))
        elif not claimable:
            passes = True
    return claimable, passes


class _Skip:
    """The parts of a head that one scan need not read, by its mark and by the hints."""

    def __init__(self, core: Core, head: str, now_ms: int) -> None:
        self._core, self._head, self._now_ms = core, head, now_ms
        is_backlogged = core.memory(HeadMemory).is_backlogged(head, now_ms)
        self._approach = begin(core, head) if is_backlogged else ScanStart()
        self._stretch: ScannedRange | None = ScannedRange(now_ms)
        """The range without messages to claim; None after one was found, or at the end."""

    @property
    def start(self) -> str:
        """The key to begin behind, with regard to this environment's own last scan."""
        approach = self._approach
        if approach.role != "none" or approach.place not in ("before", "young"):
            return approach.start
        return self._core.memory(HeadMemory).seen(self._head, approach.start, self._now_ms)

    def pass_page(self, page: ParcelPage, claimable: list[Claimable]) -> str:
        """Returns the key to continue behind after a page, or "" at the end."""
        behind, stretch = page.more_after or "", self._stretch
        if stretch is None:
            return behind
        stretch.add(page.parcels, claimable[0].parcel if claimable else None, page.units)
        if claimable or not behind:
            self._tell(stretch)
            self._stretch = None
        elif stretch.units > FREE_UNITS:
            self._core.memory(HeadMemory).crowd(self._head, self._now_ms)
            self._approach = meet(self._core, self._head, self._approach)
            if (further := self.start) > behind:
                self._stretch = ScannedRange(self._now_ms)
                return further
        return behind

    def _tell(self, stretch: ScannedRange) -> None:
        core, head, approach = self._core, self._head, self._approach
        tell(core, head, approach, stretch)
        if approach.place in ("before", "young") and stretch.end:
            core.memory(HeadMemory).see(
                head, approach.start, stretch.end, stretch.begun_ms, YOUNG_MS
            )
