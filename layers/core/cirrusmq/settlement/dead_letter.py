"""Consumers giving up on messages: by receipt, to the dead-letter queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from cirrusmq.base import limits
from cirrusmq.base.errors import NoDeadLetterQueue
from cirrusmq.lifecycle.dead_letters.move import dead_letter_queue
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.settle import Held, Receipts, Results, SourceOf, expired, settle
from cirrusmq.settlement.visibility import holds
from cirrusmq.storage.parcels import read_parcel


class DeadLetterRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a consumer's dead-letter call."""

    receipts: Receipts
    reason: Annotated[
        str,
        Meta(
            max_length=limits.REASON_CHARACTERS,
            description=f"a text of at most {limits.REASON_CHARACTERS} characters",
        ),
    ] = "consumer"


def dead_letter(core: Core, request: DeadLetterRequest, source_of: SourceOf) -> Results:
    """Moves the messages to the dead-letter queue. The result is 0 for each that was moved."""

    def act(core: Core, together: Sequence[Held]) -> Results:
        results: Results = {}
        for held in together:
            results |= _dead_letter(core, held, request.reason)
        return results

    return settle(core, request.receipts, source_of, act)


def _dead_letter(core: Core, held: Held, reason: str) -> Results:
    now_ms = core.now_ms()
    item = core.store.get(core.tables.messages, held.pk, held.receipt.sort_key)
    if item is None or expired(held, now_ms):
        return {}
    parcel = read_parcel(item)
    if not holds(held, parcel, now_ms):
        return {}
    target = dead_letter_queue(core, held.source)
    if target is None:
        return {held.text: NoDeadLetterQueue()}
    # Deletes have the same function, and their cold starts do without what this takes.
    from cirrusmq.lifecycle.transfer import move_to_queue

    index, nonce = held.receipt.place, held.receipt.nonce
    moved = move_to_queue(core, held.source, parcel, index, target, reason, now_ms, nonce)
    return {} if moved is None else {held.text: 0}
