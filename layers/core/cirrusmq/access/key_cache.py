"""One environment's memory of its callers: wrong keys by address, good keys, and their use.

    address      wrong keys in a minute    the environment's answer
    a            1 … 30                    401, and the store is read for ids that are new to it
    a            more                      429 to the end of the minute, without reading anything,
                                           but of secrets that were good here before
    b                                      as ever

An environment knows its own callers alone: if Lambda runs twenty, an address has twenty times as
many tries. The memory is bounded, and a forgotten key is learned again.
"""

from __future__ import annotations

import threading
from typing import TypeVar

V = TypeVar("V")
MINUTE_MS = 60_000
WRONG_KEYS = 30
"""Wrong keys that an address may try in a minute, at one environment."""
OPENED_MS = 300_000
"""How long an unsealed secret is kept in memory."""
RECEIVED_MS = 300_000
"""Milliseconds in which the receives of one source by one key are noted once."""
_MAX = 10_000
_MAX_OPENED = 1_000


class KeyCache:
    """Cache of an environment's access keys: saves reads of the store."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._received: dict[str, int] = {}
        self._good: dict[str, str] = {}
        self._unknown: dict[str, int] = {}
        self._wrong: dict[str, int] = {}
        self._opened: dict[bytes, tuple[str, int]] = {}
        self._minute = 0
        self._lock = threading.Lock()

    def first_use(self, key_id: str, day: int) -> bool:
        """Returns True for the key's first use on that day, here; only to one caller."""
        with self._lock:
            if self._used.get(key_id) == day:
                return False
            _remember(self._used, key_id, day)
            return True

    def first_receive(self, place: str, now_ms: int) -> bool:
        """Returns True for the place's first receive here in five minutes; only to one caller.

        `place`: key of a source and an access key.
        """
        with self._lock:
            if now_ms < self._received.get(place, 0):
                return False
            _remember(self._received, place, now_ms + RECEIVED_MS)
            return True

    def note_good(self, key_id: str, digest: str) -> None:
        """Caches the digest of a right secret."""
        with self._lock:
            _remember(self._good, key_id, digest)

    def opened(self, sealed: bytes, now_ms: int) -> str | None:
        """Returns a secret that was unsealed here at most five minutes ago, or None."""
        with self._lock:
            secret, until_ms = self._opened.get(sealed, (None, 0))
            return secret if now_ms < until_ms else None

    def note_opened(self, sealed: bytes, secret: str, now_ms: int) -> None:
        """Caches an unsealed secret."""
        with self._lock:
            if len(self._opened) >= _MAX_OPENED:
                self._opened.clear()
            self._opened[sealed] = secret, now_ms + OPENED_MS

    def note_wrong(self, source: str | None, key_id: str, now_ms: int, *, unknown: bool) -> None:
        """Counts a wrong key of an address; `unknown`: there is no key of this id at all."""
        with self._lock:
            self._begin(now_ms)
            if unknown:
                _remember(self._unknown, key_id, now_ms + MINUTE_MS)
            if source is not None:
                _remember(self._wrong, source, self._wrong.get(source, 0) + 1)

    def is_unknown(self, key_id: str, now_ms: int) -> bool:
        """Returns True if this id was unknown within a minute: a new key has another, random id."""
        with self._lock:
            return now_ms < self._unknown.get(key_id, 0)

    def refuses(self, source: str | None, key_id: str, digest: str, now_ms: int) -> bool:
        """Returns True if the address had too many wrong keys, unless this key is known as good."""
        with self._lock:
            self._begin(now_ms)
            too_many = source is not None and self._wrong.get(source, 0) >= WRONG_KEYS
            return too_many and self._good.get(key_id) != digest

    def _begin(self, now_ms: int) -> None:
        minute = now_ms // MINUTE_MS
        if minute != self._minute:
            self._minute = minute
            self._wrong.clear()


def _remember(held: dict[str, V], key: str, value: V) -> None:
    if len(held) >= _MAX and key not in held:
        held.clear()
    held[key] = value
