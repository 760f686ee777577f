"""Deleting messages by receipt.

All of a parcel at once is one conditional delete. Part of it is an update; whoever sees nothing
left then removes the parcel. Where deleted messages can be rewound the parcel goes, as it stands,
into the archive, in the transaction that removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from cirrusmq.lifecycle import tombstones
from cirrusmq.model.parcel import DELETED, Parcel
from cirrusmq.model.source import rewindable_until
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, TransactionRefused, key
from cirrusmq.settlement.settle import (
    Fate,
    Held,
    ReceiptText,
    SourceOf,
    expired,
    holder_conditions,
    settle,
)
from cirrusmq.storage.parcels import archive_item, read_parcel


class DeleteRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a delete."""

    receipts: Annotated[
        list[ReceiptText], Meta(min_length=1, description="an array of 1 to 16 receipts")
    ]


def delete(core: Core, request: DeleteRequest, source_of: SourceOf) -> Fate:
    """Delete the messages; 0 for each that is deleted, an error for each that is not."""
    return settle(core, request.receipts, source_of, _delete_of_parcel)


def _delete_of_parcel(core: Core, together: Sequence[Held]) -> Fate:
    now_ms = core.now_ms()
    alive = [held for held in together if not expired(held, now_ms)]
    if not alive:
        return {}
    first = alive[0]
    places = {held.receipt.place for held in alive}
    if len(places) < len(alive):  # two receipts of one message: one of them is stale
        return _delete_each(core, alive, now_ms)
    if {held.receipt.count for held in alive} != {len(places)}:
        return _delete_part(core, alive, now_ms)
    if first.source.rewind_seconds:
        return _archive_whole(core, alive, now_ms)
    try:
        core.store.write("DeleteItem", _request(core, alive, now_ms))
    except ConditionFailed as failed:
        if failed.item is not None:
            return _delete_each(core, alive, now_ms) if len(alive) > 1 else {}
        # Gone. Where the SDK sent the delete twice, the first one did it.
        return {held.text: 0 for held in alive} if failed.repeated else {}
    return {held.text: 0 for held in alive}


def _archive_whole(core: Core, together: Sequence[Held], now_ms: int) -> Fate:
    """Delete a whole parcel and put it into the archive, both or neither."""
    first = together[0]
    item = core.store.get(core.tables.messages, first.pk, first.receipt.sort_key)
    if item is None:
        return {}
    parcel = read_parcel(item)
    deleted = replace(
        parcel,
        visible_ms=(DELETED,) * parcel.count,
        first_received_ms=(now_ms,) * parcel.count,
    )
    until_ms = rewindable_until(first.source, parcel)
    if until_ms <= now_ms:
        return _delete_part(core, together, now_ms)  # nothing left to rewind
    put = {"TableName": core.tables.messages, "Item": archive_item(deleted, until_ms)}
    try:
        core.store.transact(
            [{"Delete": _request(core, together, now_ms, seen=parcel)}, {"Put": put}]
        )
    except TransactionRefused:
        return _delete_part(core, together, now_ms)
    return {held.text: 0 for held in together}


def _delete_part(core: Core, together: Sequence[Held], now_ms: int) -> Fate:
    """Mark messages of a parcel deleted, in one write."""
    request = _request(core, together, now_ms)
    changes = []
    for held in together:  # a rewind asks when each was deleted
        changes += [f"v[{held.receipt.place}] = :none", f"f[{held.receipt.place}] = :deleted"]
    request["ExpressionAttributeValues"][":deleted"] = {"N": str(now_ms)}
    request["UpdateExpression"] = "SET " + ", ".join(changes)
    request["ReturnValues"] = "ALL_NEW"
    try:
        item = core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        done: Fate = {held.text: 0 for held in together if _applied_before(failed, held)}
        if len(together) == 1:
            return done
        return done | _delete_each(core, [h for h in together if h.text not in done], now_ms)
    assert item is not None
    parcel = read_parcel(item)
    if parcel.spent():
        tombstones.clear(core, together[0].source, parcel, now_ms)
    return {held.text: 0 for held in together}


def _delete_each(core: Core, together: Sequence[Held], now_ms: int) -> Fate:
    """One write for each message, so that a stale receipt stops none of the others."""
    fates: Fate = {}
    for held in together:
        fates |= _delete_part(core, [held], now_ms)
    return fates


def _applied_before(failed: ConditionFailed, held: Held) -> bool:
    """Whether an earlier try of this very call deleted the message."""
    if not failed.repeated:
        return False
    if failed.item is None:  # its whole parcel is gone: by that try, unless a purge took it
        purged = f"{held.source.purged_ms:013d}~"
        return held.source.ordered or held.receipt.sort_key > purged
    parcel = read_parcel(failed.item)
    place = held.receipt.place
    return (
        place < parcel.count
        and parcel.nonces[place] == held.receipt.nonce
        and parcel.visible_ms[place] == DELETED
    )


def _request(
    core: Core, together: Sequence[Held], now_ms: int, seen: Parcel | None = None
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    conditions = [
        condition for held in together for condition in holder_conditions(held, now_ms, values)
    ]
    if seen is not None:  # what goes into the archive is what was read
        for place, visible_ms in enumerate(seen.visible_ms):
            conditions.append(f"v[{place}] = :v{place}")
            values[f":v{place}"] = {"N": str(visible_ms)}
    return {
        "TableName": core.tables.messages,
        "Key": key(together[0].pk, together[0].receipt.sort_key),
        "ConditionExpression": " AND ".join(dict.fromkeys(conditions)),
        "ExpressionAttributeValues": values,
    }
