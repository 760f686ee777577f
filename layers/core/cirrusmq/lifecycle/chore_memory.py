"""Keys of parcels that looks of an environment met, and that `replay` is to be told of.

Nothing depends on it: what is forgotten is found again by the next look from the beginning.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

import msgspec

MOST_AT_ONCE = 500
"""Keys of an event: below 40 KB."""
_MOST_CHORES = 4_000
_BETWEEN_MS = 1_000
_AGAIN_MS = 5_000
"""Between two events with the same key: by then the first one is done, lost, or was not sent."""


class _Partition(msgspec.Struct):
    met: dict[str, None] = {}
    told: dict[str, int] = {}
    """Keys that an event had, and until when none has them again; the first one first."""
    from_ms: int = 0


class ChoreMemory:
    """Chores by partition key (`Q#<source id>#<partition>`). Safe to share between threads."""

    def __init__(self) -> None:
        self._partitions: defaultdict[str, _Partition] = defaultdict(_Partition)
        self._chores = 0
        self._lock = threading.Lock()

    def remember(self, pk: str, keys: Iterable[str], now_ms: int) -> None:
        """Remember keys of chores; those beyond a bound, or told of just now, are met again."""
        with self._lock:
            partition = self._partitions[pk]
            while partition.told and now_ms >= next(iter(partition.told.values())):
                partition.told.pop(next(iter(partition.told)))
            for key in keys:
                known = key in partition.met or key in partition.told
                if self._chores < _MOST_CHORES and not known:
                    self._chores += 1
                    partition.met[key] = None

    def take(self, pk: str, now_ms: int) -> list[str]:
        """The keys of the next event; none within a second of the last one."""
        with self._lock:
            partition = self._partitions[pk]
            if not partition.met or now_ms < partition.from_ms:
                return []
            keys = list(partition.met)[:MOST_AT_ONCE]
            for key in keys:
                del partition.met[key]
            self._chores -= len(keys)
            partition.from_ms = now_ms + _BETWEEN_MS
            partition.told |= dict.fromkeys(keys, now_ms + _AGAIN_MS)
            return keys

    def next_ms(self, pk: str) -> int | None:
        """The time in ms when a partition's chores may be told next; None if there are none."""
        with self._lock:
            partition = self._partitions[pk]
            return partition.from_ms if partition.met else None
