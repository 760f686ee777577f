"""What an SDK of SQS sent, seen by the service's own calls, its functions and its posts."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes import SQSEvent
from aws_lambda_powertools.utilities.parser.models import SqsModel
from tests.unit.topics import subscription

from cirrusmq.base import sdk_attributes
from cirrusmq.base.sdk_attributes import Typed
from cirrusmq.model.message import Message
from cirrusmq.webhooks import requests
from cirrusmq_client import Received, batch_response
from cirrusmq_client.lambda_events import read_post
from cirrusmq_local.testing import Client, World

SENT: dict[str, dict[str, Any]] = {
    "trace-id": {"DataType": "Number.int", "StringValue": "17"},
    "Some.Name": {"DataType": "String", "StringValue": "größe"},
    "TAGS": {"DataType": "String", "StringValue": "mine"},
    "7": {"DataType": "Binary.png", "BinaryValue": b"\0\xff"},
}
SHOWN = {"trace-id": "17", "Some.Name": "größe", "TAGS": "mine", "7": {"base64": "AP8="}}
TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}}


def send(sqs: Any, name: str, **more: Any) -> str:
    """The id of a message with all that an SDK may say of it."""
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    given = {"MessageAttributes": SENT, "MessageSystemAttributes": TRACE, **more}
    sent: str = sqs.send_message(QueueUrl=url, MessageBody="x", **given)["MessageId"]
    return sent


@pytest.fixture
def orders(shop: Client) -> str:
    shop.put("/queues/orders", {})
    return "orders"


def test_a_receive_and_a_peek_show_the_sent_names(shop: Client, sqs: Any, orders: str) -> None:
    send(sqs, orders)

    (peeked,) = shop.post("/queues/orders/messages/peek", {}).json["messages"]
    (received,) = shop.post("/queues/orders/messages/receive", {}).json["messages"]

    for each in (peeked, received):
        assert each["attributes"] == SHOWN


def test_names_of_a_caller_of_the_own_api_stay_though_they_look_like_written_ones(
    shop: Client, orders: str
) -> None:
    given = {"a$be": "1", "cost_$": "4"}
    shop.post("/queues/orders/messages", {"messages": [{"body": "x", "attributes": given}]})

    (received,) = shop.post("/queues/orders/messages/receive", {}).json["messages"]

    assert received["attributes"] == given


@pytest.mark.parametrize("content_format", ["json", "simplified"])
def test_a_post_shows_the_sent_names(
    content_format: Literal["json", "simplified"],
) -> None:
    """Also those that no header may have."""
    properties = {"x-key": "1", "größe": "2", "odd key": "3", "plain": "4"}
    kept = sdk_attributes.write(
        {name: Typed(sdk_attributes.TEXT, value) for name, value in properties.items()}
    )
    headers, body = requests.delivery(
        subscription("http", account="shop", content_format=content_format),
        "Msg-1",
        Message(body="x", attributes=kept),
        published_ms=0,
        secrets=["s" * 24],
        request_id="r",
        now_s=0,
    )
    event = {"headers": headers, "body": body.decode()}

    assert all(name.isascii() and " " not in name for name in headers)
    assert read_post(event).attributes == properties


@pytest.fixture
def events(world: World) -> list[dict[str, Any]]:
    """What functions were called with."""
    got: list[dict[str, Any]] = []

    def handle(event: dict[str, Any]) -> None:
        got.append(event)

    world.handle = handle
    return got


def test_a_function_gets_the_message_of_an_sqs_sender(
    world: World, shop: Client, sqs: Any, events: list[dict[str, Any]]
) -> None:
    invoke = {"function": "handler", "event_source": "aws:sqs"}
    world.client("shop", admin=True).put("/queues/orders_fifo", {"ordered": True, "invoke": invoke})

    id = send(sqs, "orders.fifo", MessageGroupId="g", MessageDeduplicationId="once")
    world.settle()

    (record,) = events[0]["Records"]
    assert record["messageId"] == id
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"].split(":")[:3] == ["arn", "aws", "sqs"]
    attributes = record["messageAttributes"]
    assert {name: each["dataType"] for name, each in attributes.items()} == {
        name: each["DataType"] for name, each in SENT.items()
    }
    assert attributes["trace-id"]["stringValue"] == "17"
    assert attributes["7"]["binaryValue"] == "AP8="
    system = record["attributes"]
    assert (system["MessageGroupId"], system["MessageDeduplicationId"]) == ("g", "once")
    assert (system["SenderId"], system["AWSTraceHeader"]) == ("shop", "Root=1-2-3")
    assert len(system["SequenceNumber"]) == 20


def test_a_handler_of_powertools_takes_the_record(
    world: World, sqs: Any, events: list[dict[str, Any]]
) -> None:
    invoke = {"function": "handler", "event_source": "aws:sqs"}
    world.client("shop", admin=True).put("/queues/orders", {"invoke": invoke})
    send(sqs, "orders")
    world.settle()

    (record,) = SQSEvent(events[0]).records
    attribute = record.message_attributes["trace-id"]
    assert attribute is not None
    assert attribute.data_type == "Number.int"
    assert record.attributes.aws_trace_header == "Root=1-2-3"
    assert record.queue_url.endswith("/shop/orders")
    assert SqsModel.model_validate(events[0]).Records[0].body == "x"
    processor = BatchProcessor(event_type=EventType.SQS)
    with processor(records=events[0]["Records"], handler=lambda record: record.body):
        assert [each[:2] for each in processor.process()] == [("success", "x")]


@pytest.mark.parametrize("source", ["cirrusmq", "aws:sqs"])
def test_the_library_gives_a_handler_the_same_under_both_event_sources(
    world: World, sqs: Any, shop: Client, source: str
) -> None:
    got: list[Received] = []
    respond = batch_response(got.append)
    world.handle = lambda event: respond(event, None)
    invoke = {"function": "handler", "event_source": source}
    world.client("shop", admin=True).put("/queues/orders", {"invoke": invoke})
    id = send(sqs, "orders")
    world.settle()

    (message,) = got
    assert (message.id, message.tags, message.source) == (id, (), "queue orders")
    assert message.attributes == {**SHOWN, "7": b"\0\xff"}
    assert shop.get("/queues/orders").json["counts"]["active"] == 0


def test_an_unknown_event_source_is_refused(world: World) -> None:
    invoke = {"function": "handler", "event_source": "sqs"}
    reply = world.client("shop", admin=True).put("/queues/orders", {"invoke": invoke})
    assert reply.status == 400
    assert "invoke.event_source" in reply.text


def test_a_receive_tells_the_receiving_key(shop: Client, sqs: Any, orders: str) -> None:
    shown = shop.get("/queues/orders/consumers").json["consumers"]
    assert shown == []

    sqs.receive_message(QueueUrl=sqs.get_queue_url(QueueName=orders)["QueueUrl"])

    (shown,) = shop.get("/queues/orders/consumers").json["consumers"]
    assert shown["access_key_id"].startswith("AKID")
    assert shown["account"] == "shop"


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
GIVEN = {"traceparent": {"DataType": "String", "StringValue": PARENT}}
"""W3C's trace context, beside AWS's header."""


def test_an_attribute_of_sqs_is_seen_by_the_own_calls(shop: Client, sqs: Any, orders: str) -> None:
    send(sqs, orders, MessageAttributes=GIVEN)

    assert shop.receive(orders)[0]["attributes"] == {"traceparent": PARENT}


def test_a_header_of_an_own_call_is_seen_by_sqs(shop: Client, sqs: Any, orders: str) -> None:
    body = json.dumps({"messages": [{"body": "x"}]}).encode()
    shop.raw("POST", "/queues/orders/messages", body, headers={"traceparent": PARENT})

    url = sqs.get_queue_url(QueueName=orders)["QueueUrl"]
    asked = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"]}
    (message,) = sqs.receive_message(QueueUrl=url, **asked)["Messages"]

    assert message["MessageAttributes"] == GIVEN
    assert "AWSTraceHeader" not in message["Attributes"]


def test_a_header_of_a_call_of_sqs_is_no_attribute(shop: Client, sqs: Any, orders: str) -> None:
    sqs.meta.events.register(
        "before-sign.sqs", lambda request, **_: request.headers.add_header("traceparent", PARENT)
    )

    send(sqs, orders, MessageAttributes={}, MessageSystemAttributes=TRACE)

    assert shop.receive(orders)[0]["attributes"] == {}
