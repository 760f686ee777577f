"""POST …/messages/receive and …/messages/peek, of queues and of pull subscriptions"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cirrusmq.access.permissions import find_queue
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.model.source import Source
from cirrusmq.queues.receivers import source_named
from cirrusmq.receiving.peek import PeekRequest, peek
from cirrusmq.receiving.receive import ReceiveRequest, receive
from cirrusmq_lambda.http import Answer, Context, Event, Request, answer, serve
from cirrusmq_lambda.topic_paths import pull_source

ANSWER_SECONDS = 2
"""Kept back from the gateway's 30 s, for the last look and the way back."""


def receive_of_queue(request: Request) -> Answer:
    find = partial(find_queue, request.core, request.caller, request.path("queue"), "receive")
    find()  # a caller without permission is refused before its body is read
    body = request.body(ReceiveRequest)
    receiver = body.receiver if isinstance(body.receiver, str) else None
    return receive_from(request, lambda: source_named(request.core, find(), receiver), body)


def receive_of_subscription(request: Request) -> Answer:
    pull_source(request)  # a missing subscription is told before the body is read
    body = request.body(ReceiveRequest)
    if isinstance(body.receiver, str):
        raise InvalidParameter("receiver", "is of queues")
    return receive_from(request, partial(pull_source, request), body)


def receive_from(request: Request, find: Callable[[], Source], body: ReceiveRequest) -> Answer:
    left_seconds = request.context.get_remaining_time_in_millis() / 1000 - ANSWER_SECONDS
    received = receive(request.core, find, request.caller.key_id, body, left_seconds)
    return answer(200, {"messages": [message.show() for message in received]})


def peek_at_queue(request: Request) -> Answer:
    queue = find_queue(request.core, request.caller, request.path("queue"), "receive")
    source = source_named(request.core, queue, None)
    return answer(200, {"messages": peek(request.core, source, request.body(PeekRequest))})


def peek_at_subscription(request: Request) -> Answer:
    source = pull_source(request)
    return answer(200, {"messages": peek(request.core, source, request.body(PeekRequest))})


SUBSCRIPTION = "/topics/{topic}/subscriptions/{subscription}"
ROUTES = {
    "POST /queues/{queue}/messages/receive": receive_of_queue,
    "POST /queues/{queue}/messages/peek": peek_at_queue,
    f"POST {SUBSCRIPTION}/messages/receive": receive_of_subscription,
    f"POST {SUBSCRIPTION}/messages/peek": peek_at_subscription,
}


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)
