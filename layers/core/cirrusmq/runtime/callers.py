"""One environment's memory of those who call it: which keys were used on which day."""

from __future__ import annotations

import threading

_MOST = 10_000


class Callers:
    """What an environment knows of access keys without asking the store."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()

    def first_use(self, key_id: str, day: int) -> bool:
        """Whether this is the key's first use on that day, here; told to one caller alone."""
        with self._lock:
            if self._used.get(key_id) == day:
                return False
            if len(self._used) >= _MOST:
                self._used.clear()
            self._used[key_id] = day
            return True
