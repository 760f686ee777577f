"""Dead letters: messages that are used up or too old move, one by one, to the dead-letter queue."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from cirrusmq.base.errors import InvalidParameter, LimitExceeded, QueueNotFound, Unavailable
from cirrusmq.lifecycle.chore_memory import ChoreMemory
from cirrusmq.lifecycle.dead_letters.policy import dead_letter_reason
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import changed, dropped
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.parcels import PARCELS, parcel_key, partition_key

OWN_QUEUE = ""
"""Named to `replay` like a parcel's key: the subscription's own dead-letter queue is needed."""
_logger = logging.getLogger(__name__)


def due(source: Source, parcel: Parcel, now_ms: int) -> bool:
    """Returns True if a message of the parcel is to be dead-lettered."""
    indexes = range(parcel.count)
    return any(dead_letter_reason(source, parcel, index, now_ms) for index in indexes)


def leaves(core: Core, source: Source, parcel: Parcel, index: int, now_ms: int) -> bool:
    """Returns True if the message is not received: it is a dead letter, and a queue takes it."""
    return dead_letter_reason(source, parcel, index, now_ms) is not None and has_place(core, source)


def give_up(core: Core, source: Source, parcel: Parcel, now_ms: int) -> Parcel:
    """Dead-letters each message of the parcel that is due. Returns the rest of the parcel."""
    for index in range(parcel.count):
        reason = dead_letter_reason(source, parcel, index, now_ms)
        if reason is not None:
            parcel = _give_up_place(core, source, parcel, index, reason, now_ms)
    return parcel


def advance(
    core: Core, source: Source, parcel: Parcel, now_ms: int, may: Callable[[], bool]
) -> Parcel | None:
    """Does what `give_up` does, up to the first message that stays, for an ordered source.

    may: called before each move. Returns None if it returned False, or if the queue is not made
    yet: the first message is not known then.
    """
    for index in range(parcel.count):
        if not parcel.live(index):
            continue
        reason = dead_letter_reason(source, parcel, index, now_ms)
        if reason is not None:
            if not may():
                return None
            if source.makes_dead_letter_queue:
                ask_for_queue(core, source, parcel)
                return None if has_place(core, source) else parcel
            parcel = _give_up_place(core, source, parcel, index, reason, now_ms)
        if parcel.live(index):
            break
    return parcel


def has_place(core: Core, source: Source) -> bool:
    """Returns True if dead letters have a place, also if the store cannot say now.

    A subscription's own queue counts as one before it is made, unless that failed.
    """
    if source.makes_dead_letter_queue:
        return not source.lacks_dead_letter_queue
    try:
        return source.drops or dead_letter_queue(core, source) is not None
    except Unavailable:
        return True


def ask_for_queue(core: Core, source: Source, parcel: Parcel) -> None:
    """Asks `replay` to make the subscription's own queue: a receive, which needs it, makes none."""
    pk = partition_key(PARCELS, source.id, parcel.partition)
    core.memory(ChoreMemory).remember(pk, [OWN_QUEUE], core.now_ms())


def dead_letter_queue(core: Core, source: Source) -> Queue | None:
    """Returns the queue that takes the source's dead letters, or None without one now.

    A subscription's own queue is made here, though not in receives. That may be impossible: the
    account is at its limit of queues, or has a queue of that name that cannot take dead letters.
    The message then stays, so that one message does not stop the others; the subscription and the
    log say why.
    """
    if source.dead_letter is None:
        return None
    name = source.dead_letter.queue
    if source.makes_dead_letter_queue and source.subscription is not None:
        # Once in a subscription's life: it is not worth a place in every cold start.
        from cirrusmq.lifecycle.dead_letters.own_queue import make_dead_letter_queue, note_error

        try:
            return make_dead_letter_queue(core, source.log_id, source.subscription, name)
        except (InvalidParameter, LimitExceeded, QueueNotFound) as error:
            _logger.error(
                "account %s has no queue %s for dead letters of subscription %s of topic %s: %s",
                *(source.account, name, source.subscription, source.queue_name, error),
            )
            note_error(core, source.log_id, source.subscription, str(error))
            return None
    with contextlib.suppress(QueueNotFound):
        return get_queue(core, source.account, name)
    return None


def _give_up_place(
    core: Core, source: Source, parcel: Parcel, index: int, reason: str, now_ms: int
) -> Parcel:
    if source.drops:
        return _drop(core, parcel, index)
    target = dead_letter_queue(core, source)
    if target is None:
        return parcel
    # Few receives dead-letter a message: other cold starts do without the modules of a move.
    from cirrusmq.lifecycle.transfer import move_to_queue

    return move_to_queue(core, source, parcel, index, target, reason, now_ms) or parcel


def _drop(core: Core, parcel: Parcel, index: int) -> Parcel:
    """Drops the message at `index`, if it has not changed since."""
    changes = {index: dropped()}
    still = as_read(parcel, changes, "visible_ms")
    request = change(core.tables.messages, parcel_key(parcel), changes, still)
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed:
        return parcel
    return changed(parcel, changes)
