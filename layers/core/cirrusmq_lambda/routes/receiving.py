"""Receives, peeks and look-ups, for queues and pull subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import UNSET

from cirrusmq.access.permissions import find_queue
from cirrusmq.base.errors import InvalidParameter, MethodNotAllowed, Throttled
from cirrusmq.base.limits import ANSWER_BYTES, LARGEST_ANSWER_BYTES
from cirrusmq.base.timestamps import parse_time
from cirrusmq.model.queue import Queue
from cirrusmq.model.sender import Onlooker
from cirrusmq.model.source import Source
from cirrusmq.queues.receivers import source_named
from cirrusmq.receiving.receive import PreparedReceive, begin, take
from cirrusmq.receiving.receive_request import ReceiveRequest
from cirrusmq.settlement.delete import delete_what_can_be
from cirrusmq_lambda.answers.receipts import DeletedReceipts
from cirrusmq_lambda.answers.received import (
    FoundMessage,
    PeekedMessage,
    PeekedMessages,
    ReceivedMessage,
    ReceivedMessages,
)
from cirrusmq_lambda.answers.replying import AwaitedReply
from cirrusmq_lambda.http import Request, Route, following, read_flag, read_seconds
from cirrusmq_lambda.latencies import note_receive
from cirrusmq_lambda.problems import describe
from cirrusmq_lambda.receipt_sources import source_of
from cirrusmq_lambda.replies import NoContent, Ok
from cirrusmq_lambda.rights import MESSAGE_CALLS
from cirrusmq_lambda.topic_paths import pull_source

ANSWER_SECONDS = 2
"""Reserved part of the gateway's 30 s, for the last scan and the answer's way."""


def receive_of_queue(request: Request) -> Ok[ReceivedMessages]:
    """Claims messages of a queue, or of one of its receivers; before that, deletes others. Raises
    BatchTooLarge, MessageTooLarge, ReceiverNotFound.
    """
    find = partial(find_queue, request.core, request.caller, request.path("queue"), "receive")
    find()  # a caller without permission is refused before its body is read
    body = request.body(ReceiveRequest)
    receiver = body.receiver if isinstance(body.receiver, str) else None
    return _receive(request, lambda: source_named(request.core, find(), receiver), body)


def receive_of_subscription(request: Request) -> Ok[ReceivedMessages]:
    """Claims messages of a pull subscription; before that, deletes others. Raises BatchTooLarge,
    MessageTooLarge.
    """
    pull_source(request)  # a missing subscription is refused before the body is read
    body = request.body(ReceiveRequest)
    if isinstance(body.receiver, str):
        raise InvalidParameter("receiver", "only queues have receivers")
    return _receive(request, partial(pull_source, request), body)


def peek_at_queue(request: Request) -> Ok[PeekedMessages]:
    """Returns messages of a queue in one state, without a claim. Raises MessageTooLarge."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "receive")
    return _peek(request, source_named(request.core, queue, None))


def peek_at_subscription(request: Request) -> Ok[PeekedMessages]:
    """Returns messages of a pull subscription in one state, without a claim. Raises
    MessageTooLarge.
    """
    return _peek(request, pull_source(request))


def look_up_in_queue(request: Request) -> Ok[FoundMessage]:
    """Returns a message's state, found within 50 read units; with `body=true` its body. Raises
    MessageNotFound, MessageTooLarge, ReceiverNotFound.
    """
    from cirrusmq.receiving.lookup.find import look_up

    message_id = _message_id(request)
    core, query = request.core, request.query
    queue = find_queue(core, request.caller, request.path("queue"), "receive")
    body = read_flag(query, "body")
    source = source_named(core, queue, query.get("receiver"))
    group = _group(request, source)
    found = look_up(core, queue, source, message_id, group=group, body=body)
    return Ok(FoundMessage.found(found, Onlooker(queue.account, request.caller.account)))


def cancel_in_queue(request: Request) -> NoContent:
    """Cancels a message that was not received; from a receiver, if one is named. Raises Conflict,
    MessageNotFound, ReceiverNotFound.
    """
    from cirrusmq.receiving.lookup.cancel import cancel

    message_id, (queue, source) = _message_id(request), _sent_to(request)
    cancel(request.core, queue, source, message_id, _group(request, source))
    return NoContent()


def reschedule_in_queue(request: Request) -> Ok[FoundMessage]:
    """Changes when a message is due that was not received. Raises Conflict, MessageNotFound,
    ReceiverNotFound.
    """
    from cirrusmq.receiving.lookup.cancel import RescheduleRequest, reschedule

    message_id, (queue, source) = _message_id(request), _sent_to(request)
    body = request.body(RescheduleRequest)
    group = _group(request, source)
    found = reschedule(request.core, queue, source, message_id, body, group)
    return Ok(FoundMessage.found(found, Onlooker(queue.account, request.caller.account)))


def await_reply_in_queue(request: Request) -> Ok[AwaitedReply]:
    """Waits for the reply to a message that the caller's account sent with `reply`. Raises
    ReplyNotFound.
    """
    # Few messages ask for a reply: the other calls' cold starts do without.
    from cirrusmq.receiving.replies.wait import await_reply

    queue = find_queue(request.core, request.caller, request.path("queue"), "send")
    if "reply_by" not in request.query:
        raise InvalidParameter("reply_by", "is needed: the time that the answer to the send has")
    due_ms = parse_time("reply_by", request.query["reply_by"])
    left_seconds = request.context.get_remaining_time_in_millis() / 1000 - ANSWER_SECONDS
    wait_seconds = min(read_seconds(request.query, "wait_seconds"), left_seconds)
    end = await_reply(request.core, queue, request.caller, request.path("id"), due_ms, wait_seconds)
    return Ok(AwaitedReply.of(end))


def _group(request: Request, source: Source) -> str | None:
    """Returns the group of the message in the path if the query names it, or None."""
    group = request.query.get("group")
    if group is not None and not source.has_groups:
        raise InvalidParameter("group", "is allowed only in an ordered or a fair queue")
    return group


def _message_id(request: Request) -> str:
    """Returns the id in the path. Raises MethodNotAllowed for the name of a call."""
    name = request.path("id")
    if name in MESSAGE_CALLS:
        raise MethodNotAllowed(["POST"])
    return name


def _sent_to(request: Request) -> tuple[Queue, Source]:
    """Returns a queue to which the caller may send, and its source that the call names."""
    queue = find_queue(request.core, request.caller, request.path("queue"), "send")
    return queue, source_named(request.core, queue, request.query.get("receiver"))


def _receive(
    request: Request, find: Callable[[], Source], body: ReceiveRequest
) -> Ok[ReceivedMessages]:
    """Deletes the request's receipts, then receives.

        checked ──> deletes, each on its own ──> claim, or wait ──> answer
        refused: nothing is deleted              fails: 200 with what was deleted, and the error

    So a 4xx status means that nothing was deleted; a 5xx does not.
    """
    alone_bytes = LARGEST_ANSWER_BYTES if request.takes_gzip else None
    begun = begin(request.core, find, request.caller, body, alone_bytes)
    if not body.delete:
        answer = ReceivedMessages(messages=[])
        _fill(request, begun, answer)
        return Ok(answer)
    deleted = DeletedReceipts.of(delete_what_can_be(request.core, body.delete, source_of(request)))
    answer = ReceivedMessages(messages=[], deleted=deleted.deleted, failed=deleted.failed)
    try:
        _fill(request, begun, answer)
    except Exception as error:
        answer.error = describe(request.told(error), request.id)
    return Ok(answer)


def _fill(request: Request, begun: PreparedReceive, answer: ReceivedMessages) -> None:
    """Receive into an answer."""
    if begun.request.where is not UNSET:
        # Few receives choose by an attribute: the others' cold starts do without.
        from cirrusmq.receiving.selected import receive_where

        selected = receive_where(request.core, begun)
        answer.seen_all, answer.after = selected.seen_all, selected.after or UNSET
        received = selected.messages
    else:
        left_seconds = request.context.get_remaining_time_in_millis() / 1000 - ANSWER_SECONDS
        received = take(request.core, begun, request.caller, left_seconds)
    note_receive(request.core, request.begun_ms, begun.wait.took_ms)
    if not received and begun.wait.limited:
        rate = begun.source.receive_rate
        raise Throttled(f"{rate} messages are received within a second (receive_rate)")
    if not received and begun.source.paused and begun.find().paused:
        answer.paused = True
    seen_by = Onlooker(begun.source.account, request.caller.account)
    answer.messages = [
        ReceivedMessage.at(each.parcel, each.index, each.message, seen_by, receipt=each.receipt)
        for each in received
    ]


def _peek(request: Request, source: Source) -> Ok[PeekedMessages]:
    from cirrusmq.receiving.peek import PeekRequest, peek

    alone_bytes = LARGEST_ANSWER_BYTES if request.takes_gzip else ANSWER_BYTES
    page = peek(request.core, source, request.body(PeekRequest), alone_bytes)
    seen_by = Onlooker(source.account, request.caller.account)
    shown = [
        PeekedMessage.at(each.parcel, each.index, each.message, seen_by) for each in page.messages
    ]
    return Ok(PeekedMessages(messages=shown, cursor=following(page.cursor)))


SUBSCRIPTION = "/topics/{topic}/subscriptions/{subscription}"
ROUTES: dict[str, Route] = {
    "POST /queues/{queue}/messages/receive": receive_of_queue,
    "POST /queues/{queue}/messages/peek": peek_at_queue,
    "GET /queues/{queue}/messages/{id}": look_up_in_queue,
    "GET /queues/{queue}/messages/{id}/reply": await_reply_in_queue,
    "DELETE /queues/{queue}/messages/{id}": cancel_in_queue,
    "PATCH /queues/{queue}/messages/{id}": reschedule_in_queue,
    f"POST {SUBSCRIPTION}/messages/receive": receive_of_subscription,
    f"POST {SUBSCRIPTION}/messages/peek": peek_at_subscription,
}
