"""What an execution environment remembers of the heads of partitions, to read them less often.

Parcels in flight stay at the head of their partition. A hint says: "nothing to take before this
key until that time". Re-reading a skipped stretch costs at most `UNITS_PER_SECOND` read units a
second, however much is in flight; where the stretch is short the hint ends with its first lease.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque

import msgspec
from msgspec import field

UNITS_PER_SECOND = 20
FREE_UNITS = 1.0
"""A stretch that costs no more than that is read again as soon as its first lease ends: reading
behind it would hardly cost less."""
SHORTEST_MS = 1_000
LONGEST_MS = 64_000
"""Enough for the bound to hold at 10,000 parcels of 1 KiB in flight in one partition."""
_SCAN_MS = 2_000
_CONTENDED_MS = 1_000
_CHANGES_KEPT = 256


class _Head(msgspec.Struct):
    before: str = ""
    until_ms: int = 0
    contended_until_ms: int = 0
    changes: int = 0
    changed: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_CHANGES_KEPT))


class Hints:
    """Hints by partition key (`Q#<source id>#<partition>`); safe to share between threads."""

    def __init__(self) -> None:
        self._heads: defaultdict[str, _Head] = defaultdict(_Head)
        self._lock = threading.Lock()

    def start(self, pk: str, now_ms: int) -> tuple[str, int]:
        """The key to start reading behind ("" = the beginning), and a mark to give to `skip`.

        The first to ask after a hint has ended is sent to the beginning; while it reads, the
        others go on with the old hint, so that one stretch is not read by all of them at once.
        """
        with self._lock:
            head = self._heads[pk]
            if head.before and now_ms >= head.until_ms:
                head.until_ms = now_ms + _SCAN_MS
                return "", head.changes
            return head.before, head.changes

    def skip(
        self, pk: str, mark: int, before: str, units: float, ready_ms: int, now_ms: int
    ) -> None:
        """From the beginning to the key `before` nothing was found; reading that cost `units`.

        `ready_ms` is when the first message in the stretch can be received again.
        """
        by_cost_ms = int(units * 1000 / UNITS_PER_SECOND) if units > FREE_UNITS else 0
        life_ms = max(by_cost_ms, min(SHORTEST_MS, ready_ms - now_ms))
        with self._lock:
            head = self._heads[pk]
            if not _changed_before(head, mark, before):
                head.before, head.until_ms = before, now_ms + min(LONGEST_MS, life_ms)

    def extend(self, pk: str, mark: int, before: str) -> None:
        """From the hint to the key `before` nothing was found: the hint reaches to there."""
        with self._lock:
            head = self._heads[pk]
            if head.before and not _changed_before(head, mark, before):
                head.before = max(head.before, before)

    def forget(self, pk: str, sort_key: str) -> None:
        """Something at `sort_key` can be received, or soon can: no hint may hide it."""
        with self._lock:
            head = self._heads[pk]
            head.changes += 1
            head.changed.append((head.changes, sort_key))
            if sort_key <= head.before:
                head.before = sort_key[:-1]  # sorts right in front of it

    def contend(self, pk: str, now_ms: int) -> None:
        """A claim failed because another receiver was faster."""
        with self._lock:
            self._heads[pk].contended_until_ms = now_ms + _CONTENDED_MS

    def contended(self, pk: str, now_ms: int) -> bool:
        """Whether other receivers take from the same head, so that claims should be spread."""
        with self._lock:
            return now_ms < self._heads[pk].contended_until_ms


def _changed_before(head: _Head, mark: int, before: str) -> bool:
    """Whether something in front of `before` changed since `mark`, or may have."""
    recent = [key for number, key in head.changed if number > mark]
    return len(recent) < head.changes - mark or any(key <= before for key in recent)
