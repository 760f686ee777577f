"""Where an environment's next look at a partition's groups begins, and how much it reads at once.

Nothing depends on it: it may be lost, or known to one environment alone.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import msgspec


class _Turn(msgspec.Struct):
    key: str = ""
    at_once: int = 4


class TurnMemory:
    """Turns by partition key (`Q#<source id>#<partition>`). Safe to share between threads."""

    def __init__(self) -> None:
        self._turns: defaultdict[str, _Turn] = defaultdict(_Turn)
        self._lock = threading.Lock()

    def take_turn(self, pk: str, key: str) -> None:
        """The next look at a partition's groups begins behind a key; empty: anywhere.

        Of a fair partition, behind the group that was served last; of an ordered one, behind the
        groups that a look passed over which ended before it had seen all.
        """
        with self._lock:
            self._turns[pk].key = key

    def turn(self, pk: str) -> str:
        """The key behind which the next look at a partition's groups begins; empty: anywhere."""
        with self._lock:
            return self._turns[pk].key

    def read_at_once(self, pk: str, parcels: int) -> None:
        """How many parcels a fair partition may have to be read whole; 0: it has too many."""
        with self._lock:
            self._turns[pk].at_once = parcels

    def at_once(self, pk: str) -> int:
        """The same, as it was noted last: a few, where nothing is known."""
        with self._lock:
            return self._turns[pk].at_once
