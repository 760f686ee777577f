"""Strict deduplication: the reminder of an id, and the messages it stands for, in one transaction.

    A: transact(reminder if absent or expired, log record, parcels) ──> stored
    B: the same id                                                  ──> refused: A's reminder

B answers what A's reminder says, also when A's message is consumed by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from cirrusmq import limits
from cirrusmq.core import Core
from cirrusmq.enqueue import Shipment
from cirrusmq.queue import Queue
from cirrusmq.storage.models import DeduplicationItem
from cirrusmq.storage.parcels import ttl_seconds
from cirrusmq.storage.store import Item, TransactionRefused, put_if_absent


class Reminder(NamedTuple):
    """The message that a deduplication id stands for."""

    message_id: str
    body_md5: str
    sent_ms: int


class Duplicate(Exception):
    """Some of the ids were used within 5 minutes; nothing was written."""

    def __init__(self, found: dict[str, Reminder]) -> None:
        super().__init__()
        self.found = found


def reminder(queue_id: str, deduplication_id: str, message_id: str, md5: str, now_ms: int) -> Item:
    """The item that remembers a deduplication id of a queue or topic."""
    digest = hashlib.sha256(deduplication_id.encode()).hexdigest()[:40]
    expires_ms = now_ms + limits.DEDUPLICATION_MS
    item = DeduplicationItem(
        f"D#{queue_id}#{digest}",
        "D",
        message_id=message_id,
        body_md5=md5,
        sent_ms=now_ms,
        expires_ms=expires_ms,
        expires_at=ttl_seconds(expires_ms),
    )
    return dict(item.serialize())


def transact(
    core: Core, queue: Queue, shipment: Shipment, reminders: Sequence[tuple[str, Item]], now_ms: int
) -> int:
    """Write reminders and shipment, all or nothing; answers `sent_ms`. Raises Duplicate."""
    table = core.tables.messages
    items = [*shipment.parcels, *([shipment.log] if shipment.log else [])]
    writes: list[dict[str, Any]] = [
        {
            "Put": {
                "TableName": table,
                "Item": item,
                "ConditionExpression": "attribute_not_exists(pk) OR x <= :now",
                "ExpressionAttributeValues": {":now": {"N": str(now_ms)}},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }
        for _, item in reminders
    ]
    writes += [{"Put": put_if_absent(table, item)} for item in items]
    try:
        core.store.transact(writes)
    except TransactionRefused as refused:
        found: dict[str, Reminder] = {}
        for place, (key, item) in enumerate(reminders):
            old = refused.failed.get(place)
            if old is None:
                continue
            if old["i"] == item["i"]:  # our own: an earlier try took effect
                return int(old["t"]["N"])
            found[key] = Reminder(old["i"]["S"], old["h"]["S"], int(old["t"]["N"]))
        if not found:  # the send's own parcels: an earlier try of it took effect
            return now_ms
        raise Duplicate(found) from refused
    return now_ms
