"""Lambda handlers: events in, partial-batch responses out."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.client.stores import Store
from tests.unit.topics import subscription

from cirrusmq.model.message import Message
from cirrusmq.webhooks.requests import delivery
from cirrusmq_client import Received, Retry, batch_response, exactly_once


def message(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"Msg-{number}", "body": str(number), "receipt": f"r{number}", **fields}


def failed(answer: dict[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_only_failures_are_told_and_successes_have_no_second_effect() -> None:
    store = Store()
    fails = {"2", "3"}

    @exactly_once(store, "shop")
    def handle(message: Received, writes: list[str]) -> Retry | None:
        writes.append(message.text)
        if message.text in fails:
            if message.text == "2":
                raise RuntimeError("a bug")
            return Retry()
        return None

    event = {"messages": [message(number) for number in range(5)]}
    assert failed(handle(event, None)) == ["Msg-2", "Msg-3"]
    fails.clear()
    assert failed(handle(event, None)) == []
    assert store.written == ["0", "1", "4", "2", "3"]


def test_of_two_messages_with_one_id_only_the_failed_is_told() -> None:
    """A dead-letter queue has a message twice that two receivers gave up."""
    records = [
        {"messageId": "Msg-1", "receiptHandle": receipt, "body": receipt, "eventSource": source}
        for source in ("cirrusmq", "aws:sqs")
        for receipt in ("r1", "r2")
    ]

    @batch_response
    def handle(message: Received) -> None:
        if message.body == "r2":
            raise ValueError

    assert failed(handle({"Records": records[:2]}, None)) == ["r2"]
    # Another service knows ids alone.
    assert failed(handle({"Records": records[2:]}, None)) == ["Msg-1"]
    messages = [{"id": "Msg-1", "receipt": each["body"], "body": each["body"]} for each in records]
    assert failed(handle({"messages": messages[:2]}, None)) == ["r2"]


def test_after_a_failure_the_rest_of_its_group_fails_unhandled() -> None:
    handled = []

    def handle(message: Received) -> Retry | None:
        handled.append(message.id)
        return Retry() if message.id == "Msg-0" else None

    groups = ["a", "b", "a", None]
    event = {"messages": [message(number, group=group) for number, group in enumerate(groups)]}
    assert failed(batch_response(handle)(event, None)) == ["Msg-0", "Msg-2"]
    assert handled == ["Msg-0", "Msg-1", "Msg-3"]


@pytest.mark.parametrize("source", ["cirrusmq", "aws:sqs", None])
def test_unbegun_messages_are_marked_for_cirrusmq_alone(source: str | None) -> None:
    records = [
        {"messageId": number, "receiptHandle": f"r{number}", "body": number}
        | {"attributes": {"MessageGroupId": "g"}}
        | ({} if source is None else {"eventSource": source})
        for number in "123"
    ]

    def handle(message: Received) -> None:
        if message.text == "2":
            raise ValueError

    unbegun = {"tried": False} if source == "cirrusmq" else {}
    assert batch_response(handle)({"Records": records}, None) == {
        "batchItemFailures": [{"itemIdentifier": "2"}, {"itemIdentifier": "3", **unbegun}]
    }


def test_records_of_queue_event_sources_are_taken() -> None:
    seen = []

    def handle(message: Received) -> None:
        seen.append((message.id, message.text, message.group, message.receive_count))

    attributes = {"MessageGroupId": "g", "ApproximateReceiveCount": "3"}
    records = [
        {"messageId": "1", "body": "a", "attributes": attributes},
        {"messageId": "2", "body": "b"},
    ]
    assert failed(batch_response(handle)({"Records": records}, None)) == []
    assert seen == [("1", "a", "g", 3), ("2", "b", None, 1)]


@pytest.mark.parametrize("source", ["cirrusmq", "aws:sqs"])
def test_attributes_and_tags_of_older_records_and_of_sqs_are_taken(source: str) -> None:
    """Records of releases before this one have no member `cirrusmq`; SQS has neither tags nor bytes
    as a body."""
    seen: list[Received] = []
    record = {
        "messageId": "1",
        "receiptHandle": "r1",
        "body": "AP8=",
        "attributes": {"SentTimestamp": "1700000000123", "bodyEncoding": "base64"},
        "messageAttributes": {
            "TAGS": {"stringValue": "a,b", "dataType": "String"},
            "count": {"stringValue": "3", "dataType": "Number.int"},
            "raw": {"binaryValue": "AP8=", "dataType": "Binary"},
        },
        "eventSource": source,
        "eventSourceARN": f"arn:aws:{source}:eu-1:acme:orders",
    }

    batch_response(seen.append)({"Records": [record]}, None)

    (message,) = seen
    own = source == "cirrusmq"
    assert message.sent_at == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    assert message.tags == (("a", "b") if own else ())
    assert message.body == (b"\0\xff" if own else "AP8=")
    theirs = {} if own else {"TAGS": "a,b"}
    assert message.attributes == {"count": "3", "raw": b"\0\xff", **theirs}
    assert message.source == ("queue orders" if own else record["eventSourceARN"])


def test_a_topics_post_to_a_functions_url_is_taken() -> None:
    seen: list[tuple[str, bytes, tuple[str, ...]]] = []

    def handle(message: Received) -> Retry | None:
        seen.append((message.id, message.data, message.tags))
        return Retry() if message.data == b"bad" else None

    def post(body: str, encoded: bool = False) -> int:
        event = {
            "requestContext": {"http": {"method": "POST"}},
            "headers": {"X-Cmq-Message-Id": "Msg-1", "x-cmq-message-tag": "a, b"},
            "body": body,
            "isBase64Encoded": encoded,
        }
        return int(batch_response(handle)(event, None)["statusCode"])

    envelope = {"TopicOwner": "local", "topicName": "t", "subscriptionName": "s"}
    envelope |= {"msgId": "Msg-1", "msgBody": "text"}
    binary = envelope | {
        "msgBody": base64.b64encode(b"\xff").decode(),
        "bodyEncoding": "base64",
    }
    assert post(json.dumps(envelope)) == 204
    assert post(json.dumps(binary)) == 204
    assert post("raw") == 204
    assert post(base64.b64encode(b"\0").decode(), encoded=True) == 204
    assert post("bad") == 500
    assert [body for _, body, _ in seen] == [b"text", b"\xff", b"raw", b"\0", b"bad"]
    assert {(message_id, tags) for message_id, _, tags in seen} == {("Msg-1", ("a", "b"))}


def test_a_post_has_tags_and_attributes_in_either_format() -> None:
    seen: list[Received] = []

    def post(message: Message, content_format: Any) -> Received:
        headers, body = delivery(
            subscription("http", content_format=content_format),
            "Msg-1",
            message,
            published_ms=0,
            secrets=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
            request_id="r",
            now_s=0,
        )
        event = {
            "requestContext": {"http": {"method": "POST"}},
            "headers": {name.lower(): value for name, value in headers.items()},
            "body": base64.b64encode(body).decode(),
            "isBase64Encoded": True,
        }
        assert batch_response(seen.append)(event, None) == {"statusCode": 204}
        return seen[-1]

    given: dict[str, str | bytes] = {"region": "größe, 100%", "raw": b"\xff\0", "empty": ""}
    message = Message(body="x", attributes=given, tags=("a, b", "größe"))
    for content_format in ("json", "simplified"):
        got = post(message, content_format)
        assert (got.text, got.tags, got.attributes) == ("x", message.tags, given)
    assert post(Message(body="x", attributes={"Price": "1"}), "json").attributes == {"Price": "1"}
    simplified = post(Message(body="x", attributes={"Price": "1"}), "simplified")
    assert simplified.attributes == {"price": "1"}, "names of headers have no case"
