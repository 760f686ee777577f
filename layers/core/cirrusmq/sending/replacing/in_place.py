"""Storing a message in the place of another one, which waits under its key.

    read the key's item ──> transact(new parcel, the item if it is as read, old message cancelled
                                     if it was never received)

A receiver claims the old message under a condition that the cancellation breaks, so it is received
or replaced, never both, and never neither:

    sender      key: a      transact: a never received?   yes ──> a CANCELLED, b waits
    receiver    reads a     claims a: as it was read?     no  ──> nothing

    sender      key: a      transact: a never received?   no  ──> b is sent, a is its receiver's
    receiver    claims a

Two senders read the same item; the second one's condition fails, and it reads again: it replaces
the first one's message.

A send that is repeated finds itself. Its parcel keeps its key taken, while it waits and, as a
tombstone, once it was replaced. A message that was received and deleted leaves nothing, so the item
names the sends of such messages as long as they may be repeated:

    client     a (answer lost) ......................... a again
    receiver         receives and deletes a
    another                               b, which waits      ──> not replaced by a of before
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InvalidParameter, Unavailable
from cirrusmq.model.parcel import MOVED, REPLACED
from cirrusmq.model.queue import Queue
from cirrusmq.model.transitions import cancelled
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, TransactionRefused, key, put_if_absent
from cirrusmq.sending.conditional_writes import under_due_key
from cirrusmq.sending.making import Items
from cirrusmq.sending.replacing.items import (
    Waiting,
    past_sent_ms,
    read_waiting,
    waiting_item,
    waiting_of,
    with_past,
)
from cirrusmq.sending.replacing.rules import Replacement, due_at_latest_ms
from cirrusmq.storage.changes import Condition, change
from cirrusmq.storage.locations import read_place
from cirrusmq.storage.parcels import (
    PARCELS,
    partition_key,
    put_if_unsent,
    read_parcel,
)

_TRIES = 8


class StoredInPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A stored message, by this try of its send or an earlier one."""

    sent_ms: int
    replaced: str | None
    """Id of the message that it replaced, or None."""
    parcels: tuple[Item, ...] = ()
    """The parcels that this try wrote; empty after an earlier one."""


class _Old(msgspec.Struct, frozen=True, kw_only=True):
    """The message to be replaced, where it waits."""

    waiting: Waiting
    pk: str
    sort_key: str


def store_in_place(
    core: Core, queue: Queue, replacement: Replacement, send_id: str, items: Items
) -> StoredInPlace:
    """Stores a message, and cancels the message that waits under its key, both or neither.

    items: of the message alone, under the keys that follow from its send's id. At most 6 write
    units for a small message; 8 if the bound made it due earlier, or its attempt is old.
    Raises InvalidParameter if the attempt is too old for a key whose messages are received often.
    """
    for _ in range(_TRIES):
        known = read_waiting(core, queue.id, replacement.key)
        now_ms = core.now_ms()
        if earlier := _earlier_try(queue, known, send_id, replacement):
            return earlier
        old = _find_old(core, queue, known, now_ms)
        written = _written(core, replacement, items, known, old, now_ms)
        writes = _writes(core, queue, replacement, written, known, old, now_ms)
        try:
            core.store.transact(writes)
        except TransactionRefused as refused:
            count = len(written.items.all)
            for at, item in refused.failed.items():
                if at < count and item is not None:
                    return told_by(item)
            # Another message has the key now, or the old one was received or moved.
        else:
            return StoredInPlace(
                sent_ms=written.waiting.sent_ms,
                replaced=written.waiting.replaced,
                parcels=written.items.parcels,
            )
    raise Unavailable


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of one try."""

    items: Items
    waiting: Waiting


def _earlier_try(
    queue: Queue, known: Waiting | None, send_id: str, replacement: Replacement
) -> StoredInPlace | None:
    """Returns the message that an earlier try of this send stored, by the key's item."""
    if known is None or known.sent_ms <= queue.purged_ms:
        return None
    if known.send_id == send_id:
        return StoredInPlace(sent_ms=known.sent_ms, replaced=known.replaced)
    if not replacement.repeatable:
        return None
    sent_ms = past_sent_ms(known, send_id)
    if sent_ms is not None:
        # A message that was purged is stored again.
        purged = sent_ms <= queue.purged_ms
        return None if purged else StoredInPlace(sent_ms=sent_ms, replaced=None)
    if ulid.time_of(send_id) <= known.horizon_ms:
        raise InvalidParameter(
            "attempt", "is too old for a replace key this busy; send again with a new attempt"
        )
    return None


def told_by(item: Item) -> StoredInPlace:
    """Returns the message that an earlier try of this send stored, by its parcel or record."""
    replaced = item[REPLACED]["S"] if REPLACED in item else None
    return StoredInPlace(sent_ms=int(item["t"]["N"]), replaced=replaced)


def _find_old(core: Core, queue: Queue, known: Waiting | None, now_ms: int) -> _Old | None:
    """Returns the message that a key names, if it waits. One read unit, three if it was put off.

    The transaction compares it again: this look saves the units of one that would be refused.
    """
    if known is None or known.sent_ms <= queue.purged_ms or known.expires_ms <= now_ms:
        return None
    key = partition_key(PARCELS, queue.id, known.partition), known.sort_key
    item = core.store.get(core.tables.messages, *key)
    if item is not None and item["t"]["N"] == str(known.sent_ms):
        parcel = read_parcel(item)
        if parcel.visible_ms[0] == MOVED and not parcel.receives[0]:
            noted = read_place(core, queue.id, known.send_id, 0)  # its due time was changed
            if noted is None:
                return None
            key = noted
            item = core.store.get(core.tables.messages, *key)
    if item is None or item["t"]["N"] != str(known.sent_ms):
        return None
    parcel = read_parcel(item)
    if not parcel.live(0) or parcel.receives[0] or parcel.dead_letter:
        return None
    return _Old(waiting=known, pk=key[0], sort_key=key[1])


def _written(
    core: Core,
    replacement: Replacement,
    items: Items,
    known: Waiting | None,
    old: _Old | None,
    now_ms: int,
) -> _Written:
    replaced = None if old is None else old.waiting.message_id
    parcel = read_parcel(items.parcels[-1])  # the last one has the message, a first one is a mark
    first_ms = parcel.sent_ms if old is None else old.waiting.first_ms
    latest_ms = due_at_latest_ms(replacement, first_ms, now_ms)
    if latest_ms is not None and latest_ms < parcel.visible_ms[0]:
        items = under_due_key(items, latest_ms, core.clock.scale)
    if replaced is not None:
        note = {REPLACED: {"S": replaced}}
        items = Items(
            log=items.log and items.log | note,
            parcels=tuple(item | note for item in items.parcels),
        )
    past, horizon_ms = b"", 0
    since_ms = now_ms - int(limits.TOMBSTONE_MS * core.clock.scale)
    if known is not None:
        # A message that is replaced leaves a tombstone, which stops its repetitions.
        ended = known if old is None else replace(known, repeatable=False)
        past, horizon_ms = with_past(ended, since_ms)
    waiting = replace(
        waiting_of(read_parcel(items.parcels[-1]), first_ms),
        replaced=replaced,
        repeatable=replacement.repeatable,
        past=past,
        horizon_ms=horizon_ms,
    )
    return _Written(items=items, waiting=waiting)


def _writes(
    core: Core,
    queue: Queue,
    replacement: Replacement,
    written: _Written,
    known: Waiting | None,
    old: _Old | None,
    now_ms: int,
) -> list[Mapping[str, Any]]:
    table = core.tables.messages
    item = waiting_item(queue.id, replacement.key, written.waiting)
    put = put_if_absent(table, item)
    if known is not None:
        put["ConditionExpression"] = "i = :known AND t = :sent"
        put["ExpressionAttributeValues"] = {
            ":known": {"S": known.message_id},
            ":sent": {"N": str(known.sent_ms)},
        }
    writes: list[Mapping[str, Any]] = [
        {"Put": put_if_unsent(table, each, queue.purged_ms)} for each in written.items.all
    ]
    writes.append({"Put": put})
    if old is not None:
        writes.append({"Update": _cancellation(core, old, now_ms)})
    return writes


def _cancellation(core: Core, old: _Old, now_ms: int) -> dict[str, Any]:
    """Returns the update that cancels the old message, if nobody has received it."""
    still = never_received(old.waiting)
    taken_ms = now_ms + int(limits.CANCELLATION_TOLD_MS * core.clock.scale)
    # No parcel at another key than its first one is repeated, but one rule is enough for both.
    begun_ms = ulid.time_of(old.waiting.send_id)
    ends_ms = max(taken_ms, begun_ms + int(limits.TOMBSTONE_MS * core.clock.scale)) + 1
    update = change(
        core.tables.messages,
        key(old.pk, old.sort_key),
        {0: cancelled(now_ms)},
        still,
        ends_ms=ends_ms,
    )
    return update | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def never_received(waiting: Waiting) -> Condition:
    """Returns the condition that the message is in its parcel, and nobody ever received it.

    A claim raises `r`; a delete, a move or a cancellation takes `v` to 0 or below; a purge that the
    same send follows again changes `t`. A dead letter was received elsewhere.
    """
    return Condition(
        ("t = :sent", "v[0] > :none", "r[0] = :none", "attribute_not_exists(d)"),
        {":sent": {"N": str(waiting.sent_ms)}, ":none": {"N": "0"}},
    )
