"""When an access key was last used, and from which sources it received.

    used        the day              at most one write a key, day and environment
    received    the millisecond      at most one a key, source, five minutes and environment

Both are beside the counts of accounts' calls in the Usage table, so that no function that only
answers calls has to write access keys. A write that fails refuses no call, and is tried again when
the next one is due.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence

from cirrusmq.access.key_cache import KeyCache
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key

DAY_MS = 86_400_000
_KEPT_DAYS = 400
_RECEIVES_KEPT_MS = 7 * DAY_MS
_BATCH = 100


def note_use(core: Core, key_id: str) -> None:
    """Notes that the key was used today. One write unit, once a day in each environment."""
    day = core.now_ms() // DAY_MS
    if not core.memory(KeyCache).first_use(key_id, day):
        return
    request = {
        "TableName": core.tables.usage,
        "Key": key(*use_place(key_id)),
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
        "Key": key(*receive_place(source_id, key_id)),
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
    places = {use_place(key_id): key_id for key_id in key_ids}
    used: dict[str, int] = {}
    asked = list(places)
    for start in range(0, len(asked), _BATCH):
        page = asked[start : start + _BATCH]
        found = core.store.get_many(core.tables.usage, page, consistent=False)
        used |= {places[at]: int(item["day"]["N"]) * DAY_MS for at, item in found.items()}
    return used


def use_place(key_id: str) -> tuple[str, str]:
    """Key in the Usage table; no account has a name with `#`, so no count of calls is there."""
    return f"T#key#{key_id}", "used"


def receive_place(source_id: str, key_id: str) -> tuple[str, str]:
    """Key in the Usage table. A page's cursor has the sort key in it, and another account's key id
    is not told: so it is a digest of the id, which has more than 90 random bits."""
    digest = hashlib.sha256(f"{source_id}#{key_id}".encode()).hexdigest()
    return f"T#received#{source_id}", digest[:32]
