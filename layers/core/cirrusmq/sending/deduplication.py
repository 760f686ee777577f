"""Strict deduplication: the reminder of an id and its messages are written in one transaction.

    A: transact(reminder if absent or expired, log record, parcels) ──> stored
    B: the same id                                                  ──> refused: A's reminder

B is answered what A's reminder says, also when A's message is consumed by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cirrusmq.base import limits
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, TransactionRefused, key, put_if_absent
from cirrusmq.storage.parcels import put_if_unsent, ttl_seconds


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A stored message, as in the answer to its sender, and to senders of its duplicates."""

    id: str
    body_md5: str
    sent_ms: int
    order: int | None = None
    """In an ordered queue, a number that grows in each group."""
    replaced: str | msgspec.UnsetType | None = msgspec.UNSET
    """Id of the message that it replaced, None if there was none; unset if it has no key for it."""
    reply_by_ms: int | None = None
    """The deadline, if it asks for a reply."""


class PreviousAttempt(msgspec.Struct, frozen=True):
    """An earlier try of the very same call that took effect."""

    sent_ms: int
    items: tuple[Item, ...]
    """The items under the keys that this try would have written."""


class Duplicate(Exception):
    """Some of the ids were used within 5 minutes; nothing was written."""

    def __init__(self, found: dict[str, Stored]) -> None:
        super().__init__()
        self.found = found


def key_digest(key: str) -> str:
    """Returns a key of a caller's as items have it in their own keys: 40 hexadecimal digits."""
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def reminders(
    target_id: str,
    keys: Mapping[int, str | None],
    messages: Mapping[int, Stored],
    life_ms: int = limits.DEDUPLICATION_MS,
) -> list[tuple[str, Item]]:
    """(deduplication id, item that remembers it) of each message that has an id.

    `target_id` is the queue's or topic's; `keys` and `messages` are by index in the request.
    """
    remembered = []
    for index, message in messages.items():
        key = keys[index]
        if key is not None:
            ends_ms = message.sent_ms + life_ms
            remembered.append((key, reminder_item(target_id, key_digest(key), message, ends_ms)))
    return remembered


def transact(
    core: Core,
    items: Sequence[Item],
    reminders: Sequence[tuple[str, Item]],
    *,
    begun_ms: int,
    now_ms: int,
    whole: bool = True,
    purged_ms: int = 0,
) -> PreviousAttempt | None:
    """Writes reminders and items, all or nothing, unless it was done before. Raises Duplicate.

    `whole`: an earlier try with one of the messages had all of them, so that none is looked for.
    `begun_ms` is the time in the send's id. A reminder of another send that was in force then is so
    for every repetition of this send: else a later one would store, under the same key, other
    messages than the first.

    `purged_ms`: messages sent until then are gone, and their reminders are for no other send. An
    earlier try of this one stays what it was, so that its deduplicated messages are stored once;
    its messages without an id are to be sent again.
    """
    table = core.tables.messages
    writes = put_reminders(core, reminders, min(begun_ms, now_ms), purged_ms)
    writes += [{"Put": put_if_unsent(table, item, purged_ms)} for item in items]
    try:
        core.store.transact(writes)
    except TransactionRefused as refused:
        found = find_reminded(reminders, refused.failed)
        own_ms = [
            found[key].sent_ms
            for key, item in reminders
            if key in found and found[key].id == item["i"]["S"]
        ]
        # An earlier try of this very call took effect. If it stored a part, the rest being
        # duplicates of others, each message gets the answer that it got then.
        if own_ms and purged_ms:
            # A: k ──> B: k and l, l is stored ──> purge of A's ──> B again: l is stored, k is A's
            left = [each for each in reminders if each[0] not in found]
            found |= _reminded_by_others(core, left, purged_ms)
        purged = bool(own_ms) and min(own_ms) <= purged_ms
        if len(own_ms) < len(found) or (found and not whole) or purged:
            raise Duplicate(found) from refused
        items = tuple(
            old for index, old in refused.failed.items() if old and index >= len(reminders)
        )
        sent_ms = [*own_ms, *(int(old["t"]["N"]) for old in items), now_ms]
        return PreviousAttempt(sent_ms[0], items)
    return None


def _reminded_by_others(
    core: Core, reminders: Sequence[tuple[str, Item]], until_ms: int
) -> dict[str, Stored]:
    """Returns messages by reminders of other sends, written until a time; purged ones, too."""
    kept: dict[int, Item | None] = {}
    for index, (_, item) in enumerate(reminders):
        old = core.store.get(core.tables.messages, item["pk"]["S"], item["sk"]["S"])
        if old and old["i"] != item["i"] and int(old["t"]["N"]) <= until_ms:
            kept[index] = old
    return find_reminded(reminders, kept)


def check_reminded(core: Core, reminders: Sequence[tuple[str, Item]], sent_ms: int) -> None:
    """Raises Duplicate if a send stored at `sent_ms` left out messages whose ids other sends had
    used before it.

    `reminders`: as that send wrote them, for its messages that were no duplicates.
    """
    if found := _reminded_by_others(core, reminders, sent_ms):
        raise Duplicate(found)


def put_reminders(
    core: Core, reminders: Sequence[tuple[str, Item]], begun_ms: int, purged_ms: int = 0
) -> list[dict[str, Any]]:
    """The first writes of a transaction: refused if one is in force that began by then.

    The message of a reminder may be purged. Then another send's message with the id is a new one,
    and the same send's is still its repetition:

        A: k, t = 1 ──> purge, floor 2 ──> B: k, t = 3: stored
                                       └──> A again: refused, its reminder says t = 1
    """
    table = core.tables.messages
    return [
        {"Put": put_if_absent(table, item) | _unless_in_force(item, begun_ms, purged_ms)}
        for _, item in reminders
    ]


def _unless_in_force(item: Item, begun_ms: int, purged_ms: int) -> dict[str, Any]:
    condition = "attribute_not_exists(pk) OR x <= :begun"
    values = {":begun": {"N": str(begun_ms)}}
    if purged_ms:
        condition += " OR (t <= :purged AND i <> :own)"
        values |= {":purged": {"N": str(purged_ms)}, ":own": item["i"]}
    return {"ConditionExpression": condition, "ExpressionAttributeValues": values}


def find_reminded(
    reminders: Sequence[tuple[str, Item]], failed: Mapping[int, Item | None]
) -> dict[str, Stored]:
    """The messages of the reminders that refused `put_reminders`, by their deduplication ids."""
    return {
        key: Stored(
            id=old["i"]["S"],
            body_md5=old["h"]["S"],
            sent_ms=int(old["t"]["N"]),
            order=int(old["o"]["N"]) if "o" in old else None,
        )
        for index, (key, _) in enumerate(reminders)
        if (old := failed.get(index)) is not None
    }


def reminder_item(target_id: str, digest: str, message: Stored, expires_ms: int) -> Item:
    """The item of `storage.models.DeduplicationItem`; `digest`: of the id, which may be long."""
    item: Item = {
        **key(f"D#{target_id}#{digest}", "D"),
        "i": {"S": message.id},
        "h": {"S": message.body_md5},
        "t": {"N": str(message.sent_ms)},
        "x": {"N": str(expires_ms)},
        "expires_at": {"N": str(ttl_seconds(expires_ms + limits.KEY_SLACK_MS))},
    }
    return item if message.order is None else {**item, "o": {"N": str(message.order)}}
