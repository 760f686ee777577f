"""Hints of an execution environment about the heads of partitions, and of groups.

May be lost at any time, and are known to one environment alone: they only save read units, and
spread the claims of concurrent receivers.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import msgspec

from cirrusmq.receiving.heads.watermark import HeadMark

_CONTENDED_MS = 1_000
_CROWDED_MS = 60_000


class EmptyRange(msgspec.Struct, frozen=True):
    """Keys without a message to claim, from behind `start` to `end`, until that time."""

    start: str = ""
    end: str = ""
    until_ms: int = 0


class KnownMark(msgspec.Struct, frozen=True):
    """A copy of a mark; `mark` is None if none is stored."""

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
        """Notes a claim that failed because another receiver was faster."""
        with self._lock:
            self._heads[pk].contended_until_ms = now_ms + _CONTENDED_MS

    def is_contended(self, pk: str, now_ms: int) -> bool:
        """Returns True if other receivers take from the same head, so that claims are spread."""
        with self._lock:
            return now_ms < self._heads[pk].contended_until_ms

    def crowd(self, pk: str, now_ms: int) -> None:
        """Notes that many parcels at the head cannot be claimed: it should have a mark."""
        with self._lock:
            self._heads[pk].crowded_until_ms = now_ms + _CROWDED_MS

    def is_backlogged(self, pk: str, now_ms: int) -> bool:
        """Returns True if a scan should begin with the mark."""
        with self._lock:
            return now_ms < self._heads[pk].crowded_until_ms

    def pass_over(self, head: str, now_ms: int) -> None:
        """Notes that a scan passed over messages at the head that its answer cannot hold."""
        with self._lock:
            self._heads[head].passes_until_ms = now_ms + _CROWDED_MS

    def passes_over(self, head: str, now_ms: int) -> bool:
        """Returns True if a scan passed over messages there lately."""
        with self._lock:
            return now_ms < self._heads[head].passes_until_ms

    def note_first(self, pk: str, *, clear: bool) -> None:
        """Notes if a scan could take from the first parcel that it read."""
        with self._lock:
            self._heads[pk].clear = clear

    def clear(self, pk: str, now_ms: int) -> bool:
        """Returns True if the last scan had nothing to pass, and there are no other receivers."""
        with self._lock:
            head = self._heads[pk]
            return head.clear and now_ms >= head.contended_until_ms

    def know(self, pk: str, known: KnownMark) -> KnownMark:
        """Keeps and returns a copy of the mark; without a mark the head is not crowded any more."""
        with self._lock:
            self._heads[pk].mark = known
            if known.mark is None:
                self._heads[pk].crowded_until_ms = 0
            return known

    def known_mark(self, pk: str) -> KnownMark | None:
        """Returns the copy of the mark that was read last, or None."""
        with self._lock:
            return self._heads[pk].mark

    def see(self, pk: str, start: str, end: str, now_ms: int, life_ms: int) -> None:
        """Notes that a scan of this environment found nothing from behind `start` to `end`.

        A range that begins within an earlier one takes its expiry, and its end if that is later.
        """
        with self._lock:
            head = self._heads[pk]
            earlier = head.seen
            goes_on = now_ms < earlier.until_ms and earlier.start <= start <= earlier.end
            until_ms = earlier.until_ms if goes_on else now_ms + life_ms
            head.seen = EmptyRange(start, max(end, earlier.end) if goes_on else end, until_ms)

    def seen(self, pk: str, start: str, now_ms: int) -> str:
        """Returns the key to begin behind: `start`, or the end of a recent empty range."""
        with self._lock:
            seen = self._heads[pk].seen
        known = now_ms < seen.until_ms and seen.start <= start
        return max(start, seen.end) if known else start
