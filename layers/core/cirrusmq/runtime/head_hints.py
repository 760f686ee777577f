"""Hints: an execution environment's memory of the heads of partitions. Nothing depends on them.

All of them may be lost, or known to one environment alone; they save read units, and spread the
claims of concurrent receivers.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from cirrusmq.base import limits
from cirrusmq.model.head_mark import Mark
from cirrusmq.model.parcel import Parcel

_CONTENDED_MS = 1_000
_CROWDED_MS = 60_000
_MOST_TOLD = 10_000
_MOST_CHORES = 4_000
_PAUSE_MS = 5_000
_AGES_MS = 1_000


class Seen(msgspec.Struct, frozen=True):
    """Nothing to take from behind `start` to `end`, until that time."""

    start: str = ""
    end: str = ""
    until_ms: int = 0


class KnownMark(msgspec.Struct, frozen=True):
    """A copy of a mark; None: there is none."""

    mark: Mark | None
    read_ms: int
    jitter: float
    """From 0 to 1: by how much this environment is later than others to find it due."""


class _Head(msgspec.Struct):
    contended_until_ms: int = 0
    crowded_until_ms: int = 0
    clear: bool = False
    mark: KnownMark | None = None
    seen: Seen = Seen()
    moves: float = limits.MOVES_PER_SECOND
    moves_ms: int = 0
    chores: dict[str, Parcel] = {}
    chores_from_ms: int = 0
    ages_from_ms: int = 0
    turn: str = ""
    at_once: int = 4
    passes_until_ms: int = 0


class Hints:
    """Hints by partition key (`Q#<source id>#<partition>`), and by the names of groups' heads.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._heads: defaultdict[str, _Head] = defaultdict(_Head)
        self._chores = 0
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def contend(self, pk: str, now_ms: int) -> None:
        """A claim failed because another receiver was faster."""
        with self._lock:
            self._heads[pk].contended_until_ms = now_ms + _CONTENDED_MS

    def contended(self, pk: str, now_ms: int) -> bool:
        """Whether other receivers take from the same head, so that claims should be spread."""
        with self._lock:
            return now_ms < self._heads[pk].contended_until_ms

    def crowd(self, pk: str, now_ms: int) -> None:
        """Many parcels at the head cannot be claimed: there is, or should be, a mark."""
        with self._lock:
            self._heads[pk].crowded_until_ms = now_ms + _CROWDED_MS

    def crowded(self, pk: str, now_ms: int) -> bool:
        """Whether a look should begin with the mark."""
        with self._lock:
            return now_ms < self._heads[pk].crowded_until_ms

    def pass_over(self, head: str, now_ms: int) -> None:
        """A look passed over messages at the head that its answer does not hold."""
        with self._lock:
            self._heads[head].passes_until_ms = now_ms + _CROWDED_MS

    def passes_over(self, head: str, now_ms: int) -> bool:
        """Whether a look passed over messages there lately."""
        with self._lock:
            return now_ms < self._heads[head].passes_until_ms

    def told(self, message: str) -> bool:
        """Whether the log has a line about a message."""
        with self._lock:
            return message in self._told

    def note_told(self, message: str) -> None:
        """The log has a line about a message."""
        with self._lock:
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            self._told.add(message)

    def note_first(self, pk: str, *, clear: bool) -> None:
        """Whether a look could take from the first parcel that it read."""
        with self._lock:
            self._heads[pk].clear = clear

    def clear(self, pk: str, now_ms: int) -> bool:
        """Whether the last look had nothing to pass, and no other receiver is known there."""
        with self._lock:
            head = self._heads[pk]
            return head.clear and now_ms >= head.contended_until_ms

    def know(self, pk: str, known: KnownMark) -> KnownMark:
        """Keep a copy of the mark; without a mark the partition is not crowded."""
        with self._lock:
            self._heads[pk].mark = known
            if known.mark is None:
                self._heads[pk].crowded_until_ms = 0
            return known

    def known_mark(self, pk: str) -> KnownMark | None:
        """The copy of the mark that was read last."""
        with self._lock:
            return self._heads[pk].mark

    def see(self, pk: str, start: str, end: str, now_ms: int, life_ms: int) -> None:
        """A look of this environment found nothing from behind `start` to `end`.

        One that began where an earlier one ended does not make that one's part any younger.
        """
        with self._lock:
            head = self._heads[pk]
            earlier = head.seen
            goes_on = now_ms < earlier.until_ms and earlier.start <= start <= earlier.end
            until_ms = earlier.until_ms if goes_on else now_ms + life_ms
            head.seen = Seen(start, max(end, earlier.end) if goes_on else end, until_ms)

    def seen(self, pk: str, start: str, now_ms: int) -> str:
        """The key to begin behind: `start`, or the end of a part seen lately that has it."""
        with self._lock:
            seen = self._heads[pk].seen
        known = now_ms < seen.until_ms and seen.start <= start
        return max(start, seen.end) if known else start

    def take_turn(self, pk: str, key: str) -> None:
        """The next look at a partition's groups begins behind a key; empty: anywhere.

        Of a fair partition, behind the group that was served last; of an ordered one, behind the
        groups that a look passed over which ended before it had seen all.
        """
        with self._lock:
            self._heads[pk].turn = key

    def turn(self, pk: str) -> str:
        """The key behind which the next look at a partition's groups begins; empty: anywhere."""
        with self._lock:
            return self._heads[pk].turn

    def read_at_once(self, pk: str, parcels: int) -> None:
        """How many parcels a fair partition may have to be read whole; 0: it has too many."""
        with self._lock:
            self._heads[pk].at_once = parcels

    def at_once(self, pk: str) -> int:
        """The same, as it was noted last: a few, where nothing is known."""
        with self._lock:
            return self._heads[pk].at_once

    def may_move(self, pk: str, now_ms: int) -> bool:
        """Whether one more give-back of this second may move; a True counts as one."""
        with self._lock:
            head = self._heads[pk]
            gained = max(0, now_ms - head.moves_ms) * limits.MOVES_PER_SECOND / 1000
            moves = min(limits.MOVES_PER_SECOND, head.moves + gained)
            head.moves, head.moves_ms = max(0.0, moves - 1), now_ms
            if moves < 1:
                head.moves = moves
            return moves >= 1

    def remember_chores(self, pk: str, parcels: Iterable[Parcel]) -> None:
        """Remember parcels to tidy up; those beyond a bound will be found again."""
        with self._lock:
            chores = self._heads[pk].chores
            for parcel in parcels:
                if self._chores < _MOST_CHORES and parcel.sort_key not in chores:
                    self._chores += 1
                    chores[parcel.sort_key] = parcel

    def take_chores(self, pk: str, most: int, now_ms: int) -> list[Parcel]:
        """Some of them, with `most` messages or a few more; no other caller gets these."""
        with self._lock:
            head = self._heads[pk]
            taken: list[Parcel] = []
            while head.chores and now_ms >= head.chores_from_ms and most > 0:
                first = head.chores.pop(next(iter(head.chores)))
                taken.append(first)
                most -= 1 if first.spent() else first.count
            self._chores -= len(taken)
            return taken

    def may_look_at_ages(self, pk: str, now_ms: int) -> bool:
        """Whether to look for messages above their age limit now; a True counts as a look."""
        with self._lock:
            head = self._heads[pk]
            due = now_ms >= max(head.ages_from_ms, head.chores_from_ms)
            if due:
                head.ages_from_ms = now_ms + _AGES_MS
            return due

    def pause_chores(self, pk: str, now_ms: int) -> None:
        """The store refused one."""
        with self._lock:
            self._heads[pk].chores_from_ms = now_ms + _PAUSE_MS
