"""Reminders of deduplication ids in the Messages table: one for each id of a queue or topic."""

from __future__ import annotations

from cirrusmq.base import limits
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import ttl_seconds


def reminder_item(
    target_id: str,
    digest: str,
    message_id: str,
    body_md5: str,
    sent_ms: int,
    expires_ms: int,
    order: int | None = None,
) -> Item:
    """The item of `storage.models.DeduplicationItem`; `digest`: of the id, which may be long."""
    item: Item = {
        **key(f"D#{target_id}#{digest}", "D"),
        "i": {"S": message_id},
        "h": {"S": body_md5},
        "t": {"N": str(sent_ms)},
        "x": {"N": str(expires_ms)},
        "expires_at": {"N": str(ttl_seconds(expires_ms + limits.KEY_SLACK_MS))},
    }
    return item if order is None else {**item, "o": {"N": str(order)}}
