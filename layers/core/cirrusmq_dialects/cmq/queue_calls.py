"""Calls on queues."""

from __future__ import annotations

from cirrusmq.base.errors import InvalidParameter, NotRewindable, QueueNotFound
from cirrusmq.base.names import QUEUE_NAME, check_name
from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import QueueInput
from cirrusmq.model.source import queue_source
from cirrusmq.queues import operations
from cirrusmq.queues.counts import count
from cirrusmq.queues.queues import change_queue, list_queues
from cirrusmq.queues.queues import create_queue as make_queue
from cirrusmq.queues.receiver_management import delete_queue as remove_queue
from cirrusmq.storage import counters
from cirrusmq_dialects.asking import MANAGE, SHOW, all_of
from cirrusmq_dialects.cmq import queue_attributes as shapes
from cirrusmq_dialects.cmq.asking import Asked, Result
from cirrusmq_dialects.cmq.errors import CmqError
from cirrusmq_dialects.cmq.reading import needed_integer, queue_name

_EXISTS = (4460, 10210, "queue is already existed,case insensitive")
_NO_TARGET = (4000, 10730, "deadLetter queue not exist")
_NO_WINDOW = (4000, 10680, "invalid rewind time")
_MOMENTS = (0, 2**53)
_REWIND_SECONDS, _LOOK_MS, _ANSWER_SECONDS = 20, 200, 3
"""A rewind's call waits at most 20 s, looks each 200 ms, and leaves 3 s for its answer."""


def create_queue(asked: Asked) -> Result:
    """Makes a queue; one of the name that exists is refused, as it is there."""
    name, changes = queue_name(asked.params), shapes.read_attributes(asked.params)
    asked.caller.require(MANAGE, "queues", name)
    _check_target(asked, changes)
    given = read_values({**shapes.DEFAULTS, **changes}, QueueInput)
    try:
        queue, created = make_queue(asked.core, asked.caller.account, name, given)
    except QueueNotFound as error:
        raise CmqError(*_NO_TARGET) from error
    if not created:
        raise CmqError(*_EXISTS)
    counters.note_use(asked.core, queue.id)
    return {"queueId": f"queue-{queue.id}"}


def set_queue_attributes(asked: Asked) -> Result:
    """Changes the attributes that are given."""
    changes, queue = shapes.read_attributes(asked.params), asked.queue(MANAGE)
    _check_target(asked, changes)
    given = read_values(changes, QueueInput)
    try:
        changed = change_queue(asked.core, queue.account, queue.name, given)
    except QueueNotFound as error:
        if "dead_letter" not in changes:
            raise
        raise CmqError(*_NO_TARGET) from error
    return shapes.show(changed)


def get_queue_attributes(asked: Asked) -> Result:
    """All attributes, and the numbers of messages."""
    queue = asked.queue(SHOW)
    counts = count(asked.core, queue_source(queue, asked.core.now_ms()))
    return {**shapes.show(queue), **shapes.show_counts(queue, counts)}


def list_queue(asked: Asked) -> Result:
    """The caller's queues, by name."""
    asked.require_whole_account()
    queues = all_of(list_queues, asked.core, asked.caller.account, "")
    entries = [{"queueId": f"queue-{each.id}", "queueName": each.name} for each in queues]
    return asked.listed("queueList", "queueName", entries)


def delete_queue(asked: Asked) -> Result:
    """Deletes a queue and its messages."""
    queue = asked.queue(MANAGE)
    remove_queue(asked.core, queue.account, queue.name)
    return {}


def rewind_queue(asked: Asked) -> Result:
    """Makes messages deleted since a time active again; a long rewind goes on after the answer."""
    # Most calls rewind nothing: their cold starts do without.
    from cirrusmq.operations.rewind import RewindRequest, rewind

    core, queue = asked.core, asked.queue(MANAGE)
    moment = needed_integer(asked.params, "startConsumeTime", _MOMENTS)
    if not queue.attributes.rewind_seconds:
        raise NotRewindable
    try:
        request = read_values({"to": moment}, RewindRequest)
        started = rewind(core, queue, request, asked.caller.key_id)
    except (InvalidParameter, NotRewindable) as error:
        raise CmqError(*_NO_WINDOW) from error
    left_ms = 1000 * min(_REWIND_SECONDS, asked.call.left_seconds() - _ANSWER_SECONDS)
    until_ms = core.now_ms() + int(left_ms)
    while operations.get(core, queue.account, started.id).state == "running":
        if core.now_ms() >= until_ms:
            break
        core.wait_until(core.now_ms() + _LOOK_MS)
    return {}


def _check_target(asked: Asked, changes: Result) -> None:
    """Messages come to a dead-letter queue: `send` or `manage` on it is needed."""
    if "dead_letter" not in changes:
        return
    target = changes["dead_letter"]["queue"]
    try:
        check_name("deadLetterQueue", target, QUEUE_NAME._replace(fifo=False))
    except InvalidParameter as error:
        raise CmqError(*_NO_TARGET) from error
    asked.caller.require(("send", "manage"), "queues", target, " (deadLetterPolicy)")
