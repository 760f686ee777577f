"""A walk through a partition, group by group, that may end before it has seen every group.

The caller passes a group when it has read enough of it: the next page begins behind it, so that the
cost follows the groups, never their backlog. Small groups are read several to a page:

    keys    a a a a a a a | b | c | d d d d d d
    pages   ■ ■ ■           ■   ■   ■ ■
                  a is passed         d is passed

A walk is bounded, by units, pages or time. One that ends early is `cut`, which is not the same as
nothing found: the next walk goes on behind that key. The first page is always read, so that walks
that continue an earlier one come to the end, however small the bounds are.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY, read_page

FIRST_PARCELS, MAX_PARCELS = 20, 320
"""Parcels of a walk's first page, and of a later one at most."""
MIN_PARCELS = 4
"""Parcels of a page that half a read unit pays for; a whole one with strong consistency."""
_GROWTH = 4
_PARCELS_PER_UNIT = 8
"""Parcels of 1 KiB that one unit reads with eventual consistency; half as many with strong."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a walk, which ends at the first page behind one of them."""

    units: float = float("inf")
    pages: float = float("inf")
    deadline_ms: float = float("inf")


class PartitionScan:
    """The parcels of a partition from a key on, in order of their keys.

    behind: the key behind which it begins; empty: before the first message.
    from_ms: the time in the first key; None means the first receivable message's.
    until: the last key, in a plain source. small: a small first page, as most walks find nothing.
    """

    def __init__(
        self,
        core: Core,
        source: Source,
        partition: int,
        bounds: Bounds,
        behind: str = "",
        *,
        from_ms: int | None = None,
        until: str = LAST_KEY,
        small: bool = False,
        consistent: bool = False,
    ) -> None:
        self._core, self._source, self._bounds = core, source, bounds
        self._pk = partition_key(PARCELS, source.id, partition)
        if from_ms is None:
            from_ms = source.query_from_ms(core.now_ms(), core.clock.scale)
        self._first_ms = from_ms
        self._behind = max(behind, FIRST_KEY if source.grouped else f"{self._first_ms:013d}")
        self._until, self._consistent = until, consistent
        self._first = MIN_PARCELS if small else FIRST_PARCELS
        self._group = ""
        self.units = 0.0
        """Read units of its pages."""
        self.pages = 0
        self.cut: str | None = None
        """The key behind which the next walk goes on, once this one is over; None: it has seen
        every group, and other messages do not exist."""

    def __iter__(self) -> Iterator[Parcel]:
        limit, after = self._first, self._behind
        while after < self._until:
            if self.pages and self._over():
                self.cut = after
                return
            self._behind = after
            page = read_page(
                *(self._core, self._pk, after, self._until, self._paid(limit)),
                from_exclusive=True,
                consistent=self._consistent,
            )
            self.units += page.units
            self.pages += 1
            for parcel in page.parcels:
                self._group = parcel.key_prefix
                self._skip_ended(parcel)
                yield parcel
            if page.more_after is None:
                return
            after = max(page.more_after, self._behind)
            # Behind a group that is passed, and had most of a page, the next one may be as long.
            of_last = sum(each.key_prefix == self._group for each in page.parcels)
            long = after != page.more_after and 2 * of_last > len(page.parcels)
            limit = MIN_PARCELS if long else min(_GROWTH * limit, MAX_PARCELS)

    def pass_group(self) -> None:
        """Skips the rest of the last parcel's group; parcels already read still come."""
        self._behind = f"{self._group}{LAST_KEY}"

    def skip_to(self, key: str) -> None:
        """Skips all parcels before a key of the last parcel's group."""
        self._behind = max(self._behind, f"{self._group}{key}")

    def _skip_ended(self, parcel: Parcel) -> None:
        """Skips a fair source's parcels of a group that can no longer be received."""
        if self._source.fair and parcel.key_ms < self._first_ms:
            self.skip_to(f"{self._first_ms:013d}")

    def _over(self) -> bool:
        bounds = self._bounds
        late = self._core.now_ms() >= bounds.deadline_ms
        return late or self.units >= bounds.units or self.pages >= bounds.pages

    def _paid(self, limit: int) -> int:
        left = max(0.0, self._bounds.units - self.units)
        if left == float("inf"):
            return limit
        paid = int(left * _PARCELS_PER_UNIT) // (2 if self._consistent else 1)
        return max(MIN_PARCELS, min(limit, paid))
