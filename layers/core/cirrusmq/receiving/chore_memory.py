"""Parcels that looks of an environment met, and that are to be tidied up.

Nothing depends on it: what is forgotten is found again by the next look from the beginning.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from cirrusmq.model.parcel import Parcel

_MOST_CHORES = 4_000
_PAUSE_MS = 5_000
_AGES_MS = 1_000


class _Partition(msgspec.Struct):
    chores: dict[str, Parcel] = {}
    chores_from_ms: int = 0
    ages_from_ms: int = 0


class ChoreMemory:
    """Chores by partition key (`Q#<source id>#<partition>`). Safe to share between threads."""

    def __init__(self) -> None:
        self._partitions: defaultdict[str, _Partition] = defaultdict(_Partition)
        self._chores = 0
        self._lock = threading.Lock()

    def remember(self, pk: str, parcels: Iterable[Parcel]) -> None:
        """Remember parcels to tidy up; those beyond a bound will be found again."""
        with self._lock:
            chores = self._partitions[pk].chores
            for parcel in parcels:
                if self._chores < _MOST_CHORES and parcel.sort_key not in chores:
                    self._chores += 1
                    chores[parcel.sort_key] = parcel

    def take(self, pk: str, most: int, now_ms: int) -> list[Parcel]:
        """Some of them, with `most` messages or a few more; no other caller gets these."""
        with self._lock:
            partition = self._partitions[pk]
            taken: list[Parcel] = []
            while partition.chores and now_ms >= partition.chores_from_ms and most > 0:
                first = partition.chores.pop(next(iter(partition.chores)))
                taken.append(first)
                most -= 1 if first.spent() else first.count
            self._chores -= len(taken)
            return taken

    def may_look_at_ages(self, pk: str, now_ms: int) -> bool:
        """Whether to look for messages above their age limit now; a True counts as a look."""
        with self._lock:
            partition = self._partitions[pk]
            due = now_ms >= max(partition.ages_from_ms, partition.chores_from_ms)
            if due:
                partition.ages_from_ms = now_ms + _AGES_MS
            return due

    def pause(self, pk: str, now_ms: int) -> None:
        """The store refused one."""
        with self._lock:
            self._partitions[pk].chores_from_ms = now_ms + _PAUSE_MS
