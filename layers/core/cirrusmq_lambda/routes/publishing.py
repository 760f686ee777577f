"""Publishing to a topic."""

from __future__ import annotations

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.publishing.publish import PublishRequest, match, publish
from cirrusmq_lambda.answers.published import (
    MatchedMessage,
    MatchedMessages,
    PublishedMessage,
    PublishedMessages,
)
from cirrusmq_lambda.http import Request, Route
from cirrusmq_lambda.problems import describe
from cirrusmq_lambda.replies import Created, Ok
from cirrusmq_lambda.topic_paths import topic_of


def publish_messages(request: Request) -> Created[PublishedMessages] | Ok[PublishedMessages]:
    """Publish up to 16 messages to a topic; 201 where all are stored or none."""
    topic = topic_of(request, "publish")
    body = request.body(PublishRequest)
    entries = [
        PublishedMessage(error=describe(each, request.id))
        if isinstance(each, CirrusMQError)
        else PublishedMessage.of(each)
        for each in publish(request.core, topic, body)
    ]
    shown = PublishedMessages(messages=entries)
    return Created(shown) if body.atomic else Ok(shown)


def match_messages(request: Request) -> Ok[MatchedMessages]:
    """Tell who would get these messages; none is published."""
    topic = topic_of(request, "info")
    body = request.body(PublishRequest)
    entries = [
        MatchedMessage(error=describe(each, request.id))
        if isinstance(each, CirrusMQError)
        else MatchedMessage.of(each)
        for each in match(request.core, topic, body)
    ]
    return Ok(MatchedMessages(messages=entries))


ROUTES: dict[str, Route] = {
    "POST /topics/{topic}/messages": publish_messages,
    "POST /topics/{topic}/match": match_messages,
}
