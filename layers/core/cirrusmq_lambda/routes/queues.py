"""Queues and the operations on them."""

from __future__ import annotations

from cirrusmq.access.permissions import authorize, find_queue
from cirrusmq.base.errors import Forbidden
from cirrusmq.model.queue import QueueInput
from cirrusmq.model.source import queue_source
from cirrusmq.operations.purge import purge
from cirrusmq.operations.redrive import RedriveRequest, redrive
from cirrusmq.operations.rewind import RewindRequest, rewind
from cirrusmq.queues import operations
from cirrusmq.queues.counts import count
from cirrusmq.queues.queues import change_queue, create_queue, list_queues
from cirrusmq.queues.receivers import delete_queue
from cirrusmq.storage import counters
from cirrusmq_lambda.http import Answer, NoFields, Request, Route, answer, page_answer


def put_queue(request: Request) -> Answer:
    """Create a queue, or find it with the same attributes."""
    account, name = authorize(request.core, request.caller, request.path("queue"), "admin")
    queue, created = create_queue(request.core, account, name, request.body(QueueInput))
    if created:
        counters.note_use(request.core, queue.id)
    return answer(201 if created else 200, queue.show())


def patch_queue(request: Request) -> Answer:
    """Change some attributes."""
    account, name = authorize(request.core, request.caller, request.path("queue"), "admin")
    return answer(200, change_queue(request.core, account, name, request.body(QueueInput)).show())


def show_queue(request: Request) -> Answer:
    """All attributes, and how many messages there are."""
    core = request.core
    queue = find_queue(core, request.caller, request.path("queue"), "info")
    now_ms = core.now_ms()
    counts = count(core, queue_source(queue, now_ms))
    return answer(200, queue.show() | {"counts": counts.show(now_ms)})


def show_queues(request: Request) -> Answer:
    """A page of the caller's queues."""
    account, prefix = request.caller.account, request.query.get("prefix", "")
    limit, cursor = request.page()
    queues, following = list_queues(request.core, account, prefix, limit, cursor)
    return page_answer("queues", [queue.show() for queue in queues], following)


def remove_queue(request: Request) -> Answer:
    """Delete a queue; its owner alone may."""
    account, name = authorize(request.core, request.caller, request.path("queue"), "own")
    delete_queue(request.core, account, name)
    return answer(204)


def purge_queue(request: Request) -> Answer:
    """Remove everything sent before."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    request.body(NoFields)
    return answer(202, {"operation": purge(request.core, queue).id})


def rewind_queue(request: Request) -> Answer:
    """Make deleted messages active again."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    started = rewind(request.core, queue, request.body(RewindRequest))
    return answer(202, {"operation": started.id})


def redrive_queue(request: Request) -> Answer:
    """Send dead letters back."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    if queue.account != request.caller.account:
        raise Forbidden("only its owner redrives a queue, since messages go to others of its own")
    started = redrive(request.core, queue, request.body(RedriveRequest))
    return answer(202, {"operation": started.id})


def show_operation(request: Request) -> Answer:
    """How far an operation is."""
    found = operations.get(request.core, request.caller.account, request.path("id"))
    return answer(200, found.show())


ROUTES: dict[str, Route] = {
    "PUT /queues/{queue}": put_queue,
    "PATCH /queues/{queue}": patch_queue,
    "GET /queues/{queue}": show_queue,
    "GET /queues": show_queues,
    "DELETE /queues/{queue}": remove_queue,
    "POST /queues/{queue}/purge": purge_queue,
    "POST /queues/{queue}/rewind": rewind_queue,
    "POST /queues/{queue}/redrive": redrive_queue,
    "GET /operations/{id}": show_operation,
}
