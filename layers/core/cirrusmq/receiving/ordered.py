"""Taking from the groups of a partition of an ordered source.

Keys are group by group, in order of sending. A receiver starts at a random group; if a group's
first live message cannot be claimed it jumps past the group, so that the cost depends on the
number of groups, never on their backlog. If many groups are held a look ends when it has cost
enough, and the next look of its environment goes on there, in this receive or, with half of its
units, in another one. So all looks of an environment together see every group: one that is free
among 1,000 of 1 KiB after 16 looks at its partition that get nothing, or 32 by a receive each.

Groups that are held are skipped by eventually consistent reads. From the first group with a
message to claim, reads are strongly consistent and begin with the group: one that missed an
earlier message, which a rewind made receivable again, could hand out a later one.
"""

from __future__ import annotations

import logging

import msgspec
from msgspec import field

from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle import dead_letters, rewound_groups, tombstones
from cirrusmq.lifecycle.dead_letter_policy import dead_letter_reason
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim import Claim, try_claim
from cirrusmq.receiving.cleanup import Budget
from cirrusmq.receiving.filling import Batch, Wanted
from cirrusmq.receiving.unordered import claimed_of
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, Page, partition_key
from cirrusmq.storage.scan import FIRST_KEY, LAST_KEY, read_page

_logger = logging.getLogger(__name__)
_FEWEST_PER_PAGE = 4
"""Half a read unit pays for so many: a parcel has at most 1 KiB."""
_FIRST_PAGE = 8
_MOST_AT_ONCE = 64
"""Parcels of a partition that is read in one page while looks there get nothing."""
_MOST_PER_PAGE = 80
_PARCELS_PER_UNIT = 8
"""Of 1 KiB, read with eventual consistency; half as many with strong."""


class Walk(msgspec.Struct):
    """The looks of a receive around the groups of partitions."""

    start: str
    """24 hex digits: the first look at a partition begins behind them."""
    looked_at: set[int] = field(default_factory=set)
    """The partitions that a look was at: the next one goes on where the last one was cut."""
    units_left: float = 0.0
    """Read units that the look at a partition has left."""
    units: float = 0.0
    """Read units of all looks so far."""


def take_from_groups(
    core: Core, source: Source, partition: int, wanted: Wanted, walk: Walk
) -> list[Claim]:
    """Claim up to the wanted number of messages, of each group its first ones in order."""
    batch = Batch(wanted, in_order=True)
    pk = partition_key(PARCELS, source.id, partition)
    pages, turn = _Pages(core, pk, walk, wanted.most), core.hints.turn(pk)
    free: list[str] = []
    try:
        if not turn or partition not in walk.looked_at:
            walk.looked_at.add(partition)
            first = pages.read(FIRST_KEY, LAST_KEY, core.hints.at_once(pk))
            free, _ = _free_groups(core, source, first, "")
            if pages.behind is None:  # these are all groups of the partition
                _take_of(core, source, pages, free, batch)
                pages.remember(barren=not batch.claims, cut=False)
                return claimed_of(core, source, batch)
            pages.passed = 0
            kept = walk.units_left / 2 if turn else 0.0
            walk.units_left -= kept
            _look_around(core, source, pages, walk.start, batch)
            turn = "" if pages.paid else turn
            walk.units_left += kept
        if turn and not batch.claims:
            _look_around(core, source, pages, turn, batch)
        pages.remember(barren=not batch.claims, cut=walk.units_left <= 0)
        if not batch.claims:
            # The only messages may be in front of the look's start.
            _take_of(core, source, pages, free, batch)
    except Unavailable as error:  # of a page, when something may have been claimed already
        batch.refused = error
    return claimed_of(core, source, batch)


class _Pages:
    """Reads a partition's pages, and pays for them."""

    def __init__(self, core: Core, pk: str, walk: Walk, most: int) -> None:
        self._core, self._pk, self._walk, self._most = core, pk, walk, most
        self.start = walk.start
        self._limit = max(_FIRST_PAGE, most)
        self.consistent = False
        self.budget = Budget(core)
        """The tidying up that is allowed on the way."""
        self.behind: str | None = None
        """The key to continue behind; None at the end."""
        self.passed = 0
        """Parcels that were read on the way around."""

    def read(self, after: str, until: str, at_once: int = 0) -> list[Parcel]:
        """The next parcels; only so many that they can be paid for."""
        paid = int(self._walk.units_left * _PARCELS_PER_UNIT) // (2 if self.consistent else 1)
        limit = max(_FEWEST_PER_PAGE, min(max(self._limit, at_once), paid))
        self._limit = min(2 * self._limit, _MOST_PER_PAGE)
        parcels = self._read(after, until, limit)
        self.passed += len(parcels)
        return parcels

    def remember(self, *, barren: bool, cut: bool) -> None:
        """Where the next look goes on behind one that got nothing, or whether it reads at once."""
        hints = self._core.hints
        if barren:
            hints.take_turn(self._pk, (self.behind or FIRST_KEY) if cut else "")
        small = barren and not cut and self.passed <= _MOST_AT_ONCE
        hints.read_at_once(self._pk, self.passed + _FEWEST_PER_PAGE if small else 0)

    def read_to_take(self, after: str, until: str) -> list[Parcel]:
        """As many parcels as are wanted, strongly consistent from now on."""
        self.consistent = True
        return self._read(after, until, max(_FEWEST_PER_PAGE, self._most))

    def go_on(self, passed: str) -> str | None:
        """The key to continue behind, if the group `passed` has no more messages; None: enough."""
        if self.behind is not None and _group(self.behind) == passed:
            self.behind = f"{passed}#{LAST_KEY}"
        return self.behind if self.paid else None

    @property
    def paid(self) -> bool:
        """Whether the look may cost more."""
        return self._walk.units_left > 0

    def _read(self, after: str, until: str, limit: int) -> list[Parcel]:
        page: Page = read_page(
            self._core,
            self._pk,
            after,
            until,
            limit,
            from_exclusive=True,
            consistent=self.consistent,
        )
        self._walk.units += page.units
        self._walk.units_left -= page.units
        self.behind = page.more_after
        return page.parcels


def _take_of(core: Core, source: Source, pages: _Pages, free: list[str], batch: Batch) -> None:
    """Take from these groups of a small partition, all of which are behind each other."""
    if not free:
        return
    first = next((group for group in free if group >= pages.start), free[0])
    _take_between(core, source, pages, first, LAST_KEY, batch)
    if not batch.full and free[0] < first:
        _take_between(core, source, pages, FIRST_KEY, first, batch)


def _look_around(core: Core, source: Source, pages: _Pages, begin: str, batch: Batch) -> None:
    """Look at the groups from `begin` around, and take from the first free one on."""
    for after, until in ((begin, LAST_KEY), (FIRST_KEY, begin)):
        free = after if pages.consistent else _find_free(core, source, pages, after, until)
        if free is not None:
            _take_between(core, source, pages, free, until, batch)
        if batch.full or not pages.paid:
            return


def _find_free(core: Core, source: Source, pages: _Pages, after: str, until: str) -> str | None:
    """The first group that has something to take, as far as can be paid for."""
    passed = ""
    behind: str | None = after
    while behind is not None:
        free, passed = _free_groups(core, source, pages.read(behind, until), passed)
        if free:
            return free[0]
        behind = pages.go_on(passed)
    return None


def _free_groups(
    core: Core, source: Source, parcels: list[Parcel], passed: str
) -> tuple[list[str], str]:
    """The groups that seem to have a message to claim or to dead-letter, and the last one seen.

    `passed`: the group at which the page before ended, if that one is held.
    """
    now_ms = core.now_ms()
    free = []
    for parcel in parcels:
        group = _group(parcel.sort_key)
        if group == passed or _over(source, parcel, now_ms) or parcel.spent():
            continue
        passed = group
        if source.withholds(parcel):
            continue
        first = next(place for place in range(parcel.count) if parcel.live(place))
        given_up = dead_letter_reason(source, parcel, first, now_ms)
        if given_up or parcel.receivable(first, now_ms) or parcel.awaits_group(first):
            free.append(group)
    return free, passed


def _take_between(
    core: Core, source: Source, pages: _Pages, after: str, until: str, batch: Batch
) -> None:
    done_with = ""
    parcels = pages.read_to_take(after, until)
    while True:
        for parcel in parcels:
            group = _group(parcel.sort_key)
            if group == done_with:
                continue
            if not _take_first(core, source, parcel, batch, pages.budget):
                done_with = group
            if batch.full:
                return
        behind = pages.go_on(done_with)
        if behind is None:
            return
        parcels = pages.read(behind, until)


def _take_first(core: Core, source: Source, parcel: Parcel, batch: Batch, budget: Budget) -> bool:
    """Take what can be had of a group's next parcel; whether the group's next one may follow."""
    now_ms = core.now_ms()
    if _over(source, parcel, now_ms):
        return True
    if parcel.spent():
        scale = core.clock.scale
        if (
            tombstones.may_vanish(source, parcel.visible_ms, parcel, now_ms, scale)
            and budget.spend()
        ):
            tombstones.clear(core, source, parcel, now_ms)
        return True
    if source.withholds(parcel):
        return False
    if (source.former or source.later) and not _is_first(core, source, parcel):
        return False
    left = _give_up_first(core, source, parcel, now_ms, budget)
    if left is None:
        return False
    parcel = rewound_groups.let_in(core, left, now_ms)
    live = [place for place in range(parcel.count) if parcel.live(place)]
    free: list[int] = []
    for place in live:
        # Behind a rewound message one may be used up: it is given up when it is the first one.
        used_up = free and dead_letter_reason(source, parcel, place, now_ms)
        if used_up or not parcel.receivable(place, now_ms):
            break
        free.append(place)
    places = batch.reserve(parcel, free)
    if not places:
        return not live
    outcome = try_claim(
        core, source, parcel, places, batch.wanted.timeout_seconds, batch.wanted.nonce_of
    )
    return batch.note(parcel, places, outcome) and places == live


def _is_first(core: Core, source: Source, parcel: Parcel) -> bool:
    """Whether nothing of the parcel's group is before it in another source of a rewound group."""
    # Few groups are rewound: the others' cold starts do without.
    from cirrusmq.lifecycle import former_sources

    return former_sources.is_first(core, source, parcel)


def _give_up_first(
    core: Core, source: Source, parcel: Parcel, now_ms: int, budget: Budget
) -> Parcel | None:
    """The rest of the parcel when its first messages are given up; None: not now."""
    try:
        return dead_letters.give_up_first(core, source, parcel, now_ms, budget.spend)
    except Unavailable as error:
        _logger.warning("a message of %s is not given up: %r", source.id, error.__cause__)
        budget.end()
        return None


def _over(source: Source, parcel: Parcel, now_ms: int) -> bool:
    """Whether the parcel's life is over, or it was purged."""
    return now_ms >= parcel.expires_ms or not source.keeps(parcel)


def _group(sort_key: str) -> str:
    return sort_key.partition("#")[0]
