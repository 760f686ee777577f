"""The lot of a reader: a mark that shares of it may be parked, and the lease of the drainer.

It is written before the first share is parked, and stays while its writer may still park more:

    fan_out   lot at 0:00 ────────────── puts m1 aside at 0:40
    drainer       finds nothing parked ── removes the lot? Not before 3:00: m1 would be forgotten
"""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq.fanout.parked_items import lot_key
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key, number_in, set_request
from cirrusmq.storage import lease
from cirrusmq.storage.lease import Lease

HOLD_MS = 60_000
KEEP_MS = 180_000
"""A lot stays for this time after its last mark: longer than fan_out runs."""


def mark(core: Core, reader_id: str) -> None:
    """Marks the reader's lot: this invocation may park shares from now on."""
    now = {"t": {"N": str(core.now_ms())}}
    core.store.write("UpdateItem", set_request(core.tables.messages, lot_key(reader_id), now))


def exists(core: Core, reader_id: str) -> bool:
    """Returns True if shares of the reader may be parked."""
    return core.store.get(core.tables.messages, *lot_key(reader_id)) is not None


def idle(core: Core, pk: str) -> Iterator[str]:
    """Readers with lots under one of `lot_keys` that no drainer holds.

    Eventually consistent: the sweep looks again, and a drainer that starts takes a lease.
    """
    for lot in core.store.query_all(core.tables.messages, pk, consistent=False):
        if core.lapsed_ms() > number_in(lot, "held_until"):
            yield lot["sk"]["S"]


def hold(core: Core, reader_id: str) -> Lease | None:
    """Takes the lease of the lot for a minute. Returns None if another drainer holds it.

    A: holds until 12:01:00 ── m1 ── (no progress) ───────────── prolongs? No: stops
    B:                                  12:01:03 holds ── m1 again: it is there ── m2
    """
    return lease.take(core, lot_key(reader_id), hold_ms(core), must_exist=True)


def hold_ms(core: Core) -> int:
    """How long a drainer has the lot on the core's clock: what it calls takes real seconds."""
    return int(HOLD_MS * core.clock.scale)


def remove(core: Core, reader_id: str) -> None:
    """Removes the lot, unless it was marked lately or is held: then the sweep tries again."""
    old_ms = core.now_ms() - int(KEEP_MS * core.clock.scale)
    request = {
        "TableName": core.tables.messages,
        "Key": key(*lot_key(reader_id)),
        "ConditionExpression": f"t < :old AND {lease.UNHELD}",
        "ExpressionAttributeValues": {
            ":old": {"N": str(old_ms)},
            ":lapsed": {"N": str(core.lapsed_ms())},
        },
    }
    core.store.try_write("DeleteItem", request)
