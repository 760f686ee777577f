"""POST /topics/{topic}/messages"""

from __future__ import annotations

from typing import Any

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.timestamps import format_time
from cirrusmq.publishing.publish import Published, PublishRequest, publish
from cirrusmq.subscriptions.topics import get_topic
from cirrusmq_lambda.http import Answer, Context, Event, Request, answer, serve
from cirrusmq_lambda.problems import describe
from cirrusmq_lambda.topic_paths import own_name


def show(published: Published) -> dict[str, Any]:
    sent_at = format_time(published.sent_ms)
    return {"id": published.id, "matched": published.matched, "sent_at": sent_at}


def publish_messages(request: Request) -> Answer:
    account = request.caller.account
    topic = get_topic(request.core, account, own_name(request))
    body = request.body(PublishRequest)
    entries = [
        {"error": describe(each, request.id)} if isinstance(each, CirrusMQError) else show(each)
        for each in publish(request.core, topic, body)
    ]
    return answer(201 if body.atomic else 200, {"messages": entries})


ROUTES = {"POST /topics/{topic}/messages": publish_messages}


def handler(event: Event, context: Context) -> Answer:
    return serve(ROUTES, event, context)
