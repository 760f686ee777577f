"""Writing the items of a send, also over the items of an earlier try.

    log record (only if the bodies do not fit in the parcel) ──> parcels ──> answer

A crash before the parcels leaves a log record without any pointer to it, and TTL removes it. If a
queue has receivers, the log record itself delivers, so it is written in one transaction with the
parcels.

A send may be stored long after its attempt began. Its keys must not be older than it:

    a client     attempt ── tries ── tries ──────────────── is answered
    the head     ....passed....: a key of the attempt's time is hidden by the mark for 27 s
    instead      [tombstone under that key, for repetitions]   [the messages under the present]

Both in one transaction. A key that is a second old at most needs none of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import MOVED, key_ms, sort_key, tombstone_until
from cirrusmq.model.queue import Queue
from cirrusmq.model.transitions import under_key
from cirrusmq.runtime.core import Core, LeftToService
from cirrusmq.runtime.store import ConditionFailed, Item, TransactionRefused, put_if_absent
from cirrusmq.sending.deduplication import PreviousAttempt
from cirrusmq.sending.making import Items
from cirrusmq.storage.parcels import (
    LOG,
    PARCELS,
    join_log_items,
    parcel_item,
    partition_key,
    put_if_unsent,
    read_parcel,
    read_positions,
    ttl_seconds,
)

_TRIES = 8


def store_items(core: Core, queue: Queue, items: Items) -> PreviousAttempt | None:
    """Writes the items of a send, unless an earlier try of it did.

        a client      send ──> put ──> (answer lost)     the same send again ──> put
        the store               stored                                            key taken

    Keys depend on the send's id alone, so a key that is taken has this very send, unless a purge
    was in between: purged items are written over. A log record from before the queue had
    receivers says less: its parcels may never have been written. It is written again, and the
    stream has such overwrites as well.
    """
    log = items.log
    if log is not None and queue.log_since_ms is None:
        _write(core, (), log, purged_ms=0, together=False)
        log = None
    return _write(core, items.parcels, log, purged_ms=queue.purged_ms, together=True)


def find_with_earlier_delay(
    core: Core, queue: Queue, send_id: str, begun_ms: int, prefixes: Iterable[str]
) -> PreviousAttempt | None:
    """Returns this very send, if it was stored before the queue's delay changed.

    prefixes: groups' parts of the keys, under which it may be.

        a client      send (attempt) ──> answer lost ............. the same send again
        the queue     delay 0: stored at the attempt's time ...... delay 5: another key

    Keys hold the delay, so the earlier ones are looked up; only just after such a change.
    """
    delays = queue.earlier_delays_of(begun_ms) - {queue.attributes.delay_seconds}
    if not delays:
        return None
    stored = []
    for prefix in prefixes:
        pk = partition_key(PARCELS, queue.id, queue.partition_of(send_id, prefix))
        for seconds in delays:
            key = prefix + sort_key(begun_ms + seconds * 1000, send_id)
            item = core.store.get(core.tables.messages, pk, key)
            if item is not None and int(item["t"]["N"]) > queue.purged_ms:
                stored.append(item)
                break
    return PreviousAttempt(int(stored[0]["t"]["N"]), tuple(stored)) if stored else None


def is_orphan_record(item: Item) -> bool:
    """Returns True if the item alone does not prove that its send took effect."""
    return item["pk"]["S"].startswith(f"{LOG}#") and "h" not in item


def _write(
    core: Core, parcels: Sequence[Item], log: Item | None, *, purged_ms: int, together: bool
) -> PreviousAttempt | None:
    """Writes all or nothing; a leftover log record is joined with this send's messages.

    Returns None once it is written, else the previous attempt that is stored.

    `together`: the log record delivers, and is written with its parcels. Else it only has their
    bodies, and a leftover is as good if it lives as long and has all of them: the earlier try may
    have had other messages of its request, or a shorter retention; parcels that it wrote still
    need theirs.
    """
    table = core.tables.messages
    firsts = [put_if_unsent(table, item, purged_ms) for item in parcels]
    last = put_log = [put_if_unsent(table, log, purged_ms)] if log else []
    for _ in range(_TRIES):
        taken = _put_together(core, [*firsts, *last])
        if taken is None:
            return None
        stored = tuple(
            item
            for item in taken
            if not is_orphan_record(item) or (log and not together and _serves(item, log))
        )
        if stored:
            return PreviousAttempt(int(stored[0]["t"]["N"]), stored)
        last = put_log  # the leftover is gone
        if log and taken:
            if core.settings.in_process:
                raise LeftToService  # the policy of a process does not allow to join records
            (leftover,) = taken
            last = [_overwrite(table, leftover, join_log_items(log, leftover))]
    raise Unavailable


def _serves(there: Item, log: Item) -> bool:
    lives = int(there["expires_at"]["N"]) >= ttl_seconds(int(log["x"]["N"]))
    return lives and set(read_positions(log)) <= set(read_positions(there))


def _overwrite(table: str, seen: Item, item: Item) -> dict[str, Any]:
    """A put over a log record that is still as it was seen."""
    return put_if_absent(table, item) | {
        "ConditionExpression": "b = :content AND expires_at = :end AND attribute_not_exists(h)",
        "ExpressionAttributeValues": {":content": seen["b"], ":end": seen["expires_at"]},
    }


def _put_together(core: Core, puts: Sequence[dict[str, Any]]) -> list[Item] | None:
    """Writes all or nothing. Returns None once it is done, else the items in the way."""
    try:
        if len(puts) == 1:
            core.store.write("PutItem", puts[0])
        else:
            core.store.transact([{"Put": put} for put in puts])
    except ConditionFailed as failed:
        return [failed.item] if failed.item else []
    except TransactionRefused as refused:
        return [item for item in refused.failed.values() if item]
    return None


def under_present_keys(items: Items, now_ms: int, scale: float) -> Items:
    """The items for an unordered queue, its parcels with old keys re-keyed."""
    if not any(_is_old(item, now_ms) for item in items.parcels):
        return items
    parcels: list[Item] = []
    for item in items.parcels:
        parcels += _rekeyed(item, now_ms, None, scale) if _is_old(item, now_ms) else [item]
    return replace(items, parcels=tuple(parcels))


def under_due_key(items: Items, due_ms: int, scale: float) -> Items:
    """The items of one message, due at `due_ms`, which does not follow from its send's id.

    A message that was re-keyed already has its tombstone.
    """
    *marks, item = items.parcels
    if not marks:
        return replace(items, parcels=tuple(_rekeyed(item, due_ms, due_ms, scale)))
    moved = under_key(read_parcel(item), [0], due_ms, due_ms, None)
    return replace(items, parcels=(*marks, parcel_item(moved)))


def _is_old(item: Item, now_ms: int) -> bool:
    return now_ms - key_ms(item["sk"]["S"]) > limits.FRESH_KEY_MS


def _rekeyed(item: Item, new_key_ms: int, due_ms: int | None, scale: float) -> list[Item]:
    """The tombstone under the old key, and the messages under the new one.

    due_ms: None leaves them due when they are.
    """
    parcel = read_parcel(item)
    tombstone = replace(parcel, visible_ms=(MOVED,) * parcel.count, content=None)
    end_ms = tombstone_until(parcel, scale) + 1
    indexes = range(parcel.count)
    due_ms = parcel.visible_ms[0] if due_ms is None else due_ms
    moved = under_key(parcel, indexes, new_key_ms, due_ms, parcel.moved_from)
    return [
        parcel_item(tombstone) | {"expires_at": {"N": str(ttl_seconds(end_ms))}},
        parcel_item(moved),
    ]
