"""POST …/messages/{delete,visibility,give-back,dead-letter}, of queues and pull subscriptions"""

from __future__ import annotations

from cirrusmq.access.permissions import find_queue
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.settlement.dead_letter import DeadLetterRequest, surrender
from cirrusmq.settlement.delete import DeleteRequest, delete
from cirrusmq.settlement.settle import SourceOf
from cirrusmq.settlement.visibility import (
    GiveBackRequest,
    VisibilityRequest,
    change_visibility,
    give_back,
)
from cirrusmq_lambda.fates import done, visible
from cirrusmq_lambda.http import Answer, Context, Event, Request, answer, serve
from cirrusmq_lambda.topic_paths import pull_source


def source_of(request: Request) -> SourceOf:
    core = request.core
    if "subscription" in request.event["pathParameters"]:
        source = pull_source(request)
        return lambda source_id: source if source_id == source.id else None
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
    f"POST {holder}/messages/{call}": route
    for holder in ("/queues/{queue}", "/topics/{topic}/subscriptions/{subscription}")
    for call, route in (
        ("delete", delete_messages),
        ("visibility", change_visibilities),
        ("give-back", give_messages_back),
        ("dead-letter", dead_letter_messages),
    )
}


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)
