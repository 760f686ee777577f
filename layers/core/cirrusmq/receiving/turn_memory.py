"""The start of an environment's next scan of a partition's groups, the size of its read, and if
others take from the same groups.

May be lost at any time, and is known to one environment alone.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import msgspec

CONTENDED_MS = 1_000


class _Turn(msgspec.Struct):
    key: str = ""
    at_once: int = 4
    contended_ms: int = -CONTENDED_MS


class TurnMemory:
    """Turns by partition key (`Q#<source id>#<partition>`). Safe to share between threads."""

    def __init__(self) -> None:
        self._turns: defaultdict[str, _Turn] = defaultdict(_Turn)
        self._lock = threading.Lock()

    def take_turn(self, pk: str, key: str) -> None:
        """Makes the next scan of a partition's groups begin behind a key; empty: anywhere.

        In a fair partition, behind the group that was served last; in an ordered one, behind the
        groups that a scan passed over before its units were used up.
        """
        with self._lock:
            self._turns[pk].key = key

    def turn(self, pk: str) -> str:
        """Returns the key behind which the next scan of a partition's groups begins, or ""."""
        with self._lock:
            return self._turns[pk].key

    def read_at_once(self, pk: str, parcels: int) -> None:
        """Notes how many parcels the next scan reads at once; 0: the partition is too large."""
        with self._lock:
            self._turns[pk].at_once = parcels

    def at_once(self, pk: str) -> int:
        """Returns the number that was noted last; a few if nothing is known."""
        with self._lock:
            return self._turns[pk].at_once

    def contend(self, pk: str, now_ms: int) -> None:
        """Notes that another receiver was faster at a group."""
        with self._lock:
            self._turns[pk].contended_ms = now_ms

    def is_contended(self, pk: str, now_ms: int) -> bool:
        """Returns True if another receiver was faster within the last second."""
        with self._lock:
            return now_ms < self._turns[pk].contended_ms + CONTENDED_MS
