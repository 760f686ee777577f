"""An execution environment's memory of wake-ups. May be lost at any time: it saves units."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

import msgspec
from msgspec import field

from cirrusmq.base import limits

FOLLOWED_MS = 1_000
"""Time for which a wake-up is followed: its message may be visible later than the wake-up."""
MAX_AT_ONCE = 8
"""Wake-ups that one poll follows."""
_RECOVERY_MS = 5_000
"""Each such time without a refused wake-up allows one more a second."""
_MAX_SOURCES = 10_000


class _Source(msgspec.Struct):
    waits_until_ms: int = 0
    asked_ms: int | None = None
    wake_ups: float = limits.WAKE_UPS_AT_ONCE
    wake_ups_ms: int = 0
    refused_per_second: float = limits.WAKE_UPS_PER_SECOND
    refused_ms: int = 0
    registered_until_ms: int = 0
    followed: dict[str, int] = field(default_factory=dict)


class WakeUpMemory:
    """Wake-ups and waits by source id; safe to share between threads."""

    def __init__(self) -> None:
        self._sources: defaultdict[str, _Source] = defaultdict(_Source)
        self._lock = threading.Lock()

    def waits(self, source_id: str, now_ms: int) -> bool | None:
        """Returns if a receiver waits at the source, or None if that must be read again."""
        with self._lock:
            source = self._source(source_id)
            if now_ms < source.waits_until_ms:
                return True
            asked_ms = source.asked_ms
            known = asked_ms is not None and 0 <= now_ms - asked_ms < limits.CACHE_MS
            return False if known else None

    def know(self, source_id: str, waits_until_ms: int, now_ms: int) -> None:
        """Keeps the answer: until when a receiver waits."""
        with self._lock:
            source = self._source(source_id)
            source.waits_until_ms, source.asked_ms = waits_until_ms, now_ms

    def may_wake(self, source_id: str, now_ms: int) -> bool:
        """Takes one wake-up of the source's budget. Returns False if none is left now."""
        with self._lock:
            source = self._source(source_id)
            per_second = _per_second(source, now_ms)
            at_once = limits.WAKE_UPS_AT_ONCE * per_second / limits.WAKE_UPS_PER_SECOND
            gained = max(0, now_ms - source.wake_ups_ms) * per_second / 1000
            left = min(at_once, source.wake_ups + gained)
            source.wake_ups_ms = max(now_ms, source.wake_ups_ms)
            source.wake_ups = left - 1 if left >= 1 else left
            return left >= 1

    def halve(self, source_id: str, now_ms: int) -> None:
        """Halves the wake-ups a second of the source, since the store refused one."""
        with self._lock:
            source = self._source(source_id)
            source.refused_per_second = _per_second(source, now_ms) / 2
            source.refused_ms = source.wake_ups_ms = max(now_ms, source.wake_ups_ms)
            source.wake_ups = 0.0

    def says(self, source_id: str, until_ms: int, now_ms: int) -> bool:
        """Returns True if the caller is to note that a receiver waits, which is then remembered.

        It is noted again when less than half of the time is left.
        """
        with self._lock:
            source = self._source(source_id)
            due = 2 * (source.registered_until_ms - now_ms) < until_ms - now_ms
            if due:
                source.registered_until_ms = until_ms
            return due

    def forget_registration(self, source_id: str) -> None:
        """Forgets that a wait was noted, since the store refused the write."""
        with self._lock:
            self._source(source_id).registered_until_ms = 0

    def follow(self, source_id: str, keys: Iterable[str], now_ms: int) -> list[str]:
        """Returns the sort keys of those found wake-ups that a poll should follow now."""
        with self._lock:
            source = self._source(source_id)
            source.followed = {key: source.followed.get(key, now_ms) for key in keys}
            fresh = [key for key, ms in source.followed.items() if now_ms - ms <= FOLLOWED_MS]
            left = fresh[MAX_AT_ONCE:]
            for key in left:
                if source.followed[key] == now_ms:
                    del source.followed[key]
            return fresh[:MAX_AT_ONCE]

    def _source(self, source_id: str) -> _Source:
        if len(self._sources) >= _MAX_SOURCES and source_id not in self._sources:
            self._sources.clear()
        return self._sources[source_id]


def _per_second(source: _Source, now_ms: int) -> float:
    recovered = max(0, now_ms - source.refused_ms) // _RECOVERY_MS
    return min(limits.WAKE_UPS_PER_SECOND, source.refused_per_second + recovered)
