"""The query protocol: what boto3 1.26 sends, from before SQS spoke JSON, and what it reads."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.dialects.conftest import URL, Key, call
from tests.dialects.query import error, found, play, sign, tree

from cirrusmq_dialects import aws_signature as signature
from cirrusmq_dialects.sqs import calls, query
from cirrusmq_local.testing import Client, Reply, World

RECORDED = json.loads(Path(__file__).with_name("sqs_query_calls.json").read_text("utf-8"))

UNSUPPORTED = "AWS.SimpleQueueService.UnsupportedOperation"


def post(world: World, key: Key, body: str, url: str = f"{URL}/") -> Reply:
    """A form as older SDKs send and sign it."""
    content = body.encode()
    return call(world, "POST", url, sign(key.id, key.secret, url, content), content)


@pytest.fixture
def replies(world: World, key: Key) -> dict[str, Reply]:
    """The recorded calls, one after the other; the answer to each."""
    return play(RECORDED["calls"], lambda body, url: post(world, key, body, url))


def test_every_action_was_recorded() -> None:
    recorded = {"".join(map(str.capitalize, each["call"].split("_"))) for each in RECORDED["calls"]}
    assert recorded == set(calls.ACTIONS)


def test_the_signature_of_a_form_matches_the_sdk() -> None:
    sent = RECORDED["signed"]
    headers = {"host": "127.0.0.1:8081", **sent["headers"]}
    signed = signature.read(headers)
    assert signed is not None
    path = sent["url"].removeprefix(URL)
    text = signature.text_to_sign(signed, "POST", path, "", headers, sent["body"].encode())
    assert signature.sign(RECORDED["secret"], signed, text) == signed.signature


def test_all_calls_are_answered_in_xml(replies: dict[str, Reply]) -> None:
    refused = {"add_permission", "remove_permission"}
    for name, reply in replies.items():
        assert reply.status == (400 if name in refused else 200), (name, reply.text)
        action = "".join(map(str.capitalize, name.split("_")))
        expected = "ErrorResponse" if name in refused else f"{action}Response"
        assert tree(reply).tag == f"{{{query.NAMESPACE}}}{expected}"
        path = "RequestId" if name in refused else "ResponseMetadata/RequestId"
        assert found(reply, path) == ["00000000-0000-0000-0000-000000000000"]
    assert error(replies["add_permission"]) == "AWS.SimpleQueueService.UnsupportedOperation"


def test_answers_are_in_json_if_asked_for(
    world: World, key: Key, orders: str, shop: Client
) -> None:
    shop.send("orders", "a & b")

    def told(action: str, url: str = f"{URL}/") -> tuple[int, dict[str, Any]]:
        content = f"Action={action}".encode()
        headers = {**sign(key.id, key.secret, url, content), "accept": "application/json"}
        reply = call(world, "POST", url, headers, content)
        assert reply.headers["Content-Type"] == "application/json"
        return reply.status, json.loads(reply.text)

    _, shown = told(f"GetQueueAttributes&QueueUrl={orders}&AttributeName.1=QueueArn")
    (pair,) = shown["GetQueueAttributesResponse"]["GetQueueAttributesResult"]["Attributes"]
    assert pair["Name"] == "QueueArn"
    assert pair["Value"].endswith(":shop:orders")
    _, received = told(f"ReceiveMessage&QueueUrl={orders}&AttributeName.1=SenderId")
    (message,) = received["ReceiveMessageResponse"]["ReceiveMessageResult"]["Messages"]
    assert message["Body"] == "a & b"
    assert message["Attributes"] == [{"Name": "SenderId", "Value": "shop"}]
    _, purged = told(f"PurgeQueue&QueueUrl={orders}")
    assert purged["PurgeQueueResponse"].keys() == {"ResponseMetadata"}
    status, refused = told("ListQueues", f"{URL}/shop/orders")
    assert (status, refused["Error"]["Code"]) == (400, "InvalidAction")
    assert "ListQueues is not valid for this endpoint" in refused["Error"]["Message"]


def test_queues_in_xml(replies: dict[str, Reply]) -> None:
    url = f"{URL}/shop/orders"
    assert found(replies["create_queue"], "CreateQueueResult/QueueUrl") == [url]
    assert found(replies["get_queue_url"], "GetQueueUrlResult/QueueUrl") == [url]
    assert found(replies["list_queues"], "ListQueuesResult/QueueUrl") == [url]
    path = "ListDeadLetterSourceQueuesResult/QueueUrl"
    assert found(replies["list_dead_letter_source_queues"], path) == [url]
    shown = replies["get_queue_attributes"]
    names = found(shown, "GetQueueAttributesResult/Attribute/Name")
    assert names == ["VisibilityTimeout", "RedrivePolicy"]
    assert found(shown, "GetQueueAttributesResult/Attribute/Value")[0] == "5"
    tags = replies["list_queue_tags"]
    assert found(tags, "ListQueueTagsResult/Tag/Key") == ["a", "d"]
    assert found(tags, "ListQueueTagsResult/Tag/Value") == ["b & c", "e"]


def test_messages_in_xml(replies: dict[str, Reply]) -> None:
    sent = "SendMessageResult/MD5OfMessageAttributes"
    assert found(replies["send_message"], sent) == ["9826482dd098c680385bb6736547e946"]
    batch = "SendMessageBatchResult/SendMessageBatchResultEntry/Id"
    assert len(found(replies["send_message_batch"], batch)) == 10
    received = replies["receive_message"]
    bodies = found(received, "ReceiveMessageResult/Message/Body")
    assert set(bodies) <= {"<a&b>\r\n\"ü😀'", *(f"m{number}" for number in range(10))}
    message = "ReceiveMessageResult/Message/"
    names = found(received, f"{message}MessageAttribute/Name")
    assert set(names) == {"b", "n-1.x"}
    values = found(received, f"{message}MessageAttribute/Value/BinaryValue")
    assert set(values) == {"AAE="}
    assert "SentTimestamp" in found(received, f"{message}Attribute/Name")
    held = replies["change_message_visibility_batch"]
    entry = "ChangeMessageVisibilityBatchResult/ChangeMessageVisibilityBatchResultEntry/Id"
    failed = "ChangeMessageVisibilityBatchResult/BatchResultErrorEntry/"
    assert found(held, entry) == ["a"]
    assert found(held, f"{failed}SenderFault") == ["true"]
    assert found(held, f"{failed}Code") == ["ReceiptHandleIsInvalid"]
    deleted = replies["delete_message_batch"]
    assert found(deleted, "DeleteMessageBatchResult/DeleteMessageBatchResultEntry/Id") == ["a"]


def test_tasks_in_xml(replies: dict[str, Reply]) -> None:
    entry = "ListMessageMoveTasksResult/ListMessageMoveTasksResultEntry/"
    assert found(replies["list_message_move_tasks"], f"{entry}Status") == ["RUNNING"]
    moved = "CancelMessageMoveTaskResult/ApproximateNumberOfMessagesMoved"
    assert found(replies["cancel_message_move_task"], moved) == ["0"]


@pytest.fixture
def orders(shop: Client) -> str:
    assert shop.put("/queues/orders", {"max_message_bytes": 1_048_576}).status == 201
    return quote(f"{URL}/shop/orders")


def test_refusals_in_xml(world: World, key: Key, orders: str) -> None:
    for body, code in {
        "": "MissingAction",
        "Action=": "MissingAction",
        f"Action=ReceiveMessage&QueueUrl={orders}&MaxNumberOfMessages=x": "MalformedInput",
        f"Action=DeleteMessageBatch&QueueUrl={orders}": "AWS.SimpleQueueService.EmptyBatchRequest",
        "Action=ListQueues&Action.x=1": "InvalidParameterValue",
    }.items():
        reply = post(world, key, body)
        assert (reply.status, error(reply)) == (400, code), body
    key.secret = "wrong"
    reply = post(world, key, "Action=ListQueues")
    assert (reply.status, error(reply)) == (403, "SignatureDoesNotMatch")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("ReceiveMessage", None),
        ("ReceiveMessage&MessageAttributeNames=", None),
        ("ReceiveMessage&AttributeNames=&MessageSystemAttributeNames=", None),
        ("ReceiveMessage&AttributeNames=x", "MalformedInput"),
        ("GetQueueAttributes&AttributeNames=", None),
        ("SendMessageBatch&Entries=", "AWS.SimpleQueueService.EmptyBatchRequest"),
        ("DeleteMessageBatch&Entries=", "AWS.SimpleQueueService.EmptyBatchRequest"),
        ("ChangeMessageVisibilityBatch&Entries=", "AWS.SimpleQueueService.EmptyBatchRequest"),
        ("UntagQueue&TagKeys=", "MissingParameter"),
        ("AddPermission&Label=a&Actions=&AWSAccountId.1=1", "MissingParameter"),
        ("AddPermission&Label=a&ActionName.1=*&AWSAccountIds=", "MissingParameter"),
        ("AddPermission&Label=a&ActionName.1=*&AWSAccountId.1=1", UNSUPPORTED),
        ("AddPermission&ActionName.1=*&AWSAccountId.1=1", "MissingParameter"),
        ("RemovePermission", "MissingParameter"),
    ],
)
def test_an_empty_list_has_the_name_of_its_member(
    world: World, key: Key, orders: str, shop: Client, asked: str, code: str | None
) -> None:
    shop.send("orders", "hello")

    reply = post(world, key, f"Action={asked}&QueueUrl={orders}")

    if code is not None:
        assert (reply.status, error(reply)) == (400, code)
        return
    assert reply.status == 200, reply.text
    bodies = found(reply, "ReceiveMessageResult/Message/Body")
    assert bodies == (["hello"] if asked.startswith("Receive") else [])
    assert found(reply, "ReceiveMessageResult/Message/Attribute/Name") == []


def test_a_message_five_times_as_large_in_xml_is_received(
    world: World, key: Key, orders: str, shop: Client
) -> None:
    """A million `&` do not fit into Lambda's answer; a smaller message passes, alone."""
    for _ in range(3):
        shop.send("orders", "&" * 800_000)
    reply = post(world, key, f"Action=ReceiveMessage&QueueUrl={orders}&MaxNumberOfMessages=10")
    assert found(reply, "ReceiveMessageResult/Message/Body") == ["&" * 800_000]


def test_characters_unfit_for_xml_are_replaced(
    world: World, key: Key, orders: str, shop: Client
) -> None:
    shop.send("orders", "a\0b\ufffe")
    reply = post(world, key, f"Action=ReceiveMessage&QueueUrl={orders}")
    assert found(reply, "ReceiveMessageResult/Message/Body") == ["a\ufffdb\ufffd"]


def odd_forms() -> Iterator[str]:
    chance = random.Random(7)
    bodies = [each["body"] for each in RECORDED["calls"]]
    pieces = [*(".", "..", "1", ".1.", "Name", "%00", "%ff", "&", "=", "&&", "%", "+", "a" * 300)]
    pieces += ["Attribute.1.Name", "Tag.1", "Tag.x.Key=1", "TagKey.member.1=a", "9" * 30]
    for _ in range(400):
        body = chance.choice(bodies)
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(len(body))
            cut = chance.choice([0, 0, 1, 20])
            body = body[:place] + chance.choice(pieces) + body[place + cut :]
        yield body


def test_odd_forms_are_refused_or_taken_but_never_a_failure_of_ours(world: World, key: Key) -> None:
    for body in odd_forms():
        reply = post(world, key, body)
        assert reply.status in (200, 400, 403, 404), (body, reply.text)
        tree(reply)
