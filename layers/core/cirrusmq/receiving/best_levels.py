"""Levels over the partitions of a source: a receive begins with the best one.

One item for each source has, for each partition, the level that a look through it found first, and
when that look began:

    partition      0          1          2          3
    best level     3          16         none       9        looked through at 12:00:00.2
    a receive      1: level 16, and no lower one than 9 ── 3: level 9 …

A receive goes by such a look, made here or elsewhere, for `TRUSTED_MS` at most. So no message of a
higher level waits longer than that while lower ones are received:

    looks      0 ─────────────── 0.5 ────── 0.8 s ───────────────
    a sender        16 into 2
    receives        by the look   one looks  all look, if nobody has

Senders write nothing. Nothing depends on the item: without it each environment looks for itself. So
if an environment has not looked for `STEADY_MS`, only one of `FIRST_PUT` looks is put: a message
that comes alone pays no write, and many environments that receive rarely find an item. It is put
without a condition, since it has its own time: if an older look is written over a newer one, it is
only looked through again sooner.

pk `H#<source id>#best`, sk `best`: `t`, when the look began; `l`, the levels, 0 for none; `o`, when
the oldest messages of these levels became active, with `ageing_seconds`. TTL removes it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle import chores
from cirrusmq.lifecycle.chore_memory import ChoreMemory
from cirrusmq.model.priority import Rank, level_prefix, priority_in
from cirrusmq.model.source import Source
from cirrusmq.receiving.by_priority import first_rank
from cirrusmq.receiving.heads.scan import pay
from cirrusmq.receiving.ordered_pages import GroupLooks
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import HEAD_MARKS, PARCELS, partition_key, ttl_seconds

TRUSTED_MS = 800
"""Time for which receives go by a look, from its beginning. With the delay of reads, a message is
seen within a second."""
AGAIN_MS = 500
"""Time after which an environment may look through all partitions again: a random one up to
`TRUSTED_MS`, so that one of many is the first."""
STEADY_MS = 10_000
"""A look is put for others if this environment knew of one less than that time before."""
FIRST_PUT = 8
"""One of this number of other looks is put."""
MAX_SOURCES = 1_000
"""Sources whose best levels an environment remembers."""
_KEPT_MS = 3_600_000
_PLACE = "best"


class _BestLook(msgspec.Struct):
    """The best level of each partition, as a look through all of them found it."""

    stamp_ms: int
    """When it began, by the clock of the environment that looked."""
    since_ms: int
    """When it began, and no later than this environment first knew of it."""
    ranks: list[Rank | None]
    again_ms: int
    """The age from which this environment looks again."""


class BestMemory:
    """The last looks through the partitions of sources. Safe to share between threads.

    May be lost at any time: the next receive reads the item, or looks.
    """

    def __init__(self) -> None:
        self._looks: dict[str, _BestLook] = {}
        self._lock = threading.Lock()

    def known(self, source_id: str) -> _BestLook | None:
        """Returns the last look, whatever its age."""
        with self._lock:
            return self._looks.get(source_id)

    def keep(self, source_id: str, look: _BestLook) -> None:
        """Keeps a look, instead of the one before."""
        with self._lock:
            # Put at the end, so the first one is of the source that was looked at longest ago.
            self._looks.pop(source_id, None)
            if len(self._looks) >= MAX_SOURCES:
                del self._looks[next(iter(self._looks))]
            self._looks[source_id] = look

    def note(self, look: _BestLook, partition: int, rank: Rank | None) -> None:
        """Notes what a receive has found in one partition since a look."""
        with self._lock:
            look.ranks[partition] = rank


class BestLevels:
    """The partitions of a source in the order in which one receive takes from them."""

    def __init__(self, core: Core, source: Source, walk: GroupLooks) -> None:
        self._core, self._source, self._walk = core, source, walk
        self._look: _BestLook | None = None
        self._ranks: list[Rank | None] = []
        """The best level of each partition, as far as this receive knows."""
        self._unseen: set[int] = set()
        """Partitions of which this receive has seen nothing itself."""
        self._begun_ms = core.now_ms()
        self._found: dict[int, Rank | None] = {}
        """The best level of partitions that were looked at before the look through all."""

    def seems_empty(self, partitions: Sequence[int]) -> bool:
        """Returns True if nothing can be claimed in any of these partitions. Claims nothing.

        Raises Unavailable if the store does not answer.
        """
        for partition in partitions:
            self._found[partition] = self._first_in(partition)
            if self._found[partition] is not None:
                return False
        return True

    def in_order(self, partitions: Sequence[int]) -> Iterator[int]:
        """Yields the partitions to take from, the one with the best level first.

        A partition comes again if another one was found to be better. Partitions that were empty
        come last: something may have been sent there since.
        """
        self._unseen = set(range(self._source.partitions))
        self._ranks = list(self._present().ranks)
        while left := [each for each in partitions if self._ranks[each] is not None]:
            yield from self._turn(min(left, key=self._value))
        for partition in partitions:
            if partition in self._unseen:
                yield from self._turn(partition)

    def _turn(self, partition: int) -> Iterator[int]:
        before = self._value(partition)
        self._unseen.discard(partition)
        yield partition
        if self._value(partition) <= before:  # refused by the store, or bodies that are not there
            self._ranks[partition] = None

    def allows(self, partition: int, rank: Rank) -> bool:
        """Returns True if no other partition is known to have a better level. Notes this one."""
        self.note(partition, rank)
        mine = self._value(partition)
        return all(mine <= self._value(each) for each in range(len(self._ranks)))

    def before_higher_ms(self, prefix: str) -> int | None:
        """Returns until when messages of a level became active that go before higher levels of
        other partitions. None: all of them do, or none of the others has a higher level."""
        ageing_seconds = self._source.ageing_seconds
        if ageing_seconds is None:  # `allows` has compared the levels
            return None
        own, level = Rank(prefix, 0), priority_in(prefix)
        higher = [rank for rank in self._ranks if rank and priority_in(rank.prefix) > level]
        return min(
            (own.old_enough_ms(each, ageing_seconds * 1_000) for each in higher), default=None
        )

    def ends(self, partition: int) -> None:
        """Notes that nothing more can be claimed in a partition."""
        self.note(partition, None)

    def note(self, partition: int, rank: Rank | None) -> None:
        """Notes the best level of a partition, for this receive and later ones."""
        self._ranks[partition] = rank
        if self._look is not None:
            self._core.memory(BestMemory).note(self._look, partition, rank)

    def _value(self, partition: int) -> float:
        """Returns a number by which partitions compare: the lower one is served first."""
        rank, ageing_seconds = self._ranks[partition], self._source.ageing_seconds
        if rank is None:
            return float("inf")
        if ageing_seconds is None:
            return -priority_in(rank.prefix)
        return rank.served_ms(ageing_seconds * 1_000)

    def _present(self) -> _BestLook:
        """Returns a look that is young enough: this environment's, a stored one, or its own now."""
        core, source = self._core, self._source
        memory, now_ms = core.memory(BestMemory), core.now_ms()
        known = memory.known(source.id)
        if known is None or not self._is_young(known, now_ms):
            known = self._stored(known, now_ms) or known
        if known is None or not self._is_young(known, now_ms):
            steady = known is not None and now_ms - known.since_ms < STEADY_MS
            return self._look_through(puts=steady or core.random.random() * FIRST_PUT < 1)
        memory.keep(source.id, known)
        self._look = known
        return known

    def _is_young(self, look: _BestLook, now_ms: int) -> bool:
        """Returns True if receives may go by a look.

        A queue that has grown since has partitions of which it knows nothing.
        """
        of_all = len(look.ranks) == self._source.partitions
        return of_all and 0 <= now_ms - look.since_ms < look.again_ms

    def _stored(self, known: _BestLook | None, now_ms: int) -> _BestLook | None:
        """Returns the look in the item, or None. One that was seen before is not younger now.

        its clock   12:00:02  writes 12:00:02
        our clock   12:00:00  reads it: for 0.8 s from now on, not for 2.8 s
        """
        key = _item_key(self._source.id)
        try:
            found = self._core.store.get_many(
                self._core.tables.messages, [key], consistent=False
            ).get(key)
        except Unavailable:
            return None
        pay(self._walk, 0.5)
        if found is None:
            return None
        stamp_ms = int(found["t"]["N"])
        if known is not None and known.stamp_ms == stamp_ms:
            return known
        return self._look_of(stamp_ms, min(stamp_ms, now_ms), _read_ranks(found))

    def _look_through(self, *, puts: bool) -> _BestLook:
        """Looks for the best level of each partition. A look that saw all of them is kept.

        puts: it is put for other environments, too.
        If the store refuses one, the others go on without it, in this receive alone: it comes last.
        """
        core, source, begun_ms = self._core, self._source, self._begun_ms
        numbers = [each for each in range(source.partitions) if each not in self._found]
        for number, (rank, units, answered) in zip(
            numbers, core.in_parallel(self._try_first_in, numbers), strict=True
        ):
            if answered:
                self._found[number] = rank
            self._note_look(number, units)
        ranks = [self._found.get(each) for each in range(source.partitions)]
        look = self._look_of(begun_ms, begun_ms, ranks)
        self._unseen = {each for each in range(source.partitions) if each not in self._found}
        if not self._unseen and any(ranks):
            self._look = look
            core.memory(BestMemory).keep(source.id, look)
            if puts:
                with contextlib.suppress(Unavailable):
                    core.store.write("PutItem", _put(core.tables.messages, source, look))
        return look

    def _look_of(self, stamp_ms: int, since_ms: int, ranks: list[Rank | None]) -> _BestLook:
        sooner_ms = int((TRUSTED_MS - AGAIN_MS) * self._core.random.random())
        return _BestLook(stamp_ms, since_ms, ranks, TRUSTED_MS - sooner_ms)

    def _first_in(self, partition: int) -> Rank | None:
        rank, units = first_rank(self._core, self._source, partition)
        self._note_look(partition, units)
        return rank

    def _note_look(self, partition: int, units: float) -> None:
        """Pays for a look at a partition, and names the chores that it has met."""
        pay(self._walk, units)
        if ChoreMemory in self._core.memories:  # in most environments nothing was ever met
            pk = partition_key(PARCELS, self._source.id, partition)
            chores.tell(self._core, self._source, pk)

    def _try_first_in(self, partition: int) -> tuple[Rank | None, float, bool]:
        """Returns the best level of a partition, the units, and whether the store answered."""
        try:
            return *first_rank(self._core, self._source, partition), True
        except Unavailable:
            return None, 0.0, False


def _item_key(source_id: str) -> tuple[str, str]:
    return f"{HEAD_MARKS}#{source_id}#{_PLACE}", _PLACE


def _read_ranks(item: Item) -> list[Rank | None]:
    levels = [int(each["N"]) for each in item["l"]["L"]]
    oldest = [int(each["N"]) for each in item["o"]["L"]] if "o" in item else [0] * len(levels)
    return [
        Rank(level_prefix(level), oldest_ms) if level else None
        for level, oldest_ms in zip(levels, oldest, strict=True)
    ]


def _put(table: str, source: Source, look: _BestLook) -> dict[str, Any]:
    levels = [0 if rank is None else priority_in(rank.prefix) for rank in look.ranks]
    item: Item = {
        **key(*_item_key(source.id)),
        "t": {"N": str(look.stamp_ms)},
        "l": {"L": [{"N": str(level)} for level in levels]},
        "expires_at": {"N": str(ttl_seconds(look.stamp_ms + _KEPT_MS))},
    }
    if source.ageing_seconds is not None:
        oldest = [0 if rank is None else rank.oldest_ms for rank in look.ranks]
        item["o"] = {"L": [{"N": str(oldest_ms)} for oldest_ms in oldest]}
    return {"TableName": table, "Item": item}
