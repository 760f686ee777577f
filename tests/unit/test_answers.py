"""Answers made from values of the core: their fields, and those that are left out."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from tests.unit.parcels import NOW_MS
from tests.unit.queues import queue
from tests.unit.topics import subscription, topic

from cirrusmq.model.message import Message
from cirrusmq.model.queue import DeadLetter, QueueAttributes
from cirrusmq.model.sender import Onlooker
from cirrusmq_lambda.answers import queues
from cirrusmq_lambda.answers.content import Content
from cirrusmq_lambda.answers.subscriptions import SubscriptionAttributes
from cirrusmq_lambda.answers.topics import TopicAttributes

SEEN_BY = Onlooker("alice", "alice")


def test_a_queue_is_shown_with_its_times() -> None:
    held = queue(attributes=QueueAttributes(dead_letter=DeadLetter("dead", 3)))
    shown = msgspec.to_builtins(queues.QueueAttributes.of(held))
    assert shown["name"] == "orders"
    assert shown["id"] == "0123456789ab"
    assert shown["created_at"] == shown["modified_at"] == "2026-11-18T11:06:35.000Z"
    assert shown["dead_letter"] == {"queue": "dead", "max_receives": 3}
    assert shown["partitions"] == 4


def test_a_topic_is_shown_with_its_times() -> None:
    changed = replace(topic(description="x"), modified_ms=NOW_MS + 1)
    assert msgspec.to_builtins(TopicAttributes.of(changed)) == {
        "name": "news",
        "id": "0123456789ab",
        "filter": "tags",
        "max_message_bytes": 65_536,
        "message_retention_seconds": 86_400,
        "partitions": 8,
        "description": "x",
        "labels": {},
        "sender": "account",
        "created_at": "2026-11-18T11:06:40.000Z",
        "modified_at": "2026-11-18T11:06:40.001Z",
    }


def test_a_pull_subscription_is_shown_with_its_mode_and_without_an_endpoint() -> None:
    group = subscription("pull", ordered=True)
    assert msgspec.to_builtins(SubscriptionAttributes.of(group)) == {
        "name": "readers",
        "topic": "news",
        "id": "ba9876543210",
        "protocol": "pull",
        "filter": None,
        "retry": None,
        "retry_in_force": {
            "policy": "ordered",
            "waits": [1.0],
            "jitter": 0.0,
            "max_retries": None,
        },
        "content_format": "json",
        "dead_letter_queue": None,
        "labels": {},
        "mode": "clustering",
        "ordered": True,
        "invoke": None,
        "start": "latest",
        "paused": False,
        "created_at": "2026-11-18T11:06:40.000Z",
        "modified_at": "2026-11-18T11:06:40.001Z",
    }


def test_a_message_is_shown_with_its_texts_as_text_and_its_bytes_as_base64() -> None:
    text = Message(body="é", attributes={"a": "1", "b": b"\xff\0"}, tags=("t", "u"), group="g")
    sent = {"id": "Msg-0", "sent_at": "2026-11-18T11:06:40.000Z", "sender": "alice"}
    assert msgspec.to_builtins(Content.of(text, "Msg-0", NOW_MS, SEEN_BY)) == sent | {
        "body": "é",
        "attributes": {"a": "1", "b": {"base64": "/wA="}},
        "tags": ["t", "u"],
        "group": "g",
    }
    binary = Content.of(Message(body=b"\xff\0"), "Msg-0", NOW_MS, SEEN_BY)
    shown = {"body_base64": "/wA=", "attributes": {}, "tags": []}
    assert msgspec.to_builtins(binary) == sent | shown
