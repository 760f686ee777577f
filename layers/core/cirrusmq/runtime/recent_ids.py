"""A memory of recent ids, bounded, safe to share between threads."""

from __future__ import annotations

import threading

_MAX = 20_000


class Recent:
    """Remembers the newest 20,000 ids added."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}
        self._lock = threading.Lock()

    def add(self, recent_id: str) -> None:
        """Adds an id; the oldest one may be removed."""
        with self._lock:
            self._ids[recent_id] = None
            if len(self._ids) > _MAX:
                del self._ids[next(iter(self._ids))]

    def discard(self, recent_id: str) -> None:
        """Removes an id from the memory."""
        with self._lock:
            self._ids.pop(recent_id, None)

    def __contains__(self, recent_id: str) -> bool:
        with self._lock:
            return recent_id in self._ids
