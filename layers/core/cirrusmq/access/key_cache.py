"""One environment's memory of its callers: wrong keys by address, good keys, and their use.

    address      wrong keys in a minute    the environment's answer
    a            1 … 30                    401, and the store is read for ids that are new to it
    a            more                      429 to the end of the minute, without reading anything,
                                           but of secrets that were good here before
    b                                      as ever

An environment knows its own callers alone: if Lambda runs twenty, an address has twenty times as
many tries. The memory is bounded, and a forgotten key is learned again.

When an access key was last used, and from which sources it received, is stored:

    used        the day              at most one write a key, day and environment
    received    the millisecond      at most one a key, source, five minutes and environment

Both are beside the counts of accounts' calls in the Usage table, so that no function that only
answers calls has to write access keys. A write that fails refuses no call, and is tried again when
the next one is due.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Sequence
from typing import TypeVar

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, set_request

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
DAY_MS = 86_400_000
_KEPT_DAYS = 400
_RECEIVES_KEPT_MS = 7 * DAY_MS


class KeyCache:
    """Cache of an environment's access keys: saves reads of the store."""

    def __init__(self) -> None:
        self._noted: dict[str, int] = {}
        self._good: dict[str, str] = {}
        self._unknown: dict[str, int] = {}
        self._wrong: dict[str, int] = {}
        self._opened: dict[bytes, tuple[str, int]] = {}
        self._minute = 0
        self._lock = threading.Lock()

    def first_note(self, place: str, now_ms: int, until_ms: int) -> bool:
        """Returns True for a place's first note here until a time; only to one caller.

        place: an access key, or a source and an access key.
        """
        with self._lock:
            if now_ms < self._noted.get(place, 0):
                return False
            _remember(self._noted, place, until_ms)
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


def note_use(core: Core, key_id: str) -> None:
    """Notes that the key was used today. One write unit, once a day in each environment."""
    now_ms = core.now_ms()
    day = now_ms // DAY_MS
    if core.memory(KeyCache).first_note(key_id, now_ms, (day + 1) * DAY_MS):
        expires_at = (day + _KEPT_DAYS) * DAY_MS // 1_000
        _note(core, use_key(key_id), "day", {"day": {"N": str(day)}}, expires_at)


def note_consumer(core: Core, source_id: str, account: str, key_id: str) -> None:
    """Notes that the key received, or tried to. One write unit, once in five minutes, as above.

    `source_id`: the owner's id of a source, which a group keeps when it is rewound.
    """
    now_ms = core.now_ms()
    place = f"{source_id}#{key_id}"
    if core.memory(KeyCache).first_note(place, now_ms, now_ms + RECEIVED_MS):
        values = {
            "received_ms": {"N": str(now_ms)},
            "key_id": {"S": key_id},
            "account": {"S": account},
        }
        expires_at = (now_ms + _RECEIVES_KEPT_MS) // 1_000
        _note(core, receive_key(source_id, key_id), "received_ms", values, expires_at)


def _note(core: Core, place: tuple[str, str], newer: str, values: Item, expires_at: int) -> None:
    """Writes values into an item of the Usage table, if its `newer` is below theirs."""
    values = {**values, "expires_at": {"N": str(expires_at)}}
    request = set_request(core.tables.usage, place, values) | {
        "ConditionExpression": f"attribute_not_exists(#{newer}) OR #{newer} < :{newer}"
    }
    with contextlib.suppress(Exception):
        core.store.write("UpdateItem", request)


def last_uses(core: Core, key_ids: Sequence[str]) -> dict[str, int]:
    """Key -> the first millisecond of the day of its last use; half a read unit a key."""
    places = {use_key(key_id): key_id for key_id in key_ids}
    found = core.store.get_many(core.tables.usage, list(places), consistent=False)
    return {places[at]: int(item["day"]["N"]) * DAY_MS for at, item in found.items()}


def use_key(key_id: str) -> tuple[str, str]:
    """Key in the Usage table; no account has a name with `#`, so no count of calls is there."""
    return f"T#key#{key_id}", "used"


def receive_key(source_id: str, key_id: str) -> tuple[str, str]:
    """Key in the Usage table. A page's cursor has the sort key in it, and another account's key id
    is not told: so it is a digest of the id, which has more than 90 random bits."""
    digest = hashlib.sha256(f"{source_id}#{key_id}".encode()).hexdigest()
    return f"T#received#{source_id}", digest[:32]
