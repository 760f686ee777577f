"""Writing the items of a send, whatever an earlier try of it left behind.

    log record (only where the bodies do not fit in the parcel) ──> parcels ──> answer

A crash before the parcels leaves a log record that nothing points to, and TTL removes it. Where a
queue has receivers, the log record itself delivers, so it goes into one transaction with the
parcels.
"""

from __future__ import annotations

from typing import Any

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.queue import Queue
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item, TransactionRefused, put_if_absent
from cirrusmq.sending.deduplication import Earlier
from cirrusmq.sending.parcels import Shipment
from cirrusmq.storage.parcels import (
    LOG,
    join_log_items,
    put_unless_sent,
    read_positions,
    ttl_seconds,
)

_TRIES = 8


def store_shipment(core: Core, queue: Queue, shipment: Shipment, now_ms: int) -> Earlier | None:
    """Write a shipment, unless an earlier try of the send did.

        a client      send ──> put ──> (answer lost)     the same send again ──> put
        the store               stored                                            key taken

    Keys come from the send's id alone, so a key that is taken holds this very send, unless a purge
    came in between: what it purged is written over. A log record from before the queue had
    receivers says less: its parcels may never have been written. It is written again, and the
    stream brings fan-out what was written over as well.
    """
    table = core.tables.messages
    log = shipment.log
    if log is not None and queue.log_since_ms is None:
        _put_log(core, log)
        log = None
    items = [*shipment.parcels, *([log] if log else [])]
    puts = [put_unless_sent(table, item, queue.purged_ms) for item in items]
    for _ in range(_TRIES):
        found = _put_together(core, puts)
        if found is None:
            return None
        standing = [item for item in found if item is not None]
        settled = tuple(item for item in standing if not is_leftover(item))
        if settled or log is None or not standing:
            return Earlier(int(settled[0]["t"]["N"]) if settled else now_ms, settled)
        (leftover,) = standing
        puts = [*puts[:-1], _overwrite(table, leftover, join_log_items(log, leftover))]
    raise Unavailable


def is_leftover(item: Item) -> bool:
    """Whether an item alone does not say that its send took effect."""
    return item["pk"]["S"].startswith(f"{LOG}#") and "h" not in item


def _put_log(core: Core, log: Item) -> None:
    """Write the log record of a queue without receivers, unless a good one is there.

    An earlier try may have had other messages of its request, or a shorter retention; parcels
    that it wrote still need theirs.
    """
    put = put_if_absent(core.tables.messages, log)
    for _ in range(_TRIES):
        try:
            core.store.write("PutItem", put)
        except ConditionFailed as failed:
            there = failed.item
            if there is None:
                put = put_if_absent(core.tables.messages, log)
                continue
            if not is_leftover(there) or _serves(there, log):
                return
            put = _overwrite(core.tables.messages, there, join_log_items(log, there))
        else:
            return
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


def _put_together(core: Core, puts: list[dict[str, Any]]) -> list[Item | None] | None:
    """Write all or nothing: None where it is done, else the items in the way."""
    try:
        if len(puts) == 1:
            core.store.write("PutItem", puts[0])
        else:
            core.store.transact([{"Put": put} for put in puts])
    except ConditionFailed as failed:
        return [failed.item]
    except TransactionRefused as refused:
        return list(refused.failed.values())
    return None
