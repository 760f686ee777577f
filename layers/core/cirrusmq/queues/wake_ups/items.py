"""Wake-ups in the Messages table, and the item that notes that a receiver waits.

pk `W#<source id>`, sk `<can be received at>#<partition>#<chance>`: a wake-up, without attributes.
pk `W#<source id>`, sk `~`: `u`, until when a receiver waits. TTL removes both.
"""

from __future__ import annotations

from typing import Any

from cirrusmq.queues.wake_ups.rules import due_between
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import page_request, ttl_seconds

MAX_READ = 48
"""Wake-ups that half a read unit pays for."""
_WAITING = "~"
_KEPT_MS = 180_000
"""A repeated receive, whose attempt is at most 120 s old, reads the wake-ups of the first one."""


def read_waiting(core: Core, source_id: str) -> int:
    """Returns until when a receiver waits, as one has noted; 0 if none has. Half a read unit.

    Raises Unavailable if the store does not answer.
    """
    item = core.store.get(core.tables.messages, _pk(source_id), _WAITING, consistent=False)
    return int(item["u"]["N"]) if item else 0


def put_waiting(core: Core, source_id: str, until_ms: int) -> None:
    """Notes that a receiver waits. One write unit; raises Unavailable."""
    _put(core, key(_pk(source_id), _WAITING) | {"u": {"N": str(until_ms)}}, until_ms)


def put_wake_up(core: Core, source_id: str, sort_key: str, moment_ms: int) -> None:
    """Writes a wake-up. One write unit; raises Unavailable."""
    _put(core, key(_pk(source_id), sort_key), moment_ms)


def read_wake_ups(core: Core, source_id: str, since_ms: int, now_ms: int) -> list[str]:
    """Returns the sort keys of the newest wake-ups that are due, and were not before `since_ms`.

    The newest first. Half a read unit; raises Unavailable.
    """
    after, until = due_between(since_ms, now_ms)
    table, pk = core.tables.messages, _pk(source_id)
    request = page_request(table, pk, after, until, MAX_READ, consistent=False)
    items, _, _ = core.store.query(request | {"ScanIndexForward": False})
    return [item["sk"]["S"] for item in items]


def _put(core: Core, item: Item, until_ms: int) -> None:
    expires: dict[str, Any] = {"expires_at": {"N": str(ttl_seconds(until_ms + _KEPT_MS))}}
    put = {"TableName": core.tables.messages, "Item": item | expires}
    core.store.write("PutItem", put)


def _pk(source_id: str) -> str:
    return f"W#{source_id}"
