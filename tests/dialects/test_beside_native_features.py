"""SDKs of other services beside features that only the native API has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.dialects.cmq_sdk import account_of, message
from tests.dialects.conftest import REGION, URL, Key
from tests.dialects.emq_wire import Emq

from cirrusmq_local.testing import Client, World

ORDERS = f"{URL}/shop/orders"
DEAD = f"arn:aws:sqs:{REGION}:shop:dead"
RED = {"color": {"DataType": "String", "StringValue": "red"}}
HOOK = "https://hooks.example/a"


def make(shop: Client, name: str = "orders", **attributes: Any) -> None:
    assert shop.put(f"/queues/{name}", attributes).status == 201


def receive(sqs: Any, limit: int = 10, **given: Any) -> list[Any]:
    found = sqs.receive_message(QueueUrl=ORDERS, MaxNumberOfMessages=limit, **given)
    return list(found.get("Messages", []))


def by_attribute(shop: Client) -> list[Any]:
    """The messages that a native receive chooses by their attribute."""
    asked = {"max": 10, "wait_seconds": 0, "where": {"name": "color", "value": "red"}}
    return list(shop.post("/queues/orders/messages/receive", asked).json["messages"])


class Sqs:
    def __init__(self, world: World, key: Key, sqs: Any) -> None:
        self._sqs = sqs

    def send(self, body: str) -> None:
        self._sqs.send_message(QueueUrl=ORDERS, MessageBody=body)

    def take(self) -> str:
        (held,) = receive(self._sqs, 1, WaitTimeSeconds=1)
        self._sqs.delete_message(QueueUrl=ORDERS, ReceiptHandle=held["ReceiptHandle"])
        return str(held["Body"])


class Cmq:
    def __init__(self, world: World, key: Key, sqs: Any) -> None:
        self._queue = account_of(world, key).get_queue("orders")

    def send(self, body: str) -> None:
        self._queue.send_message(message(body))

    def take(self) -> str:
        held = self._queue.receive_message(1)
        self._queue.delete_message(held.receiptHandle)
        return str(held.msgBody)


class OfEmq:
    def __init__(self, world: World, key: Key, sqs: Any) -> None:
        self._emq = Emq(world, key)

    def send(self, body: str) -> None:
        self._emq.message("sendMessage", (1, "shop/orders"), (2, body))

    def take(self) -> str:
        named = (1, "shop/orders")
        (held,) = self._emq.message("receiveMessage", named, (2, 1))
        self._emq.message("deleteMessage", named, (2, held[2]))
        return str(held[3])


@pytest.mark.parametrize("program", [Sqs, Cmq, OfEmq])
@pytest.mark.parametrize("partitions", [1, 4])
def test_priorities_and_ageing_hold_for_every_sdk(
    world: World, key: Key, sqs: Any, shop: Client, program: Callable[..., Any], partitions: int
) -> None:
    make(shop, priorities=4, ageing_seconds=60, partitions=partitions)
    sdk = program(world, key, sqs)
    sdk.send("low")
    shop.send("orders", "high", priority=4)
    shop.send("orders", "later", priority=4, delay_seconds=500)

    assert sdk.take() == "high"
    world.clock.pass_seconds(500)
    assert [sdk.take(), sdk.take()] == ["low", "later"]
    assert shop.receive("orders") == []


@pytest.mark.parametrize("program", [Sqs, Cmq, OfEmq])
def test_it_is_billed_as_native_calls(
    world: World, key: Key, sqs: Any, shop: Client, program: Callable[..., Any]
) -> None:
    make(shop, partitions=1)
    sdk = program(world, key, sqs)

    def take() -> None:
        (held,) = shop.receive("orders", 1)
        shop.post("/queues/orders/messages/delete", {"receipts": [held["receipt"]]})

    for _ in range(2):  # the second time caches are warm
        ours = [world.units(lambda: shop.send("orders", "hello")), world.units(take)]
        theirs = [world.units(lambda: sdk.send("hello")), world.units(sdk.take)]
    assert theirs == ours
    assert sum(write for write, _ in theirs) == 3


def test_a_message_chosen_by_an_attribute_is_settled_by_sqs(sqs: Any, shop: Client) -> None:
    make(shop)
    kinds: list[dict[str, Any]] = [RED, {}, RED]
    for given in kinds:
        sqs.send_message(QueueUrl=ORDERS, MessageBody="a", MessageAttributes=given)
    first, second = by_attribute(shop)

    sqs.delete_message(QueueUrl=ORDERS, ReceiptHandle=first["receipt"])
    given = {"QueueUrl": ORDERS, "ReceiptHandle": second["receipt"]}
    sqs.change_message_visibility(**given, VisibilityTimeout=0)

    (again,) = by_attribute(shop)
    assert (again["id"], again["receive_count"]) == (second["id"], 2)
    assert [each.get("MessageAttributes") for each in receive(sqs)] == [None]


def test_a_move_task_puts_dead_letters_back_by_their_priorities(
    world: World, sqs: Any, shop: Client
) -> None:
    make(shop, "dead")
    make(shop, priorities=4, dead_letter={"queue": "dead", "max_receives": 1})
    for priority in (1, 4, 2):
        shop.send("orders", f"{priority}", priority=priority)
    while receive(sqs, VisibilityTimeout=1):
        pass
    world.clock.pass_seconds(2)
    assert receive(sqs) == []
    world.settle()

    sqs.start_message_move_task(SourceArn=DEAD)
    world.settle()

    (task,) = sqs.list_message_move_tasks(SourceArn=DEAD)["Results"]
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 3)
    assert [receive(sqs, 1)[0]["Body"] for _ in range(3)] == ["4", "2", "1"]


@pytest.mark.parametrize("attributes", [{"priorities": 3}, {"send_rate": 1, "receive_rate": 1}])
def test_half_messages_of_a_topic_of_sns_come_after_their_commit(
    world: World, sqs: Any, sns: Any, shop: Client, attributes: dict[str, Any], arn: str
) -> None:
    make(shop, **attributes)
    queue = f"arn:aws:sqs:{REGION}:shop:orders"
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue)
    half = {"messages": [{"body": "a"}, {"body": "b"}], "transaction": {}}
    handle = shop.post("/topics/drinks/messages", half).json["transaction"]["handle"]
    world.settle()
    assert receive(sqs) == []

    assert shop.post("/topics/drinks/half/commit", {"handle": handle}).status == 200
    world.settle()

    found: list[Any] = []
    for _ in range(4):
        found += receive(sqs)
        world.clock.pass_seconds(1)
    assert sorted(json.loads(each["Body"])["Message"] for each in found) == ["a", "b"]


def test_a_paused_url_stays_paused_through_calls_of_sns(
    world: World, sns: Any, shop: Client, arn: str
) -> None:
    made = {"TopicArn": arn, "Protocol": "https", "Endpoint": HOOK}
    subscription = sns.subscribe(**made, ReturnSubscriptionArn=True)["SubscriptionArn"]
    name = shop.get("/topics/drinks/subscriptions").json["subscriptions"][0]["name"]
    path = f"/topics/drinks/subscriptions/{name}"
    assert shop.post(f"{path}/pause", {}).status == 200
    policy = {"healthyRetryPolicy": {"numRetries": 1, "minDelayTarget": 1, "maxDelayTarget": 1}}
    for attribute, value in {
        "RawMessageDelivery": "true",
        "DeliveryPolicy": json.dumps(policy),
        "FilterPolicy": '{"color": ["red"]}',
    }.items():
        named = {"AttributeName": attribute, "AttributeValue": value}
        sns.set_subscription_attributes(SubscriptionArn=subscription, **named)

    for given in (RED, {}):
        sns.publish(TopicArn=arn, Message="a", MessageAttributes=given)
    world.settle()
    assert (shop.get(path).json["paused"], world.posts) == (True, [])
    assert shop.post(f"{path}/resume", {}).status == 200
    world.settle()

    assert [(url, body) for url, _, body in world.posts] == [(HOOK, b"a")]


def test_a_replaced_message_and_a_request_are_received_by_sqs(
    world: World, sqs: Any, shop: Client
) -> None:
    make(shop, priorities=4)
    for priority in (4, 1):
        shop.send("orders", f"{priority}", replace="k", priority=priority, delay_seconds=5)
    (sent,) = shop.send("orders", "2+2", priority=2, reply={"seconds": 60})
    world.clock.pass_seconds(6)

    (asked,) = receive(sqs, 1, MessageAttributeNames=["All"])
    (newest,) = receive(sqs)

    assert (asked["Body"], newest["Body"], "MessageAttributes" in asked) == ("2+2", "1", False)
    path = f"/queues/orders/messages/{sent['id']}/reply"
    answer = {"receipt": asked["ReceiptHandle"], "reply": {"body": "4"}}
    assert shop.post(path, answer).status == 200
    assert shop.get(path, f"reply_by={sent['reply_by']}").json["state"] == "replied"
