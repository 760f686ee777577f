"""Topics, what was published to them, and what became of it."""

from __future__ import annotations

import os

from cirrusmq.base.limits import LOG_ENTRIES, LOG_ENTRIES_DEFAULT
from cirrusmq.fanout.trace import trace
from cirrusmq.model.topic import TopicInput
from cirrusmq.publishing.log_reader import read_log
from cirrusmq.subscriptions import subscriptions, topics
from cirrusmq.subscriptions.state import topic_counts
from cirrusmq_lambda.http import Answer, Request, Route, answer, page_answer, read_limit
from cirrusmq_lambda.topic_paths import own_name, pull_subscription, topic_of


def put_topic(request: Request) -> Answer:
    """Create a topic, or find it with the same attributes."""
    account, name = request.caller.account, own_name(request)
    topic, created = topics.create_topic(request.core, account, name, request.body(TopicInput))
    return answer(201 if created else 200, topic.show())


def patch_topic(request: Request) -> Answer:
    """Change some attributes."""
    account, name = request.caller.account, own_name(request)
    changed = topics.change_topic(request.core, account, name, request.body(TopicInput))
    return answer(200, changed.show())


def show_topic(request: Request) -> Answer:
    """All attributes, and how many messages are not yet taken by all who get them."""
    topic = topic_of(request)
    counts = topic_counts(request.core, topic)
    region = os.environ.get("AWS_REGION", "")
    return answer(200, topic.show() | {"counts": counts, "region": region})


def show_topics(request: Request) -> Answer:
    """A page of the caller's topics."""
    account, prefix = request.caller.account, request.query.get("prefix", "")
    limit, cursor = request.page()
    listed, following = topics.list_topics(request.core, account, prefix, limit, cursor)
    return page_answer("topics", [topic.show() for topic in listed], following)


def remove_topic(request: Request) -> Answer:
    """Delete a topic and its subscriptions."""
    subscriptions.delete_topic(request.core, request.caller.account, own_name(request))
    return answer(204)


def show_log(request: Request) -> Answer:
    """The topic's messages in order, for consumers that broadcast."""
    topic = topic_of(request)
    limit = read_limit(request.query, LOG_ENTRIES, LOG_ENTRIES_DEFAULT)
    return answer(200, read_log(request.core, topic, None, request.query.get("after"), limit))


def show_subscription_log(request: Request) -> Answer:
    """As `show_log`, what a broadcasting subscription's filter lets through."""
    subscription = pull_subscription(request, "broadcasting")
    limit = read_limit(request.query, LOG_ENTRIES, LOG_ENTRIES_DEFAULT)
    topic, after = topic_of(request), request.query.get("after")
    return answer(200, read_log(request.core, topic, subscription, after, limit))


def show_trace(request: Request) -> Answer:
    """What became of a message, subscription by subscription."""
    return answer(200, trace(request.core, topic_of(request), request.path("id")))


ROUTES: dict[str, Route] = {
    "PUT /topics/{topic}": put_topic,
    "PATCH /topics/{topic}": patch_topic,
    "GET /topics/{topic}": show_topic,
    "GET /topics": show_topics,
    "DELETE /topics/{topic}": remove_topic,
    "GET /topics/{topic}/messages": show_log,
    "GET /topics/{topic}/messages/{id}": show_trace,
    "GET /topics/{topic}/subscriptions/{subscription}/messages": show_subscription_log,
}
