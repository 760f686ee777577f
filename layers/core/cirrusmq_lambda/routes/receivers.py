"""Receivers of a queue."""

from __future__ import annotations

from cirrusmq.access.permissions import find_queue
from cirrusmq.queues import receivers
from cirrusmq.queues.counts import count
from cirrusmq.queues.receivers import ReceiverInput
from cirrusmq_lambda.http import Answer, Request, Route, answer, page_answer


def put_receiver(request: Request) -> Answer:
    """Add a receiver, or find it with the same attributes."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    name = request.path("receiver")
    receiver, created = receivers.put_receiver(
        request.core, queue, name, request.body(ReceiverInput)
    )
    return answer(201 if created else 200, receiver.show())


def show_receiver(request: Request) -> Answer:
    """A receiver's attributes, and how many messages wait for it."""
    core = request.core
    queue = find_queue(core, request.caller, request.path("queue"), "info")
    receiver = receivers.get_receiver(core, queue, request.path("receiver"))
    counts = count(core, receivers.receiver_source(core, queue, receiver))
    return answer(200, receiver.show() | {"counts": counts.show(core.now_ms())})


def show_receivers(request: Request) -> Answer:
    """A page of a queue's receivers."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "info")
    limit, cursor = request.page()
    listed, following = receivers.page_of_receivers(request.core, queue, limit, cursor)
    return page_answer("receivers", [receiver.show() for receiver in listed], following)


def remove_receiver(request: Request) -> Answer:
    """Remove a receiver."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    receivers.delete_receiver(request.core, queue, request.path("receiver"))
    return answer(204)


ROUTES: dict[str, Route] = {
    "PUT /queues/{queue}/receivers/{receiver}": put_receiver,
    "GET /queues/{queue}/receivers/{receiver}": show_receiver,
    "GET /queues/{queue}/receivers": show_receivers,
    "DELETE /queues/{queue}/receivers/{receiver}": remove_receiver,
}
