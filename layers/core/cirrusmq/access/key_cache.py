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
from cirrusmq.runtime.store import key

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


def note_use(core: Core, key_id: str) -> None:
    """Notes that the key was used today. One write unit, once a day in each environment."""
    day = core.now_ms() // DAY_MS
    if not core.memory(KeyCache).first_use(key_id, day):
        return
    request = {
        "TableName": core.tables.usage,
        "Key": key(*use_key(key_id)),
        "UpdateExpression": "SET #day = :day, #expires = :expires",
        "ConditionExpression": "attribute_not_exists(#day) OR #day < :day",
        "ExpressionAttributeNames": {"#day": "day", "#expires": "expires_at"},
        "ExpressionAttributeValues": {
            ":day": {"N": str(day)},
            ":expires": {"N": str((day + _KEPT_DAYS) * DAY_MS // 1_000)},
        },
    }
    with contextlib.suppress(Exception):
        core.store.write("UpdateItem", request)


def note_consumer(core: Core, source_id: str, account: str, key_id: str) -> None:
    """Notes that the key received, or tried to. One write unit, once in five minutes, as above.

    `source_id`: the owner's id of a source, which a group keeps when it is rewound.
    """
    now_ms = core.now_ms()
    if not core.memory(KeyCache).first_receive(f"{source_id}#{key_id}", now_ms):
        return
    request = {
        "TableName": core.tables.usage,
        "Key": key(*receive_key(source_id, key_id)),
        "UpdateExpression": "SET #at = :at, #key = :key, #account = :account, #expires = :expires",
        "ConditionExpression": "attribute_not_exists(#at) OR #at < :at",
        "ExpressionAttributeNames": {
            "#at": "received_ms",
            "#key": "key_id",
            "#account": "account",
            "#expires": "expires_at",
        },
        "ExpressionAttributeValues": {
            ":at": {"N": str(now_ms)},
            ":key": {"S": key_id},
            ":account": {"S": account},
            ":expires": {"N": str((now_ms + _RECEIVES_KEPT_MS) // 1_000)},
        },
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
