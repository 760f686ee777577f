"""Taking from a source with priorities: from the highest level that has something.

Keys are level by level, the highest first, and within a level in order of when they are due. A look
reads the partition from its beginning, so that levels without messages cost nothing. A level of
which nothing can be claimed on its page, and that has more behind it, is searched as the head of a
plain partition is, with its own mark; the next page begins behind the level.

    level      16 (all held)   9 (delayed)   5        2
    a look     ├── passed ───┤├─ passed ──┤├ claims ┤   not read, unless 5 has no more

A lower level is taken from only when nothing is left to claim above it: an answer that has messages
of a level which has more ends there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim import Claim
from cirrusmq.receiving.claim_batch import Batch, ReceiveLimits
from cirrusmq.receiving.heads.scan import (
    FEWEST_PER_PAGE,
    Head,
    claimable_indexes,
    pages_with_something,
)
from cirrusmq.receiving.ordered_pages import GroupLooks
from cirrusmq.receiving.unordered import claim_from, claimed_of, spread
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, ParcelPage, partition_key
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY, behind_group, read_page, until_key

_FEW = 4
"""Parcels for half a read unit; a receive of one message begins with those."""


def take_by_priority(
    core: Core, source: Source, partition: int, wanted: ReceiveLimits, walk: GroupLooks
) -> list[Claim]:
    """Claim up to the wanted number of messages, of the highest levels that have any."""
    batch = Batch(wanted)
    pk = partition_key(PARCELS, source.id, partition)
    levels = _Levels(core, source, pk, batch, walk)
    try:
        for prefix, page in levels:
            if not levels.take(prefix, page):
                break
    except Unavailable as error:  # of a page, when something may have been claimed already
        batch.refused = error
    return claimed_of(core, source, pk, batch)


class _Levels:
    """The levels of a partition that have keys, the highest first."""

    def __init__(self, core: Core, source: Source, pk: str, batch: Batch, walk: GroupLooks) -> None:
        self._core, self._source, self._pk, self._batch = core, source, pk, batch
        self._walk = walk

    def __iter__(self) -> Iterator[tuple[str, ParcelPage]]:
        """Each level with its first parcels; `more_after` if there may be more of it."""
        source, now_ms = self._source, self._core.now_ms()
        limit = _FEW if self._batch.wanted.most == 1 else FEWEST_PER_PAGE
        after: str | None = FIRST_KEY
        while after is not None:
            page = read_page(
                *(self._core, self._pk, after, LAST_KEY, limit),
                from_exclusive=True,
                consistent=False,
            )
            self._pay(page.units)
            for prefix, parcels in groupby(page.parcels, lambda parcel: parcel.key_prefix):
                held = list(parcels)
                last = held[-1].sort_key
                ends = last != page.more_after or last > until_key(source, now_ms, prefix)
                more = None if ends else last
                yield prefix, ParcelPage(held, more, page.units * len(held) / len(page.parcels))
            after, limit = behind_group(page), FEWEST_PER_PAGE

    def take(self, prefix: str, page: ParcelPage) -> bool:
        """Claim what a level has; whether nothing more of it can be claimed, so that the next one
        may be taken from."""
        core, source, batch = self._core, self._source, self._batch
        now_ms, before = core.now_ms(), batch.count
        seen = sum(len(claimable_indexes(core, source, each, now_ms)) for each in page.parcels)
        pages = pages_with_something(
            *(core, source, Head(self._pk, prefix), batch.wanted.most, page, self._pay, batch)
        )
        for parcels in pages:
            claim_from(core, source, self._pk, deque(spread(core, self._pk, parcels)), batch)
            if batch.ends:
                break
        if batch.refused is not None or batch.full:
            return False
        taken = batch.count - before
        return not taken or (page.more_after is None and taken == seen)

    def _pay(self, units: float) -> None:
        self._walk.units += units
        self._walk.units_left -= units
