"""A lease in an item: the worker that has it, and until when no other worker may.

    A: takes until 12:01:00 ── works ── stalls ────────────── 12:01:03 renews: refused, it stops
    B:                  12:01:01 refused: A's clock may be behind ── 12:01:02.1 takes

The second try of the SDK finds its own holder, and so what the first one wrote. `held_until` has
another name in some items, which is stored. A poster's lease is a part of bigger writes, and takes
the condition alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cirrusmq.base.names import new_id
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item, key

UNHELD = "(attribute_not_exists(held_until) OR held_until < :lapsed)"
"""Nobody has it; the value is `Core.lapsed_ms`."""


class Lease(NamedTuple):
    """A lease that a worker has."""

    pk: str
    sk: str
    holder: str
    until: str = "held_until"
    """The attribute with its end."""


def take(
    core: Core,
    key: tuple[str, str],
    ms: int,
    *,
    until: str = "held_until",
    must_exist: bool = False,
    kept_ms: int | None = None,
) -> Lease | None:
    """Takes a lease for `ms` milliseconds. Returns None if another worker has it.

    kept_ms: time from the lease's end until TTL may remove the item; None keeps the item's expiry.
    """
    lease = Lease(*key, new_id(core.random), until)
    condition = UNHELD.replace("held_until", until)
    if must_exist:
        condition += " AND attribute_exists(pk)"
    lapsed = {":lapsed": {"N": str(core.lapsed_ms())}}
    return lease if _write(core, lease, ms, kept_ms, condition, lapsed) else None


def renew(core: Core, lease: Lease, ms: int, *, kept_ms: int | None = None) -> bool:
    """Renews a lease for `ms` milliseconds from now. Returns False if another worker has it."""
    return _write(core, lease, ms, kept_ms, "holder = :holder", {})


def release(core: Core, lease: Lease, *, delete: bool = False) -> None:
    """Releases a lease unless another worker has it. delete: the item has nothing but the lease."""
    request = _request(core, lease, "holder = :holder")
    if not delete:
        request["UpdateExpression"] = f"REMOVE holder, {lease.until}"
    core.store.try_write("DeleteItem" if delete else "UpdateItem", request)


def _write(
    core: Core, lease: Lease, ms: int, kept_ms: int | None, condition: str, values: Item
) -> bool:
    """Writes the lease under the condition. Returns True if this worker has it afterwards."""
    until_ms = core.now_ms() + ms
    request = _request(core, lease, condition)
    request["UpdateExpression"] = f"SET holder = :holder, {lease.until} = :until"
    request["ExpressionAttributeValues"] |= {":until": {"N": str(until_ms)}, **values}
    if kept_ms is not None:
        request["UpdateExpression"] += ", expires_at = :expires"
        request["ExpressionAttributeValues"][":expires"] = {"N": str((until_ms + kept_ms) // 1000)}
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        return (failed.item or {}).get("holder") == {"S": lease.holder}
    return True


def _request(core: Core, lease: Lease, condition: str) -> dict[str, Any]:
    return {
        "TableName": core.tables.messages,
        "Key": key(lease.pk, lease.sk),
        "ConditionExpression": condition,
        "ExpressionAttributeValues": {":holder": {"S": lease.holder}},
    }
