"""POST /queues/{queue}/messages/delete, …/visibility, …/give-back and …/dead-letter"""

from __future__ import annotations

from cirrusmq.access import find_queue
from cirrusmq.deleting import DeleteRequest, delete
from cirrusmq.holding import GiveBackRequest, VisibilityRequest, change_visibility, give_back
from cirrusmq.receipts import SourceOf
from cirrusmq.receivers import source_with_id
from cirrusmq.surrendering import DeadLetterRequest, surrender
from cirrusmq_lambda.fates import done, visible
from cirrusmq_lambda.http import Answer, Context, Event, Request, answer, serve


def source_of(request: Request) -> SourceOf:
    core = request.core
    queue = find_queue(core, request.caller, request.path("queue"), "receive")
    return lambda source_id: source_with_id(core, queue, source_id)


def delete_messages(request: Request) -> Answer:
    sources = source_of(request)
    return answer(200, done(delete(request.core, request.body(DeleteRequest), sources)))


def change_visibilities(request: Request) -> Answer:
    sources = source_of(request)
    fates = change_visibility(request.core, request.body(VisibilityRequest), sources)
    return answer(200, visible("changed", fates))


def give_messages_back(request: Request) -> Answer:
    sources = source_of(request)
    fates = give_back(request.core, request.body(GiveBackRequest), sources)
    return answer(200, visible("given_back", fates))


def dead_letter_messages(request: Request) -> Answer:
    sources = source_of(request)
    return answer(200, done(surrender(request.core, request.body(DeadLetterRequest), sources)))


ROUTES = {
    "POST /queues/{queue}/messages/delete": delete_messages,
    "POST /queues/{queue}/messages/visibility": change_visibilities,
    "POST /queues/{queue}/messages/give-back": give_messages_back,
    "POST /queues/{queue}/messages/dead-letter": dead_letter_messages,
}


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)
