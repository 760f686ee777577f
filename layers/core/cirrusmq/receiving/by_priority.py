"""Taking from a source with priorities: from the highest level that has something.

Keys are level by level, the highest first, and within a level in order of when they are due. A look
reads the partition from its beginning, so that levels without messages cost nothing. A level of
which nothing can be claimed on its page, and that has more behind it, is searched as the head of a
plain partition is, with its own mark; the next page begins behind the level.

    level      16 (all held)   9 (delayed)   5        2
    a look     ├── passed ───┤├─ passed ──┤├ claims ┤   not read, unless 5 has no more

A lower level is taken from only when nothing is left to claim above it: an answer that has messages
of a level which has more ends there. With `ageing_seconds`, messages of a lower level that have
waited long enough go before a higher one (`ageing`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Protocol

import msgspec

from cirrusmq.model.parcel import key_ms
from cirrusmq.model.priority import Rank
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim_batch import Batch
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
from cirrusmq.receiving.unordered import claim_from, spread
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, ParcelPage, partition_key
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY, behind_group, until_key

_SEARCH_UNITS = 4.0
"""Read units after which the search for a level's old messages reads no further page."""
_AS_OLD_MS = 1_000
"""Time between messages of a level that count as one age."""
_FEW = 4
"""Parcels for half a read unit; a receive of one message begins with those."""


class _OtherPartitions(Protocol):
    """The other partitions of a source, as far as a receive knows them: `BestLevels`."""

    def allows(self, partition: int, rank: Rank) -> bool: ...
    def before_higher_ms(self, prefix: str) -> int | None: ...
    def note(self, partition: int, rank: Rank) -> None: ...
    def ends(self, partition: int) -> None: ...


def take_by_priority(
    core: Core,
    source: Source,
    batch: Batch,
    walk: GroupLooks,
    partition: int,
    others: _OtherPartitions | None = None,
) -> None:
    """Claims up to the wanted number of messages, of the highest levels that have any.

    others: ends the take if another partition is better; None means there is only this one.
    """
    levels = _Levels(core, source, batch.pk, batch, walk)
    order: Iterator[_Level] = levels.from_highest()
    if source.ageing_seconds is not None:
        order = _by_age(core, source, batch.pk, levels, source.ageing_seconds * 1_000)
    if others is not None:
        order = _while_best(levels, order, partition, others)
    for turn in order:
        if turn.waits or not levels.take(turn):
            break


def first_rank(core: Core, source: Source, partition: int) -> tuple[Rank | None, float]:
    """Returns the level that a take would begin with, or None, and read units. Claims nothing.

    Messages that some receives cannot hold count, too: others can.
    """
    pk, walk = partition_key(PARCELS, source.id, partition), GroupLooks("")
    levels = _Levels(core, source, pk, None, walk)
    if source.ageing_seconds is not None:
        from cirrusmq.receiving.ageing import AgeMemory

        now_ms, ageing_ms = core.now_ms(), source.ageing_seconds * 1_000
        oldest = levels.all_oldest()
        core.memory(AgeMemory).note_all(pk, now_ms, oldest)
        ranks = [Rank(prefix, oldest_ms) for prefix, oldest_ms in oldest.items()]
        first = min(ranks, key=lambda each: each.served_ms(ageing_ms), default=None)
        return first, walk.units
    for turn in map(levels.look, levels.from_highest()):
        oldest_ms = levels.earliest_of(turn)
        if oldest_ms is not None:
            return Rank(turn.prefix, oldest_ms), walk.units
    return None, walk.units


class _Level(msgspec.Struct, frozen=True):
    """A level whose turn it is, with its first parcels; `more_after` if there may be more of it."""

    prefix: str
    page: ParcelPage
    found: tuple[list[Claimable], Iterator[list[Claimable]]] | None = None
    """Parcels with something to claim, and the pages behind them; None if nobody has looked yet."""
    until_ms: int | None = None
    """Only messages that became active by then are taken; None means all of the level."""
    waits: bool = False
    """True if the rest of the level is for the next answer: some of its messages were taken."""


def _by_age(
    core: Core, source: Source, pk: str, levels: _Levels, ageing_ms: int
) -> Iterator[_Level]:
    """Yields the highest levels first, before each the lower ones that are old enough for it."""
    # Few queues have ageing: the others' cold starts do without.
    from cirrusmq.receiving.ageing import AgeMemory

    ages, now_ms = core.memory(AgeMemory), core.now_ms()
    if ages.is_due(pk, now_ms):
        ages.note_all(pk, now_ms, levels.all_oldest())
    served: set[str] = set()
    for turn in map(levels.look, levels.from_highest()):
        if turn.prefix in served:  # its page was read before
            yield msgspec.structs.replace(turn, waits=True)
            return
        oldest_ms = levels.oldest_of(turn)
        rank = None if oldest_ms is None else Rank(turn.prefix, oldest_ms)
        for older in () if rank is None else ages.older(pk, rank, ageing_ms):
            if older.prefix not in served:
                assert rank is not None
                lower = levels.look(levels.first_of(older.prefix))
                before, until_ms = levels.count, older.old_enough_ms(rank, ageing_ms)
                yield msgspec.structs.replace(lower, until_ms=until_ms)
                if levels.count > before:
                    served.add(older.prefix)
                else:
                    ages.note(pk, older.prefix, levels.oldest_of(lower))
        yield turn


def _while_best(
    levels: _Levels, order: Iterator[_Level], partition: int, others: _OtherPartitions
) -> Iterator[_Level]:
    """Yields the levels that have something to claim, until another partition is better.

    With ageing a part of a level may go before another partition's higher level, and the rest not:

        partition 0   level 1 of 0 s ── goes first      level 1 of 9 s ── waits
        partition 1               level 2 of 14 s, which counts as of 4 s
    """
    for turn in order:
        seen = levels.look(turn) if turn.found is None else turn
        oldest_ms = levels.earliest_of(seen)
        if oldest_ms is None:
            continue
        if not others.allows(partition, Rank(seen.prefix, oldest_ms)):
            return
        until_ms = others.before_higher_ms(seen.prefix)
        if until_ms is None or (seen.until_ms is not None and seen.until_ms <= until_ms):
            yield seen
            continue
        yield msgspec.structs.replace(seen, until_ms=until_ms)
        others.note(partition, Rank(seen.prefix, until_ms + 1))  # of the rest, if there is any
        return
    others.ends(partition)


class _Levels:
    """The levels of a partition that have keys, the highest first."""

    def __init__(
        self, core: Core, source: Source, pk: str, batch: Batch | None, walk: GroupLooks
    ) -> None:
        """batch: the messages that are claimed; None only looks."""
        self._core, self._source, self._pk, self._batch = core, source, pk, batch
        self._limit = 1 if batch is None else batch.wanted.limit
        self._walk = walk

    @property
    def count(self) -> int:
        """Messages that were claimed of all levels."""
        return 0 if self._batch is None else self._batch.count

    def all_oldest(self) -> dict[str, int]:
        """Returns when the oldest claimable message of each level may have become active, by its
        prefix."""
        turns = map(self.look, self._pages(_FEW, _FEW))
        found = {turn.prefix: self.earliest_of(turn) for turn in turns}
        return {prefix: ms for prefix, ms in found.items() if ms is not None}

    def earliest_of(self, turn: _Level) -> int | None:
        """Returns when the oldest message of a level may have become active, None without any.

        Messages whose leases ended may be in front of older ones, which have later keys: if there
        is more of a level, its oldest one counts from the last key that was read, at the latest.
        """
        oldest_ms = self.oldest_of(turn)
        if oldest_ms is None or turn.found is None or turn.page.more_after is None:
            return oldest_ms
        return min(oldest_ms, key_ms(turn.found[0][-1].parcel.sort_key))

    def oldest_of(self, turn: _Level) -> int | None:
        """Returns when the oldest message that a look found became active, None without any."""
        return None if turn.found is None else self._oldest_ms(turn.found[0])

    def look(self, turn: _Level) -> _Level:
        """Returns the turn with the first parcels that have something to claim."""
        pages = self._pages_of(turn)
        return msgspec.structs.replace(turn, found=(next(pages, []), pages))

    def first_of(self, prefix: str) -> _Level:
        """Returns a level with its first parcels, out of its turn."""
        until = until_key(self._source, self._core.now_ms(), prefix)
        page = read_behind(self._core, self._walk, self._pk, prefix, until, FEWEST_PER_PAGE)
        return _Level(prefix, page)

    def from_highest(self) -> Iterator[_Level]:
        """Yields the levels from the highest one on."""
        first = _FEW if self._limit == 1 else FEWEST_PER_PAGE
        return self._pages(first, FEWEST_PER_PAGE)

    def _pages(self, limit: int, further: int) -> Iterator[_Level]:
        """Yields the levels with keys, by pages of `limit` parcels and then of `further` ones."""
        source, now_ms = self._source, self._core.now_ms()
        after: str | None = FIRST_KEY
        while after is not None:
            page = read_behind(self._core, self._walk, self._pk, after, LAST_KEY, limit)
            for prefix, part in by_group(page, source, now_ms):
                yield _Level(prefix, part)
            after, limit = behind_group(page), further

    def take(self, turn: _Level) -> bool:
        """Claims what a level has.

        Returns True if nothing more of it can be claimed: the next one may be taken from.
        """
        core, source, batch, page = self._core, self._source, self._batch, turn.page
        assert batch is not None
        if turn.until_ms is not None:
            return self._take_aged(turn, turn.until_ms)
        now_ms, before = core.now_ms(), batch.count
        seen = sum(len(claimable_indexes(core, source, each, now_ms)) for each in page.parcels)
        for parcels in self._pages_of(turn):
            claim_from(core, source, deque(self._spread(parcels)), batch)
            if batch.ends:
                break
        if batch.refused is not None or batch.full:
            return False
        taken = batch.count - before
        return not taken or (page.more_after is None and taken == seen)

    def _spread(self, parcels: list[Claimable]) -> list[Claimable]:
        """Returns parcels in order, or shuffled if other receivers take from the same head.

        If levels age, the first ones alone: a later message must not pass an older lower one that
        was behind the first ones by age.
        """
        if self._source.ageing_seconds is None:
            return spread(self._core, self._pk, parcels)
        until_ms = key_ms(parcels[0].parcel.sort_key) + _AS_OLD_MS
        near = [each for each in parcels if key_ms(each.parcel.sort_key) <= until_ms]
        return spread(self._core, self._pk, near) + parcels[len(near) :]

    def _take_aged(self, turn: _Level, until_ms: int) -> bool:
        """Claims a level's messages that were active by a time. Returns True if all were seen."""
        core, batch, paid = self._core, self._batch, self._walk.units
        assert batch is not None
        before = batch.count
        for parcels in self._pages_of(turn):
            old = deque(self._old_enough(parcels, until_ms))
            claim_from(core, self._source, old, batch)
            if batch.refused is not None or batch.full:
                return False
            if key_ms(parcels[-1].parcel.sort_key) > until_ms:
                return True
            if batch.count > before or self._walk.units - paid >= _SEARCH_UNITS:
                return batch.count == before
        return True

    def _pages_of(self, turn: _Level) -> Iterator[list[Claimable]]:
        """Yields the pages of a level with something to claim."""
        if turn.found is not None:
            first, behind = turn.found
            return chain([first] if first else [], behind)
        head = Head(self._pk, turn.prefix)
        return pages_with_something(
            *(self._core, self._source, head, self._limit, turn.page, self._walk, self._batch)
        )

    def _old_enough(self, parcels: list[Claimable], until_ms: int) -> list[Claimable]:
        """Returns the parcels with a message that became active by a time."""
        oldest = [self._oldest_ms([each]) for each in parcels]
        return [
            each
            for each, oldest_ms in zip(parcels, oldest, strict=True)
            if oldest_ms is not None and oldest_ms <= until_ms
        ]

    def _oldest_ms(self, parcels: list[Claimable]) -> int | None:
        """Returns when the oldest claimable message of parcels became active, None without any.

        A send that is repeated late has the time of its first attempt in its key: it was not there
        yet.
        """
        return min(
            (
                max(each.parcel.ready_ms(index), each.parcel.sent_ms)
                for each in parcels
                for index in each.indexes
            ),
            default=None,
        )
