"""What an execution environment remembers of the heads of partitions, and of groups.

Nothing depends on it: it saves read units, and spreads the claims of concurrent receivers. All of
it may be lost, or known to one environment alone.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import msgspec

from cirrusmq.receiving.heads.watermark import HeadMark

_CONTENDED_MS = 1_000
_CROWDED_MS = 60_000


class EmptyRange(msgspec.Struct, frozen=True):
    """Nothing to take from behind `start` to `end`, until that time."""

    start: str = ""
    end: str = ""
    until_ms: int = 0


class KnownMark(msgspec.Struct, frozen=True):
    """A copy of a mark; None: there is none."""

    mark: HeadMark | None
    read_ms: int
    jitter: float
    """From 0 to 1: by how much this environment is later than others to find it due."""


class _Head(msgspec.Struct):
    contended_until_ms: int = 0
    crowded_until_ms: int = 0
    clear: bool = False
    mark: KnownMark | None = None
    seen: EmptyRange = EmptyRange()
    passes_until_ms: int = 0


class HeadMemory:
    """Hints by the names of heads: `Q#<source id>#<partition>`, and a group's behind it.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._heads: defaultdict[str, _Head] = defaultdict(_Head)
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
            head.seen = EmptyRange(start, max(end, earlier.end) if goes_on else end, until_ms)

    def seen(self, pk: str, start: str, now_ms: int) -> str:
        """The key to begin behind: `start`, or the end of a part seen lately that has it."""
        with self._lock:
            seen = self._heads[pk].seen
        known = now_ms < seen.until_ms and seen.start <= start
        return max(start, seen.end) if known else start
