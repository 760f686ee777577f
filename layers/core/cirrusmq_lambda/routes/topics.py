"""Topics, their logs, and the traces of published messages."""

from __future__ import annotations

import os
from functools import partial
from typing import cast

import msgspec

from cirrusmq.base.limits import (
    ANSWER_BYTES,
    LARGEST_ANSWER_BYTES,
    LOG_ENTRIES,
    LOG_ENTRIES_DEFAULT,
)
from cirrusmq.fanout.trace import trace
from cirrusmq.model.sender import Onlooker
from cirrusmq.model.topic import Subscription, Topic, TopicInput
from cirrusmq.publishing.log_reader import Logged, read_log
from cirrusmq.subscriptions import management, topics
from cirrusmq.subscriptions.state import count_topic
from cirrusmq_lambda.answers.topics import (
    LoggedMessage,
    LogPage,
    MessageTrace,
    TopicAttributes,
    TopicCounts,
    TopicPage,
    TopicWithCounts,
)
from cirrusmq_lambda.http import Request, Route, following, read_flag, read_limit
from cirrusmq_lambda.replies import Created, NoContent, Ok
from cirrusmq_lambda.topic_paths import pull_subscription, reached, topic_of


def put_topic(request: Request) -> Created[TopicAttributes] | Ok[TopicAttributes]:
    """Creates a topic, or finds one with the attributes that are given. Raises AlreadyExists,
    LimitExceeded.
    """
    found, given = reached(request, "admin"), request.body(TopicInput)
    exact = read_flag(request.query, "exact")
    topic, created = topics.create_topic(
        request.core, found.account, found.name, given, exact=exact
    )
    shown = TopicAttributes.of(topic)
    return Created(shown) if created else Ok(shown)


def patch_topic(request: Request) -> Ok[TopicAttributes]:
    """Changes some attributes of a topic."""
    found, given = reached(request, "admin"), request.body(TopicInput)
    changed = topics.change_topic(request.core, found.account, found.name, given)
    return Ok(TopicAttributes.of(changed))


def show_topic(request: Request) -> Ok[TopicWithCounts]:
    """Returns a topic's attributes, and the number of messages that some subscription has not
    taken.
    """
    topic = topic_of(request, "info")
    counts = TopicCounts.of(count_topic(request.core, topic))
    region = os.environ.get("AWS_REGION", "")
    return Ok(TopicWithCounts.of(topic, counts=counts, region=region))


def show_topics(request: Request) -> Ok[TopicPage]:
    """Returns a page of the caller's topics."""
    account, prefix = request.caller.account, request.query.get("prefix", "")
    limit, cursor = request.page()
    listed, more = topics.list_topics(request.core, account, prefix, limit, cursor)
    return Ok(TopicPage(topics=list(map(TopicAttributes.of, listed)), cursor=following(more)))


def remove_topic(request: Request) -> NoContent:
    """Deletes a topic and its subscriptions."""
    found = reached(request, "own")
    management.delete_topic(request.core, found.account, found.name)
    return NoContent()


def show_log(request: Request) -> Ok[LogPage]:
    """Returns the topic's messages in order, for broadcasting consumers. Raises MessageTooLarge."""
    return _page_of_log(request, topic_of(request, "subscribe"), None)


def show_subscription_log(request: Request) -> Ok[LogPage]:
    """Returns, in order, the messages that a broadcasting subscription's filter selects. Raises
    MessageTooLarge.
    """
    subscription = pull_subscription(request, "broadcasting")
    return _page_of_log(request, topic_of(request, "subscribe", "admin"), subscription)


def _page_of_log(request: Request, topic: Topic, subscription: Subscription | None) -> Ok[LogPage]:
    limit = read_limit(request.query, LOG_ENTRIES, LOG_ENTRIES_DEFAULT)
    after = request.query.get("after")
    alone_bytes = LARGEST_ANSWER_BYTES if request.takes_gzip else ANSWER_BYTES
    encode = partial(_encode, Onlooker(topic.account, request.caller.account))
    read = read_log(request.core, topic, subscription, after, limit, encode, alone_bytes)
    encoded, cursor = read
    # They are already JSON, so their sizes decide how many fit into a page.
    messages = cast("list[LoggedMessage]", list(map(msgspec.Raw, encoded)))
    return Ok(LogPage(messages=messages, cursor=cursor))


def _encode(seen_by: Onlooker, logged: Logged) -> bytes:
    return msgspec.json.encode(LoggedMessage.logged(logged, seen_by))


def show_trace(request: Request) -> Ok[MessageTrace]:
    """Traces a message: its state at each subscription; with `body=true` its body. Raises
    MessageNotFound, MessageTooLarge.
    """
    found, body = reached(request, "info"), read_flag(request.query, "body")
    if body:
        found.require("subscribe")  # the body is for consumers
    topic = topics.get_topic(request.core, found.account, found.name)
    traced = trace(request.core, topic, request.path("id"), body=body)
    return Ok(MessageTrace.of(traced, Onlooker(topic.account, request.caller.account)))


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
