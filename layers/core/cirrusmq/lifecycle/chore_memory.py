"""Keys of parcels with chores that an environment's scans found, for the next events to `replay`.

May be lost at any time: a forgotten key is found again by the next scan from the beginning.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

import msgspec

MAX_AT_ONCE = 500
"""Keys of an event: below 40 KB."""
_MAX_CHORES = 4_000
_BETWEEN_MS = 1_000
_AGAIN_MS = 5_000
"""Between two events with the same key: by then the first one is done, lost, or was not sent."""


class _Partition(msgspec.Struct):
    met: dict[str, None] = {}
    told: dict[str, int] = {}
    """Keys that an event had, and until when no other has them again; the first one first."""
    from_ms: int = 0


class ChoreMemory:
    """Chores by partition key (`Q#<source id>#<partition>`). Safe to share between threads."""

    def __init__(self) -> None:
        self._partitions: defaultdict[str, _Partition] = defaultdict(_Partition)
        self._chores = 0
        self._lock = threading.Lock()

    def remember(self, pk: str, keys: Iterable[str], now_ms: int) -> None:
        """Remembers keys of chores. Keys beyond the bound, or sent just now, are found again."""
        with self._lock:
            partition = self._partitions[pk]
            while partition.told and now_ms >= next(iter(partition.told.values())):
                partition.told.pop(next(iter(partition.told)))
            for key in keys:
                known = key in partition.met or key in partition.told
                if self._chores < _MAX_CHORES and not known:
                    self._chores += 1
                    partition.met[key] = None

    def take(self, pk: str, now_ms: int) -> list[str]:
        """Returns the keys of the next event; an empty list within a second of the last one."""
        with self._lock:
            partition = self._partitions[pk]
            if not partition.met or now_ms < partition.from_ms:
                return []
            keys = list(partition.met)[:MAX_AT_ONCE]
            for key in keys:
                del partition.met[key]
            self._chores -= len(keys)
            partition.from_ms = now_ms + _BETWEEN_MS
            partition.told |= dict.fromkeys(keys, now_ms + _AGAIN_MS)
            return keys

    def next_ms(self, pk: str) -> int | None:
        """Returns when a partition's chores may be sent next, in ms, or None without chores."""
        with self._lock:
            partition = self._partitions[pk]
            return partition.from_ms if partition.met else None
