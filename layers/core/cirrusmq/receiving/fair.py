"""Receiving from the groups of a partition of a fair source, in round robin.

Keys are group by group, and within a group in order of when they are due, as in a plain partition.
The groups are a ring. A scan begins behind the group at which the last scan of its environment
ended, so that each group that has something to claim is served before any is served again:

    groups      a   b   c (100,000 wait)   d   e   f
    receives    ├── 1 ──────────────┤      ├── 2 ───  and on with a

A receive takes a quarter of its maximum from a group, rounded up; if messages are missing after it
has been all around, it takes more from the groups that have more. Small groups are read several to
a page. A group that has nothing to claim on its page, and more behind it, is scanned as the head of
a plain partition is, with a separate mark; the next page begins behind the group, however long the
group is. A message that is due later ends the scan of a group, since keys have the due time.

If groups have a limit in flight, as many parcels of a group are read as messages may be held, and a
few more, and the held messages in them count. So the limit is approximate: concurrent scans do not
see each other's claims, nor messages that are held behind those parcels.

If groups have a rate, each claim takes from it first. A group that has nothing left of the second
is passed (`group_rates`), and the scan takes from the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cirrusmq.lifecycle import chores
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim_batch import Batch
from cirrusmq.receiving.group_slices import (
    GroupSlice,
    fair_share,
    fill,
    take_from,
)
from cirrusmq.receiving.heads.scan import (
    FEWEST_PER_PAGE,
    Claimable,
    Head,
    by_group,
    claimable_indexes,
    pages_with_something,
    read_behind,
)
from cirrusmq.receiving.ordered_pages import GroupLooks
from cirrusmq.receiving.turn_memory import TurnMemory
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import ParcelPage
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY, behind_group

if TYPE_CHECKING:
    from cirrusmq.receiving.group_rates import GroupRate

_FEW, _MAX_PER_PAGE = 4, 80
"""Half a read unit pays for a few parcels; a receive of one message begins with those."""
_MAX_AT_ONCE = 64
"""Parcels of a partition that is read from its beginning, while scans there get nothing."""
_MAX_OF_GROUP = 512
"""Parcels that are read at most to count held messages, including parcels without messages."""
_PARCELS_PER_UNIT = 8
"""Parcels of 1 KiB that one unit reads with eventual consistency."""
_SEARCH_UNITS = 1.0
"""Most units of a scan's budget that the search in one group takes."""


def take_in_turn(core: Core, source: Source, batch: Batch, walk: GroupLooks) -> None:
    """Claims up to the wanted number of messages, from each group at most its share at first.

    Uses the read units that `walk` has left; the last page or search may exceed them.
    """
    ring = _RoundRobin(core, source, batch, walk)
    while not batch.claims and (lots := ring.lots()):
        take_from(core, source, lots, batch)


def take_of_group(core: Core, source: Source, batch: Batch, walk: GroupLooks) -> None:
    """Claims messages of the group whose hash `walk` begins with, out of its turn."""
    lot = _RoundRobin(core, source, batch, walk).lot_of(f"{walk.start}#")
    if lot is not None:
        take_from(core, source, [lot], batch)


class _RoundRobin:
    """The groups of a partition, from the group behind the last turn around."""

    def __init__(self, core: Core, source: Source, batch: Batch, walk: GroupLooks) -> None:
        self._core, self._source, self._pk, self._batch = core, source, batch.pk, batch
        self._limit = batch.wanted.limit
        self._walk = walk
        self._now_ms = core.now_ms()
        self._at_once = core.memory(TurnMemory).at_once(self._pk)
        self._parcels = 0
        """Parcels that were read, of all groups."""
        self._pages = 0
        """Pages with parcels, and groups that were passed."""
        self._passed: list[str] = []
        """Prefixes of groups that have nothing left of their rate, and are not read."""
        if source.group_rate is not None:
            from cirrusmq.receiving.group_rates import passed_groups

            self._passed = passed_groups(core, source)
        self._around = self._groups()

    def lots(self) -> list[GroupSlice]:
        """Returns the next groups with messages to claim: enough, or as far as the units go."""
        lots: list[GroupSlice] = []
        first, last, count = "", "", 0
        for prefix, page in self._around:
            lot = self._lot(prefix, page)
            if lot is not None:
                first = first or prefix
                lots.append(lot)
                count += min(fair_share(self._limit), lot.count(self._limit))
            last = prefix
            if count >= self._limit:
                if self._at_once > _FEW:
                    self._core.memory(TurnMemory).read_at_once(self._pk, 0)
                break
        else:
            if self._walk.units_left > 0:
                # All are among the lots: another one shall be the first of the next receive.
                last = first
                self._note_full_pass(barren=not lots)
        if last:
            self._core.memory(TurnMemory).take_turn(self._pk, f"{last}{LAST_KEY}")
        return lots

    def lot_of(self, prefix: str) -> GroupSlice | None:
        """The first messages of one group; None if it has none to claim, or may give none now."""
        if (rate := self._rate(prefix)) is not None and rate.is_full():
            return None
        limit = _FEW if self._limit == 1 else FEWEST_PER_PAGE
        page = self._read(prefix, f"{prefix}{LAST_KEY}", limit)
        groups = by_group(page, self._source, self._now_ms)
        return next((self._lot(*each) for each in groups), None)

    def _lot(self, prefix: str, page: ParcelPage) -> GroupSlice | None:
        rate = self._rate(prefix)
        if rate is not None and rate.is_full():
            if page.more_after is not None:
                rate.pass_by()
            return None
        page = self._as_many_as_may_be_held(prefix, page)
        room = self._room(page)
        claimable = self._hopeful(prefix, page) if room > 0 else []
        if not claimable:
            return None
        room = room if rate is None else min(room, rate.rate)
        return fill(self._core, self._pk, GroupSlice(prefix, room, rate), claimable)

    def _rate(self, prefix: str) -> GroupRate | None:
        if self._source.group_rate is None:
            return None
        # Few sources have a rate: the others' cold starts do without.
        from cirrusmq.receiving.group_rates import GroupRate

        return GroupRate(self._core, self._source, prefix, self._source.group_rate)

    def _note_full_pass(self, *, barren: bool) -> None:
        """Notes if the next scan reads the partition at once: it is small, or gave nothing."""
        parcels = self._parcels + _FEW if barren else max(_FEW, self._parcels)
        maximum = _MAX_AT_ONCE if barren else _FEW
        self._core.memory(TurnMemory).read_at_once(self._pk, parcels if parcels <= maximum else 0)

    def _as_many_as_may_be_held(self, prefix: str, page: ParcelPage) -> ParcelPage:
        """Returns a group's first parcels; reads more of them if messages in flight are limited."""
        maximum = self._source.max_in_flight
        while maximum is not None and page.more_after is not None and self._room(page) > 0:
            missing = maximum + FEWEST_PER_PAGE - sum(not each.spent() for each in page.parcels)
            if missing <= 0 or len(page.parcels) > _MAX_OF_GROUP:
                break
            more = self._read(page.more_after, f"{prefix}{LAST_KEY}", missing)
            parcels, units = [*page.parcels, *more.parcels], page.units + more.units
            page = ParcelPage(parcels, more.more_after, units)
        return page

    def _room(self, page: ParcelPage) -> int:
        """Returns how many more messages of a group may be held, by its first parcels."""
        source, now_ms = self._source, self._now_ms
        if source.max_in_flight is None:
            return self._limit
        held = (
            parcel.held(index, now_ms)
            for parcel in page.parcels
            if source.keeps(parcel) and now_ms < parcel.expires_ms
            for index in range(parcel.count)
        )
        return source.max_in_flight - sum(held)

    def _hopeful(self, prefix: str, page: ParcelPage) -> list[Claimable]:
        """Returns the first parcels of a group that have messages to claim."""
        core, source, now_ms = self._core, self._source, self._now_ms
        claimable = [
            Claimable(parcel, indexes)
            for parcel in page.parcels
            if (indexes := claimable_indexes(core, source, parcel, now_ms))
            and self._batch.holds_any(parcel, indexes)
        ]
        if claimable or page.more_after is None:
            chores.note(core, source, self._pk, page.parcels, now_ms)
            return claimable
        head, left = Head(self._pk, prefix), self._walk.units_left
        walk, batch = self._walk, self._batch
        pages = pages_with_something(core, source, head, self._limit, page, walk, batch)
        claimable = next(pages, [])
        # A long search costs the ring one unit at most: its mark spares the scans that follow.
        self._walk.units_left = max(self._walk.units_left, left - _SEARCH_UNITS)
        return claimable

    def _groups(self) -> Iterator[tuple[str, ParcelPage]]:
        """Yields the groups, each with its first parcels; `more_after` is set if more may follow.

        A small partition, and one in which a scan got nothing, is read from its beginning at once.
        """
        turns, pk = self._core.memory(TurnMemory), self._pk
        limit = _FEW if self._limit == 1 else max(FEWEST_PER_PAGE, self._limit)
        turn = turns.turn(pk) or f"{self._walk.start}{LAST_KEY}"
        reads_at_once = self._at_once and not self._passed
        if reads_at_once and self._at_once <= self._walk.units_left * _PARCELS_PER_UNIT:
            page = self._read(FIRST_KEY, LAST_KEY, max(limit, self._at_once))
            self._parcels = len(page.parcels)
            if page.more_after is None:
                groups = list(by_group(page, self._source, self._now_ms))
                yield from (each for each in groups if each[0] >= turn)
                yield from (each for each in groups if each[0] < turn)
                return
            turns.read_at_once(pk, 0)
            self._parcels = 0
        for begin, until in ((turn, LAST_KEY), (FIRST_KEY, turn)):
            after: str | None = begin
            while after is not None and after < until:
                if self._pages and self._walk.units_left <= 0:
                    return
                paid = int(self._walk.units_left * _PARCELS_PER_UNIT)
                passed = self._next_passed(after, until)
                page = self._read(after, passed or until, max(_FEW, min(limit, paid)))
                self._pages += bool(page.parcels or passed)
                yield from by_group(page, self._source, self._now_ms)
                after = behind_group(page)
                if after is None and passed is not None:
                    yield passed, ParcelPage([], None, 0)
                    after = f"{passed}{LAST_KEY}"
                if page.parcels:
                    limit = min(4 * limit, _MAX_PER_PAGE)
                    self._parcels += len(page.parcels)

    def _next_passed(self, after: str, until: str) -> str | None:
        """Returns the prefix of the next group between two keys that is not read, or None."""
        index = bisect_right(self._passed, after)
        following = self._passed[index : index + 1]
        return following[0] if following and following[0] < until else None

    def _read(self, after: str, until: str, limit: int) -> ParcelPage:
        return read_behind(self._core, self._walk, self._pk, after, until, limit)
