"""Ageing of priorities: a level counts one higher for each `ageing_seconds` of its oldest message.

Two levels compare by when their oldest messages became active, less `ageing_seconds` a level:

    ageing 60 s     level 3   active for 5 s       level 1   active for 130 s: before level 3

An environment looks through all levels once a second. In between it knows how old the oldest
message of each was, and reads a lower level before a higher one only if that is old enough. Nothing
is stored.
"""

from __future__ import annotations

import threading

import msgspec

from cirrusmq.model.priority import Rank

LOOK_MS = 1_000
"""Time between two looks of an environment through all levels of a partition."""
MAX_PARTITIONS = 1_000
"""Partitions whose levels an environment remembers."""


class _LevelAges(msgspec.Struct):
    looked_ms: int
    oldest_ms: dict[str, int]
    """By the prefix of a level: when the first of its messages became active."""


class AgeMemory:
    """The oldest messages of levels, by partition key. Safe to share between threads.

    May be lost at any time: the next look goes through all levels.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _LevelAges] = {}
        self._lock = threading.Lock()

    def is_due(self, pk: str, now_ms: int) -> bool:
        """Returns True if all levels of a partition are to be looked through."""
        with self._lock:
            seen = self._seen.get(pk)
            return seen is None or not 0 <= now_ms - seen.looked_ms < LOOK_MS

    def note_all(self, pk: str, now_ms: int, oldest_ms: dict[str, int]) -> None:
        """Notes the result of a look through all levels."""
        with self._lock:
            # Put at the end, so the first one was looked through longest ago.
            self._seen.pop(pk, None)
            if len(self._seen) >= MAX_PARTITIONS:
                del self._seen[next(iter(self._seen))]
            self._seen[pk] = _LevelAges(now_ms, oldest_ms)

    def note(self, pk: str, prefix: str, oldest_ms: int | None) -> None:
        """Notes the oldest message of one level; None if it has no active one."""
        with self._lock:
            if (seen := self._seen.get(pk)) is None:
                return
            if oldest_ms is None:
                seen.oldest_ms.pop(prefix, None)
            else:
                seen.oldest_ms[prefix] = oldest_ms

    def older(self, pk: str, level: Rank, ageing_ms: int) -> list[Rank]:
        """Returns the lower levels that count more than `level`, the first one to serve first."""
        with self._lock:
            seen = self._seen.get(pk)
            known = {} if seen is None else dict(seen.oldest_ms)
        lower = (Rank(prefix, oldest_ms) for prefix, oldest_ms in known.items())
        before = level.served_ms(ageing_ms)
        found = [
            each
            for each in lower
            if each.prefix > level.prefix and each.served_ms(ageing_ms) <= before
        ]
        return sorted(found, key=lambda each: each.served_ms(ageing_ms))
