"""POST /queues/{queue}/messages"""

from __future__ import annotations

from cirrusmq.access.permissions import find_queue
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.timestamps import format_time
from cirrusmq.sending.deduplication import Stored
from cirrusmq.sending.send import SendRequest, send
from cirrusmq_lambda.http import Answer, Context, Event, Request, answer, serve
from cirrusmq_lambda.problems import describe


def show(sent: Stored) -> dict[str, str]:
    return {"id": sent.id, "body_md5": sent.body_md5, "sent_at": format_time(sent.sent_ms)}


def send_messages(request: Request) -> Answer:
    queue = find_queue(request.core, request.caller, request.path("queue"), "send")
    body = request.body(SendRequest)
    entries = [
        {"error": describe(sent, request.id)} if isinstance(sent, CirrusMQError) else show(sent)
        for sent in send(request.core, queue, body)
    ]
    return answer(201 if body.atomic else 200, {"messages": entries})


ROUTES = {"POST /queues/{queue}/messages": send_messages}


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)
