"""Sends to a queue."""

from __future__ import annotations

from cirrusmq.access.permissions import find_queue
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.sending.send import send
from cirrusmq.sending.send_request import SendRequest
from cirrusmq_lambda.answers.sent import SentMessage, SentMessages
from cirrusmq_lambda.http import Request, Route
from cirrusmq_lambda.problems import describe
from cirrusmq_lambda.replies import Created, Ok


def send_messages(request: Request) -> Created[SentMessages] | Ok[SentMessages]:
    """Sends up to 16 messages to a queue; 201 if all are stored or none. Raises BatchTooLarge,
    LimitExceeded, MessageTooLarge.
    """
    queue = find_queue(request.core, request.caller, request.path("queue"), "send")
    body = request.body_with_messages(SendRequest)
    entries = [
        SentMessage(error=describe(sent, request.id))
        if isinstance(sent, CirrusMQError)
        else SentMessage.of(sent)
        for sent in send(request.core, queue, body, request.caller, trace=request.trace)
    ]
    shown = SentMessages(messages=entries)
    return Created(shown) if body.atomic else Ok(shown)


ROUTES: dict[str, Route] = {"POST /queues/{queue}/messages": send_messages}
