"""The lot of a reader: a mark that shares of it may be parked, and the lease of the drainer.

It is written before the first share is parked, and stays while its writer may still park more:

    fan_out   lot at 0:00 ────────────── puts m1 aside at 0:40
    drainer       finds nothing parked ── removes the lot? Not before 3:00: m1 would be forgotten
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item
from cirrusmq.storage.parked import lot_key, lot_update

HOLD_MS = 60_000
KEEP_MS = 180_000
"""Longer than fan_out runs."""


def mark(core: Core, reader_id: str) -> None:
    """Mark the reader's lot: this invocation may park shares from now on."""
    core.store.write("UpdateItem", lot_update(core.tables.messages, reader_id, core.now_ms()))


def exists(core: Core, reader_id: str) -> bool:
    """Whether shares of the reader may be parked."""
    return core.store.get(core.tables.messages, *_place(reader_id)) is not None


def idle(core: Core, pk: str) -> Iterator[str]:
    """Readers with lots under one of `lot_keys` that no drainer holds.

    Eventually consistent: the sweep looks again, and a drainer that starts takes a lease.
    """
    for lot in core.store.query_all(core.tables.messages, pk, consistent=False):
        if core.now_ms() >= int(lot.get("held_until", {"N": "0"})["N"]):
            yield lot["sk"]["S"]


def hold(core: Core, reader_id: str, holder: str) -> bool:
    """Take the lease of the lot for a minute, or prolong it; False where another drainer has it.

    A: holds until 12:01:00 ── m1 ── (no progress) ───────────── prolongs? No: stops
    B:                                  12:01:01 holds ── m1 again: it is there ── m2
    """
    now_ms = core.now_ms()
    request = {
        "UpdateExpression": "SET holder = :holder, held_until = :until",
        "ConditionExpression": "attribute_exists(pk) AND "
        "(attribute_not_exists(holder) OR holder = :holder OR held_until < :now)",
        "ExpressionAttributeValues": {
            ":holder": {"S": holder},
            ":now": {"N": str(now_ms)},
            ":until": {"N": str(now_ms + int(HOLD_MS * core.clock.scale))},
        },
    }
    return _write(core, "UpdateItem", reader_id, request)


def release(core: Core, reader_id: str, holder: str) -> None:
    """Give the lease back."""
    request = {
        "UpdateExpression": "REMOVE holder, held_until",
        "ConditionExpression": "holder = :holder",
        "ExpressionAttributeValues": {":holder": {"S": holder}},
    }
    _write(core, "UpdateItem", reader_id, request)


def remove(core: Core, reader_id: str) -> None:
    """Remove the lot, unless it was marked lately or is held: then the sweep tries again."""
    now_ms = core.now_ms()
    request = {
        "ConditionExpression": "t < :old AND (attribute_not_exists(holder) OR held_until < :now)",
        "ExpressionAttributeValues": {
            ":old": {"N": str(now_ms - int(KEEP_MS * core.clock.scale))},
            ":now": {"N": str(now_ms)},
        },
    }
    _write(core, "DeleteItem", reader_id, request)


def _write(core: Core, operation: str, reader_id: str, request: dict[str, Any]) -> bool:
    """Whether the condition held."""
    try:
        core.store.write(
            operation,
            {"TableName": core.tables.messages, "Key": lot_key(reader_id), **request},
        )
    except ConditionFailed as failed:
        values: Item = request["ExpressionAttributeValues"]
        # A call that the SDK sent twice finds the hold that its first try wrote.
        mine = (failed.item or {}).get("holder") == values.get(":holder", ":none")
        return failed.repeated and mine
    return True


def _place(reader_id: str) -> tuple[str, str]:
    place = lot_key(reader_id)
    return place["pk"]["S"], place["sk"]["S"]
