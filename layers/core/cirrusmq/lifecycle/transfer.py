"""Moving a message into another queue: a dead letter, or a message that is redriven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cirrusmq.lifecycle.moves import move_out, origin
from cirrusmq.model.parcel import Parcel, lone_parcel_id, others_of
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.sending.making import Entry, Origin, items_for
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.bodies.write import keep_messages
from cirrusmq.storage.sequences import take_sequence


def move_to_queue(
    core: Core,
    source: Source,
    parcel: Parcel,
    index: int,
    target: Queue,
    reason: str | None,
    now_ms: int,
    nonce: bytes | None = None,
    back_to: str | None = None,
    alongside: Sequence[Mapping[str, Any]] = (),
) -> Parcel | None:
    """Moves the message at `index` into another queue, where its life starts again.

    reason: of a dead letter; None for a redrive. back_to: the only source of the target that gets a
    redriven message; None for all. alongside: writes in the move's transaction. Returns the rest of
    the parcel, or None if another worker was faster or the message's content cannot be read now.

        object, class d05 ──> still there for the new life? else copied ──> the move's transaction

    A copy that no parcel comes to name expires. Raises Unavailable if the bucket refuses.
    """
    (messages,) = read_contents(core, source, [(parcel, [index])])
    if index not in messages:
        return None
    message = messages[index]
    if target.attributes.ordered and message.group is None:
        if source.subscription is None:
            return None  # it has no place in the target's order
        message = msgspec.structs.replace(message, group=parcel.message_id(index))
    days = parcel.object_days
    own = message.with_text_of(source.text_attributes)
    if own is not message:
        # The dead letter is the text that was posted, which is no body of its send's object.
        message, days = own, 0
    entry = Entry(
        position=parcel.position(index),
        message=message,
        available_ms=now_ms,
        visibility_seconds=parcel.visibility_seconds[index] if parcel.visibility_seconds else 0,
    )
    object_days = keep_messages(core, target, parcel.send_id, days, now_ms)
    if object_days is None:
        return None
    dead_letter = None
    if reason is not None:
        dead_letter = {
            "source_queue": source.queue_name,
            "receive_count": parcel.tries(index),
            "dead_at": now_ms,
            "reason": reason,
        }
        if source.receiver is not None:
            dead_letter["receiver"] = source.receiver
        if source.subscription is not None:
            dead_letter["subscription"] = source.subscription
    items = items_for(
        target,
        [entry],
        parcel_id=lone_parcel_id(
            *(parcel.send_id, entry.position, now_ms), f"{source.id}#{parcel.sort_key}"
        ),
        begun_ms=now_ms,
        now_ms=now_ms,
        take_sequence=lambda partition, count: take_sequence(core, target.id, partition, count),
        origin=Origin(
            moved_from=origin(core, source, parcel, [index], now_ms),
            dead_letter=dead_letter,
            back_to=back_to,
            others=others_of(parcel, [index]),
        ),
        object_days=object_days,
    )
    nonces = {} if nonce is None else {index: nonce}
    return move_out(core, source, parcel, [index], items.all, now_ms, nonces, alongside=alongside)
