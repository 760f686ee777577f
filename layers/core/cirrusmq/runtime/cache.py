"""A cache of values that are read often and change rarely: short-lived, dropped by a change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from cirrusmq.runtime.clock import Clock

T = TypeVar("T")
_MAX_ENTRIES = 10_000


class Cache:
    """Values by key, each for `life_ms` milliseconds of `clock`.

    shared: every function of the deployment uses this very cache (on one machine), so a change
    drops the value at once. Elsewhere `turn_over` waits until all other caches have dropped it.
    """

    def __init__(self, clock: Clock, life_ms: int, *, shared: bool) -> None:
        self._clock = clock
        self._life_ms = life_ms
        self._shared = shared
        self._values: dict[Hashable, tuple[int, Any]] = {}
        self._changes = 0
        self._lock = threading.Lock()

    @property
    def lag_ms(self) -> int:
        """How long another cache of the deployment may hold an old value after a change."""
        return 0 if self._shared else self._life_ms

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """Returns the value of `key`, loaded if it is not in the cache."""
        now_ms = self._clock.now_ms()
        with self._lock:
            kept = self._values.get(key)
            changes = self._changes
        if kept is not None and now_ms < kept[0]:
            value: T = kept[1]
            return value
        value = load()
        with self._lock:
            # A value that was loaded during a change may be the old one.
            if changes == self._changes:
                if len(self._values) >= _MAX_ENTRIES:
                    self._values.clear()
                self._values[key] = (now_ms + self._life_ms, value)
        return value

    def drop(self, *keys: Hashable) -> None:
        """Makes the next `get` load the values of `keys` again, in this environment alone."""
        with self._lock:
            self._changes += 1
            for key in keys:
                self._values.pop(key, None)

    def turn_over(self, *keys: Hashable) -> None:
        """Drops changed `keys`. Returns when no cache of the deployment holds an old value."""
        self.drop(*keys)
        if self.lag_ms:
            self._clock.sleep(self.lag_ms / 1000)
