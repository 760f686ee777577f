"""Queues, and calls that start operations on them."""

from __future__ import annotations

import os

from cirrusmq.access.permissions import authorize, check_invoke, find_queue
from cirrusmq.base.errors import Forbidden
from cirrusmq.model.queue import DeadLetterInput, QueueInput
from cirrusmq.model.source import queue_source
from cirrusmq.operations.purge import purge
from cirrusmq.operations.redrive import RedriveRequest, redrive
from cirrusmq.operations.rewind import RewindRequest, rewind
from cirrusmq.queues.counts import count
from cirrusmq.queues.queues import change_queue, create_queue, list_queues
from cirrusmq.queues.receiver_management import delete_queue
from cirrusmq.storage import counters
from cirrusmq_lambda import rights
from cirrusmq_lambda.answers.counts import Counts
from cirrusmq_lambda.answers.invoking import breaker_fields
from cirrusmq_lambda.answers.operations import OperationStarted
from cirrusmq_lambda.answers.queues import (
    QueueAttributes,
    QueuePage,
    QueueWithCounts,
)
from cirrusmq_lambda.circuits import circuit_of
from cirrusmq_lambda.http import NoFields, Request, Route, following, read_flag
from cirrusmq_lambda.replies import Accepted, Created, NoContent, Ok


def put_queue(request: Request) -> Created[QueueAttributes] | Ok[QueueAttributes]:
    """Creates a queue, or finds one with the attributes that are given. Raises AlreadyExists,
    LimitExceeded.
    """
    account, name = authorize(request.core, request.caller, request.path("queue"), "admin")
    given = _queue_input(request)
    check_invoke(request.core, request.caller, given.invoke)
    exact = read_flag(request.query, "exact")
    queue, created = create_queue(request.core, account, name, given, exact=exact)
    if created:
        counters.note_use(request.core, queue.id)
    shown = QueueAttributes.of(queue)
    return Created(shown) if created else Ok(shown)


def patch_queue(request: Request) -> Ok[QueueAttributes]:
    """Changes some attributes of a queue. Raises InUse."""
    account, name = authorize(request.core, request.caller, request.path("queue"), "admin")
    given = _queue_input(request)
    check_invoke(request.core, request.caller, given.invoke)
    changed = change_queue(request.core, account, name, given)
    return Ok(QueueAttributes.of(changed))


def show_queue(request: Request) -> Ok[QueueWithCounts]:
    """Returns a queue's attributes, and the counts of its messages."""
    core = request.core
    queue = find_queue(core, request.caller, request.path("queue"), "info")
    now_ms = core.now_ms()
    counts = count(core, queue_source(queue, now_ms))
    region = os.environ.get("AWS_REGION", "")
    more = {"counts": Counts.of(counts, now_ms), "region": region}
    circuit = circuit_of(core, queue.id, queue.attributes.invoke)
    return Ok(QueueWithCounts.of(queue, **more, **breaker_fields(circuit)))


def show_queues(request: Request) -> Ok[QueuePage]:
    """Returns a page of the caller's queues."""
    account, prefix = request.caller.account, request.query.get("prefix", "")
    limit, cursor = request.page()
    queues, more = list_queues(request.core, account, prefix, limit, cursor)
    return Ok(QueuePage(queues=list(map(QueueAttributes.of, queues)), cursor=following(more)))


def remove_queue(request: Request) -> NoContent:
    """Deletes a queue; only its owner may. Raises InUse."""
    account, name = authorize(request.core, request.caller, request.path("queue"), "own")
    delete_queue(request.core, account, name)
    return NoContent()


def purge_queue(request: Request) -> Accepted[OperationStarted]:
    """Removes all messages sent before the call."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    request.body(NoFields)
    started = purge(request.core, queue, request.caller.key_id)
    return Accepted(OperationStarted(operation=started.id))


def rewind_queue(request: Request) -> Accepted[OperationStarted]:
    """Makes deleted messages active again, from a time on; with one partition, and in each group of
    an ordered queue, in order of sending. Raises NotRewindable.
    """
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    body = request.body(RewindRequest)
    started = rewind(request.core, queue, body, request.caller.key_id)
    return Accepted(OperationStarted(operation=started.id))


def redrive_queue(request: Request) -> Accepted[OperationStarted]:
    """Sends dead letters back, or moves any queue's active messages to another one. Raises
    BatchTooLarge.
    """
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    if queue.account != request.caller.account:
        raise Forbidden("only its owner may redrive a queue: the messages go to the owner's queues")
    body = request.body(RedriveRequest)
    rights.check_named(request.caller, "to", body.to)
    started = redrive(request.core, queue, body, request.caller.key_id)
    return Accepted(OperationStarted(operation=started.id))


def _queue_input(request: Request) -> QueueInput:
    """Returns the body of a queue; checks the right on a dead-letter queue that it names."""
    body: QueueInput = request.body(QueueInput)
    if isinstance(body.dead_letter, DeadLetterInput):
        rights.check_named(request.caller, "dead_letter.queue", body.dead_letter.queue)
    return body


ROUTES: dict[str, Route] = {
    "PUT /queues/{queue}": put_queue,
    "PATCH /queues/{queue}": patch_queue,
    "GET /queues/{queue}": show_queue,
    "GET /queues": show_queues,
    "DELETE /queues/{queue}": remove_queue,
    "POST /queues/{queue}/purge": purge_queue,
    "POST /queues/{queue}/rewind": rewind_queue,
    "POST /queues/{queue}/redrive": redrive_queue,
}
