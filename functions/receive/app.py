"""POST /queues/{queue}/messages/receive and …/peek"""

from __future__ import annotations

from cirrusmq.access import find_queue
from cirrusmq.peeking import PeekRequest, peek
from cirrusmq.receivers import source_named
from cirrusmq.receiving import ReceiveRequest, receive
from cirrusmq_lambda.http import Answer, Context, Event, Request, answer, serve

ANSWER_SECONDS = 2
"""Kept back from the gateway's 30 s, for the last look and the way back."""


def receive_messages(request: Request) -> Answer:
    queue = find_queue(request.core, request.caller, request.path("queue"), "receive")
    body = request.body(ReceiveRequest)
    receiver = body.receiver if isinstance(body.receiver, str) else None
    source = source_named(request.core, queue, receiver)
    left_seconds = request.context.get_remaining_time_in_millis() / 1000 - ANSWER_SECONDS
    received = receive(request.core, source, request.caller.key_id, body, left_seconds)
    return answer(200, {"messages": [message.show() for message in received]})


def peek_messages(request: Request) -> Answer:
    queue = find_queue(request.core, request.caller, request.path("queue"), "receive")
    body = request.body(PeekRequest)
    source = source_named(request.core, queue, None)
    return answer(200, {"messages": peek(request.core, source, body)})


ROUTES = {
    "POST /queues/{queue}/messages/receive": receive_messages,
    "POST /queues/{queue}/messages/peek": peek_messages,
}


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)
