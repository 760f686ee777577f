"""POST /queues/{queue}/messages"""

from __future__ import annotations

from cirrusmq.access import find_queue
from cirrusmq.errors import CirrusMQError
from cirrusmq.sending import SendRequest, send
from cirrusmq_lambda.http import Answer, Context, Event, Request, answer, serve
from cirrusmq_lambda.problems import describe


def send_messages(request: Request) -> Answer:
    queue = find_queue(request.core, request.caller, request.path("queue"), "send")
    body = request.body(SendRequest)
    entries = [
        {"error": describe(sent, request.id)} if isinstance(sent, CirrusMQError) else sent.show()
        for sent in send(request.core, queue, body)
    ]
    return answer(201 if body.atomic else 200, {"messages": entries})


ROUTES = {"POST /queues/{queue}/messages": send_messages}


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)
