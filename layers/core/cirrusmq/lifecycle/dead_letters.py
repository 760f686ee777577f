"""Dead letters: messages that are given up move, one by one, to the dead-letter queue."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from cirrusmq.base.errors import InvalidParameter, LimitExceeded, QueueNotFound, Unavailable
from cirrusmq.lifecycle.contents import read_contents
from cirrusmq.lifecycle.dead_letter_policy import dead_letter_reason
from cirrusmq.lifecycle.moves import move_out, origin
from cirrusmq.model.parcel import Parcel, lone_parcel_id
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import changed, dropped
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.sending.parcels import Entry, Origin, items_for
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.parcels import parcel_key
from cirrusmq.storage.sequences import take_sequence

_logger = logging.getLogger(__name__)


def give_up(
    core: Core,
    source: Source,
    parcel: Parcel,
    now_ms: int,
    may: Callable[[], bool] = lambda: True,
) -> Parcel:
    """Move every message of the parcel that is to be given up; answers what is left of it.

    `may` is asked before each.
    """
    for place in range(parcel.count):
        reason = dead_letter_reason(source, parcel, place, now_ms)
        if reason is not None:
            if not may():
                return parcel
            parcel = _give_up_place(core, source, parcel, place, reason, now_ms)
    return parcel


def give_up_first(
    core: Core, source: Source, parcel: Parcel, now_ms: int, may: Callable[[], bool]
) -> Parcel | None:
    """As `give_up`, but only up to the first message that stays: for ordered sources.

    None where `may` forbade to continue: the first message is not known then.
    """
    for place in range(parcel.count):
        if not parcel.live(place):
            continue
        reason = dead_letter_reason(source, parcel, place, now_ms)
        if reason is not None:
            if not may():
                return None
            parcel = _give_up_place(core, source, parcel, place, reason, now_ms)
        if parcel.live(place):
            break
    return parcel


def has_place(core: Core, source: Source) -> bool:
    """Whether there is a place for dead letters; yes, where that cannot be told now."""
    try:
        return source.drops or dead_letter_queue(core, source) is not None
    except Unavailable:
        return True


def move_to_queue(
    core: Core,
    source: Source,
    parcel: Parcel,
    place: int,
    target: Queue,
    reason: str | None,
    now_ms: int,
    nonce: bytes | None = None,
    back_to: str | None = None,
    alongside: Sequence[Mapping[str, Any]] = (),
) -> Parcel | None:
    """Move the message at `place` into another queue, where its life starts anew.

    `reason` makes it a dead letter; None, a message redriven: to all receivers of the target, or
    `back_to` the one source of it. `alongside`: writes in the move's transaction. Answers the rest
    of the parcel; None where another worker was faster or the message's content cannot be read now.
    """
    (messages,) = read_contents(core, source, [(parcel, [place])])
    if place not in messages:
        return None
    message = messages[place]
    if target.attributes.ordered and message.group is None:
        if source.subscription is None:
            return None  # it has no place in the target's order
        message = msgspec.structs.replace(message, group=parcel.message_id(place))
    entry = Entry(
        position=parcel.position(place),
        message=message,
        available_ms=now_ms,
        visibility_seconds=parcel.visibility_seconds[place] if parcel.visibility_seconds else 0,
    )
    dead_letter = None
    if reason is not None:
        dead_letter = {
            "source_queue": source.queue_name,
            "receive_count": parcel.receives[place],
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
            moved_from=origin(core, source, parcel, [place], now_ms),
            dead_letter=dead_letter,
            back_to=back_to,
        ),
    )
    nonces = {} if nonce is None else {place: nonce}
    return move_out(core, source, parcel, [place], items.all, now_ms, nonces, alongside=alongside)


def dead_letter_queue(core: Core, source: Source) -> Queue | None:
    """The queue that takes the source's dead letters; None where there is none now.

    A subscription's own queue may be impossible to make: the account is at its limit of queues, or
    has a queue of that name that cannot take dead letters. The message then stays where it is, so
    that one message does not stop the others, and the log says so.
    """
    if source.dead_letter is None:
        return None
    name = source.dead_letter.queue
    if source.makes_dead_letter_queue and source.subscription is not None:
        # Once in a subscription's life: it is not worth a place in every cold start.
        from cirrusmq.subscriptions.dead_letter_queue import make_dead_letter_queue

        try:
            return make_dead_letter_queue(core, source.log_id, source.subscription, name)
        except (InvalidParameter, LimitExceeded, QueueNotFound) as error:
            _logger.error(
                "account %s has no queue %s for dead letters of subscription %s of topic %s: %s",
                *(source.account, name, source.subscription, source.queue_name, error),
            )
            return None
    with contextlib.suppress(QueueNotFound):
        return get_queue(core, source.account, name)
    return None


def _give_up_place(
    core: Core, source: Source, parcel: Parcel, place: int, reason: str, now_ms: int
) -> Parcel:
    if source.drops:
        return _drop(core, parcel, place)
    target = dead_letter_queue(core, source)
    if target is None:
        return parcel
    return move_to_queue(core, source, parcel, place, target, reason, now_ms) or parcel


def _drop(core: Core, parcel: Parcel, place: int) -> Parcel:
    """Drop the message at `place`, if it has not changed since."""
    changes = {place: dropped()}
    still = as_read(parcel, changes, "visible_ms")
    request = change(core.tables.messages, parcel_key(parcel), changes, still)
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed:
        return parcel
    return changed(parcel, changes)
