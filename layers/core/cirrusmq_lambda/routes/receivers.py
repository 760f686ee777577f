"""Receivers of a queue."""

from __future__ import annotations

from cirrusmq.access.permissions import find_queue
from cirrusmq.model.queue import ReceiverChangeInput, ReceiverInput
from cirrusmq.queues import receiver_management, receivers
from cirrusmq.queues.counts import count
from cirrusmq_lambda.answers.counts import Counts
from cirrusmq_lambda.answers.receivers import ReceiverAttributes, ReceiverPage, ReceiverWithCounts
from cirrusmq_lambda.http import Request, Route, following, read_flag
from cirrusmq_lambda.replies import Created, NoContent, Ok


def put_receiver(request: Request) -> Created[ReceiverAttributes] | Ok[ReceiverAttributes]:
    """Adds an independent receiver to a queue, or finds one with these attributes. Raises
    AlreadyExists, LimitExceeded.
    """
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    name = request.path("receiver")
    given, exact = request.body(ReceiverInput), read_flag(request.query, "exact")
    receiver, created = receiver_management.put_receiver(
        request.core, queue, name, given, by=request.caller.key_id, exact=exact
    )
    shown = ReceiverAttributes.of(receiver)
    return Created(shown) if created else Ok(shown)


def patch_receiver(request: Request) -> Ok[ReceiverAttributes]:
    """Changes some attributes of a receiver."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    name, given = request.path("receiver"), request.body(ReceiverChangeInput)
    receiver = receiver_management.change_receiver(request.core, queue, name, given)
    return Ok(ReceiverAttributes.of(receiver))


def show_receiver(request: Request) -> Ok[ReceiverWithCounts]:
    """Returns a receiver's attributes, and the counts of its messages."""
    core = request.core
    queue = find_queue(core, request.caller, request.path("queue"), "info")
    receiver = receivers.get_receiver(core, queue, request.path("receiver"))
    counts = count(core, receivers.receiver_source(core, queue, receiver))
    return Ok(ReceiverWithCounts.of(receiver, counts=Counts.of(counts, core.now_ms())))


def show_receivers(request: Request) -> Ok[ReceiverPage]:
    """Returns a page of a queue's receivers."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "info")
    limit, cursor = request.page()
    listed, more = receivers.page_of_receivers(request.core, queue, limit, cursor)
    shown = list(map(ReceiverAttributes.of, listed))
    return Ok(ReceiverPage(receivers=shown, cursor=following(more)))


def remove_receiver(request: Request) -> NoContent:
    """Removes a receiver of a queue."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "admin")
    receiver_management.delete_receiver(request.core, queue, request.path("receiver"))
    return NoContent()


ROUTES: dict[str, Route] = {
    "PUT /queues/{queue}/receivers/{receiver}": put_receiver,
    "PATCH /queues/{queue}/receivers/{receiver}": patch_receiver,
    "GET /queues/{queue}/receivers/{receiver}": show_receiver,
    "GET /queues/{queue}/receivers": show_receivers,
    "DELETE /queues/{queue}/receivers/{receiver}": remove_receiver,
}
