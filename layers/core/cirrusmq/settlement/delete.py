"""Deleting messages by receipt.

All of a parcel at once is one conditional delete. Part of it is an update; the call that deletes
the last message then removes the parcel. If deleted messages can be rewound, or a new receiver is
given the queue's backlog, the parcel is put unchanged into the archive, in the transaction that
removes it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle import tombstones
from cirrusmq.model.parcel import DELETED, Parcel, key_in_group
from cirrusmq.model.receipt import lease_end_ms
from cirrusmq.model.source import kept_until
from cirrusmq.model.transitions import changed, deleted
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, TransactionRefused
from cirrusmq.settlement.settle import (
    Held,
    Receipts,
    Results,
    SourceOf,
    expired,
    holds_still,
    left_by_earlier_try,
    settle,
)
from cirrusmq.storage.changes import Condition, all_of, as_read, change, removal
from cirrusmq.storage.parcels import archive_item, parcel_key, read_parcel

_logger = logging.getLogger(__name__)


class DeleteRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a delete."""

    receipts: Receipts


def delete(core: Core, request: DeleteRequest, source_of: SourceOf) -> Results:
    """Deletes the messages. The result is 0 for each that is deleted, else an error."""
    return settle(core, request.receipts, source_of, _delete_of_parcel)


def delete_what_can_be(core: Core, receipts: Sequence[str], source_of: SourceOf) -> Results:
    """Does what `delete` does, but a refusal of the store is one parcel's result alone."""
    return settle(core, receipts, source_of, _delete_or_refusal)


def _delete_or_refusal(core: Core, together: Sequence[Held]) -> Results:
    try:
        return _delete_of_parcel(core, together)
    except Unavailable as error:
        _logger.warning("%d messages were not deleted: %r", len(together), error.__cause__)
        return {held.text: error for held in together}


def _delete_of_parcel(core: Core, together: Sequence[Held]) -> Results:
    now_ms = core.now_ms()
    alive = [held for held in together if not expired(held, now_ms)]
    if not alive:
        return {}
    first = alive[0]
    indexes = {held.receipt.place for held in alive}
    if len(indexes) < len(alive):  # two receipts of one message: one of them is stale
        return _delete_each(core, alive, now_ms)
    if first.receipt.count != len(indexes):
        return _delete_part(core, alive, now_ms)
    if first.source.archives:
        return _archive_whole(core, alive, now_ms)
    try:
        request = removal(core.tables.messages, first.key, _hold_still(alive, now_ms))
        core.store.write("DeleteItem", request)
    except ConditionFailed as failed:
        if failed.item is not None:
            return _delete_each(core, alive, now_ms) if len(alive) > 1 else {}
        return {held.text: 0 for held in alive if _took_parcel(core, failed, held)}
    return {held.text: 0 for held in alive}


def _archive_whole(core: Core, together: Sequence[Held], now_ms: int) -> Results:
    """Deletes a whole parcel and puts it into the archive, both or neither."""
    first = together[0]
    item = core.store.get(core.tables.messages, first.pk, first.receipt.sort_key)
    if item is None:
        return {}
    parcel = read_parcel(item)
    until_ms = kept_until(first.source, parcel)
    if until_ms <= now_ms:
        return _delete_part(core, together, now_ms)  # nobody will ask for it
    still = _hold_still(together, now_ms)
    try:
        core.store.transact(archiving(core, parcel, still, until_ms, now_ms))
    except TransactionRefused:
        return _delete_part(core, together, now_ms)
    return {held.text: 0 for held in together}


def archiving(
    core: Core, parcel: Parcel, still: Condition, until_ms: int, now_ms: int
) -> list[dict[str, Any]]:
    """Returns the writes that delete a whole parcel and put it into the archive.

    until_ms: how long it is kept there.
    """
    gone = changed(parcel, dict.fromkeys(range(parcel.count), deleted(now_ms)))
    put = {"TableName": core.tables.messages, "Item": archive_item(gone, until_ms)}
    # The archive gets the parcel as it was read.
    seen = as_read(parcel, range(parcel.count), "visible_ms")
    removed = removal(core.tables.messages, parcel_key(parcel), all_of([still, seen]))
    return [{"Delete": removed}, {"Put": put}]


def _delete_part(core: Core, together: Sequence[Held], now_ms: int) -> Results:
    """Marks messages of a parcel deleted, in one write."""
    changes = {held.receipt.place: deleted(now_ms) for held in together}
    still = _hold_still(together, now_ms)
    request = change(core.tables.messages, together[0].key, changes, still)
    request["ReturnValues"] = "ALL_NEW"
    try:
        item = core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        done: Results = {held.text: 0 for held in together if _applied_before(core, failed, held)}
        if len(together) == 1:
            return done
        return done | _delete_each(core, [h for h in together if h.text not in done], now_ms)
    assert item is not None
    parcel = read_parcel(item)
    if parcel.spent():
        tombstones.clear(core, together[0].source, parcel, now_ms)
    return {held.text: 0 for held in together}


def _delete_each(core: Core, together: Sequence[Held], now_ms: int) -> Results:
    """Does one write for each message, so that a stale receipt stops none of the others."""
    results: Results = {}
    for held in together:
        results |= _delete_part(core, [held], now_ms)
    return results


def _applied_before(core: Core, failed: ConditionFailed, held: Held) -> bool:
    """Returns True if an earlier try of this very call deleted the message."""
    if not failed.repeated:
        return False
    if failed.item is None:
        purged = f"{held.source.purged_ms:013d}~"
        standing = held.source.ordered or key_in_group(held.receipt.sort_key) > purged
        return standing and _took_parcel(core, failed, held)
    return left_by_earlier_try(failed, held, DELETED, held.receipt.nonce)


def _took_parcel(core: Core, failed: ConditionFailed, held: Held) -> bool:
    """Returns True if a parcel that is gone was removed by an earlier try of this very call.

        granted ───────────────────────── end of the lease
           try 1, its answer lost;            another receiver moves the message
           try 2 finds nothing: it was 1      elsewhere; try 1 and 2 find nothing

    Nobody else removes it while the lease lasts, by any clock. After its end, which its holder may
    have put off, the receipt is stale: a message may come again if its delete was refused, but not
    if its delete was confirmed. A holder that gave the message back and then deletes it may get the
    answer that it did.
    """
    return failed.repeated and core.now_ms() + core.skew_ms < lease_end_ms(held.receipt.nonce)


def _hold_still(together: Sequence[Held], now_ms: int) -> Condition:
    return all_of(holds_still(held, now_ms) for held in together)
