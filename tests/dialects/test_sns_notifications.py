"""SNS's default delivery: in a JSON object, for SQS's callers, functions and URLs alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.dialects.conftest import REGION, URL, change_settings
from tests.dialects.sns_calls import change, make_queue, shown, subscribe
from tests.dialects.test_sqs_queues import redrive_policy

from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq_local.testing import Client, World
from cirrusmq_local.testing.core import FUNCTION

QUEUE = f"arn:aws:sqs:{REGION}:shop:orders"
HOOK = "https://hooks.example/a"
SENT: dict[str, dict[str, Any]] = {
    "a.b-c": {"DataType": "String", "StringValue": 'x & <y> "z"'},
    "cups": {"DataType": "Number", "StringValue": "2"},
    "list": {"DataType": "String.Array", "StringValue": '["a", 1]'},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\0\1"},
}


def receive(world: World, sqs: Any, url: str, limit: int = 10) -> list[dict[str, Any]]:
    world.settle()
    given = {"MaxNumberOfMessages": limit, "MessageAttributeNames": ["All"]}
    found: list[dict[str, Any]] = sqs.receive_message(QueueUrl=url, **given).get("Messages", [])
    return found


def only(world: World, sqs: Any, url: str) -> dict[str, Any]:
    """The one notification in a queue."""
    (message,) = receive(world, sqs, url)
    found: dict[str, Any] = json.loads(message["Body"])
    return found


def native(shop: Client, queue: str = "orders") -> dict[str, Any]:
    (message,) = shop.receive(queue)
    return message


def test_a_queue_gets_a_notification(world: World, sns: Any, sqs: Any, arn: str, url: str) -> None:
    made = subscribe(sns, arn)
    sent = sns.publish(
        TopicArn=arn, Message='tea "☕"\n\x7f', Subject="a subject", MessageAttributes=SENT
    )
    (message,) = receive(world, sqs, url)
    told = json.loads(message["Body"])
    assert list(told) == [
        *("Type", "MessageId", "TopicArn", "Subject", "Message", "Timestamp", "UnsubscribeURL"),
        "MessageAttributes",
    ]
    assert abs(parse_time("at", told.pop("Timestamp")) - world.clock.now_ms()) < 1_000
    assert told == {
        "Type": "Notification",
        "MessageId": sent["MessageId"],
        "TopicArn": arn,
        "Subject": "a subject",
        "Message": 'tea "☕"\n\x7f',
        "UnsubscribeURL": f"{URL}/?Action=Unsubscribe&SubscriptionArn={made.replace(':', '%3A')}",
        "MessageAttributes": {
            "a.b-c": {"Type": "String", "Value": 'x & <y> "z"'},
            "cups": {"Type": "Number", "Value": "2"},
            "list": {"Type": "String.Array", "Value": '["a", 1]'},
            "bytes": {"Type": "Binary", "Value": "AAE="},
        },
    }
    assert message["MD5OfBody"] == hashlib.md5(message["Body"].encode()).hexdigest()
    assert "MessageAttributes" not in message
    sns.publish(TopicArn=arn, Message="x")
    assert "Subject" not in only(world, sqs, url)


def test_native_views_show_the_message(world: World, sns: Any, shop: Client, arn: str) -> None:
    shop.put("/queues/orders", {"visibility_timeout_seconds": 1})
    subscribe(sns, arn)
    sns.publish(TopicArn=arn, Message="tea", Subject="s", MessageAttributes=SENT)
    world.settle()
    peeked = shop.post("/queues/orders/messages/peek", {}).json["messages"]
    for each in (*peeked, native(shop)):
        assert each["body"] == "tea"
        assert each["attributes"].keys() == SENT.keys()


Move = Callable[[World, Client, Any, str], str]
"""Moves the message of `orders` on; returns the URL of the queue that it is in then."""


def _stay(world: World, shop: Client, sqs: Any, url: str) -> str:
    return url


def _come_again(world: World, shop: Client, sqs: Any, url: str) -> str:
    assert receive(world, sqs, url)
    world.clock.pass_seconds(31)
    return url


def _give_back(world: World, shop: Client, sqs: Any, url: str) -> str:
    (message,) = receive(world, sqs, url)
    handle = message["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    return url


def _die(world: World, shop: Client, sqs: Any, url: str) -> str:
    dead = make_queue(sqs, "dead")
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead", 1))
    _come_again(world, shop, sqs, url)
    assert receive(world, sqs, url) == []
    return dead


def _die_and_go_back(world: World, shop: Client, sqs: Any, url: str) -> str:
    _die(world, shop, sqs, url)
    sqs.start_message_move_task(SourceArn=QUEUE.replace("orders", "dead"))
    return url


def _rewind(world: World, shop: Client, sqs: Any, url: str) -> str:
    assert shop.patch("/queues/orders", {"rewind_seconds": 600}).status == 200
    (message,) = receive(world, sqs, url)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    world.clock.pass_seconds(1)
    since = format_time(world.clock.now_ms() - 60_000)
    assert shop.post("/queues/orders/rewind", {"to": since}).status == 202
    return url


def _forget_the_subscription(world: World, shop: Client, sqs: Any, url: str) -> str:
    world.settle()
    (known,) = shop.get("/topics/drinks/subscriptions").json["subscriptions"]
    assert shop.delete(f"/topics/drinks/subscriptions/{known['name']}").status == 204
    assert shop.delete("/topics/drinks").status == 204
    return url


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "fair": {"fair": True},
    "rewindable": {"rewind_seconds": 600},
    "receivers": {},
}


@pytest.mark.few(7)
@pytest.mark.parametrize("size", [1, 5_000, 200_000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "move",
    [_stay, _come_again, _give_back, _die, _die_and_go_back, _forget_the_subscription],
)
def test_every_move_keeps_the_notification(
    move: Move, kind: str, size: int, world: World, sns: Any, sqs: Any, shop: Client, arn: str
) -> None:
    assert shop.put("/queues/orders", KINDS[kind]).status == 201
    if kind == "receivers":
        assert shop.put("/queues/orders/receivers/audit", {}).status == 201
    change_settings(world, bodies_in_s3_from=100)
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    made = subscribe(sns, arn)
    sent = sns.publish(TopicArn=arn, Message="x" * size, Subject="s")
    now_ms = world.clock.now_ms()
    world.clock.pass_seconds(1)
    found = only(world, sqs, move(world, shop, sqs, url))
    assert (found["TopicArn"], found["Subject"]) == (arn, "s")
    assert (found["MessageId"], found["Message"]) == (sent["MessageId"], "x" * size)
    assert abs(parse_time("at", found["Timestamp"]) - now_ms) < 100
    assert made.replace(":", "%3A") in found["UnsubscribeURL"]


def test_a_rewind_brings_notifications_back(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str
) -> None:
    assert shop.put("/queues/orders", {"rewind_seconds": 600}).status == 201
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    subscribe(sns, arn)
    sns.publish(TopicArn=arn, Message="tea")
    assert only(world, sqs, _rewind(world, shop, sqs, url))["Message"] == "tea"


@pytest.mark.parametrize("kind", [{}, {"ordered": True}])
def test_receivers_dead_letters_are_notifications(
    kind: dict[str, Any], world: World, sns: Any, sqs: Any, shop: Client, arn: str
) -> None:
    assert shop.put("/queues/dead", {}).status == 201
    given = {"dead_letter": {"queue": "dead", "max_receives": 1}, "visibility_timeout_seconds": 1}
    assert shop.put("/queues/orders", {**kind, **given}).status == 201
    assert shop.put("/queues/orders/receivers/audit", {}).status == 201
    subscribe(sns, arn)
    sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    (message,) = shop.receive("orders", receiver="audit")
    assert message["body"] == "tea"
    world.clock.pass_seconds(2)
    assert shop.receive("orders", receiver="audit") == []
    dead = sqs.get_queue_url(QueueName="dead")["QueueUrl"]
    assert only(world, sqs, dead)["Message"] == "tea"


def test_a_function_gets_notifications(world: World, sns: Any, arn: str) -> None:
    invoke = {"function": FUNCTION, "event_source": "aws:sqs"}
    admin = world.client("shop", admin=True)
    assert admin.put("/queues/orders", {"invoke": invoke}).status == 201
    subscribe(sns, arn)
    sns.publish(TopicArn=arn, Message="tea", Subject="s", MessageAttributes=SENT)
    records: list[dict[str, Any]] = []
    world.handle = lambda event: records.extend(event["Records"])
    world.settle()
    (record,) = records
    told = json.loads(record["body"])
    assert (told["Message"], told["Subject"], told["TopicArn"]) == ("tea", "s", arn_in(record, arn))
    assert record["messageAttributes"] == {}
    assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()


def arn_in(record: dict[str, Any], arn: str) -> str:
    """The ARN of a topic, which names the region of its subscriber, not of the function."""
    assert record["awsRegion"] != REGION
    return arn


def test_a_url_gets_notifications(world: World, sns: Any, arn: str) -> None:
    made = subscribe(sns, arn, HOOK)
    sent = sns.publish(TopicArn=arn, Message="tea ☕", Subject="s", MessageAttributes=SENT)
    world.settle()
    ((url, headers, body),) = world.posts
    told = json.loads(body)
    assert url == HOOK
    assert (told["Message"], told["Subject"], told["TopicArn"]) == ("tea ☕", "s", arn)
    assert told["MessageAttributes"]["cups"] == {"Type": "Number", "Value": "2"}
    assert told["MessageId"] == sent["MessageId"] == headers["x-amz-sns-message-id"]
    assert headers["Content-Type"] == "text/plain; charset=UTF-8"
    assert headers["x-amz-sns-message-type"] == "Notification"
    assert headers["x-amz-sns-topic-arn"] == arn
    assert headers["x-amz-sns-subscription-arn"] == made
    assert headers["webhook-signature"]
    change(sns, made, "RawMessageDelivery", "true")
    sns.publish(TopicArn=arn, Message="raw")
    world.settle()
    _, headers, body = world.posts[-1]
    assert (body, headers["x-amz-sns-rawdelivery"]) == (b"raw", "true")


@pytest.mark.parametrize("raw", ["false", "true"])
def test_a_post_has_the_trace_context_of_its_message(
    world: World, sns: Any, arn: str, raw: str
) -> None:
    subscribe(sns, arn, HOOK, RawMessageDelivery=raw)
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    given = {"traceparent": {"DataType": "String", "StringValue": parent}}
    sns.publish(TopicArn=arn, Message="tea", MessageAttributes=given)
    world.settle()

    ((_, headers, _),) = world.posts

    assert headers["traceparent"] == parent


def test_a_urls_dead_letter_is_a_notification(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str
) -> None:
    dead = make_queue(sqs, "dead")
    redrive = json.dumps({"deadLetterTargetArn": QUEUE.replace("orders", "dead")})
    made = subscribe(sns, arn, HOOK, RedrivePolicy=redrive)
    name = shop.get("/topics/drinks/subscriptions").json["subscriptions"][0]["name"]
    path = f"/topics/drinks/subscriptions/{name}"
    assert shop.patch(path, {"retry": {"policy": "custom", "waits": [1]}}).status == 200
    world.endpoint = lambda url: "status 500"
    sns.publish(TopicArn=arn, Message="tea")
    for _ in range(4):
        world.settle()
        world.clock.pass_seconds(60)
        world.run("sweep")
    found = only(world, sqs, dead)
    assert (found["Message"], found["TopicArn"]) == ("tea", arn)
    assert made.replace(":", "%3A") in found["UnsubscribeURL"]


def test_raw_delivery_is_turned_on_and_off(
    world: World, sns: Any, sqs: Any, arn: str, url: str
) -> None:
    made = subscribe(sns, arn)

    def bodies(value: str) -> list[str]:
        change(sns, made, "RawMessageDelivery", value)
        assert shown(sns, made)["RawMessageDelivery"] == value
        sns.publish(TopicArn=arn, Message=f"raw {value}")
        return [each["Body"] for each in receive(world, sqs, url)]

    assert bodies("true") == ["raw true"]
    (body,) = bodies("false")
    assert json.loads(body)["Message"] == "raw false"


def test_a_queue_subscribed_natively_too_gets_a_message_once(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str, url: str
) -> None:
    natively = {"protocol": "queue", "endpoint": "orders"}
    assert shop.put("/topics/drinks/subscriptions/mine", natively).status == 201
    subscribe(sns, arn, FilterPolicy='{"cups": ["2"]}')
    entries = [
        {"Id": "a", "Message": "one"},
        {"Id": "b", "Message": "two", "MessageAttributes": {"cups": {**SENT["cups"]}}},
    ]
    sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
    sns.publish(TopicArn=arn, Message="three")
    found = [json.loads(each["Body"])["Message"] for each in receive(world, sqs, url)]
    assert sorted(found) == ["one", "three", "two"]


@pytest.mark.long
def test_an_answer_counts_the_size_of_notifications(
    world: World, sns: Any, sqs: Any, arn: str, url: str
) -> None:
    subscribe(sns, arn)
    for _ in range(10):
        sns.publish(TopicArn=arn, Message='"' * 260_000)
    found = [receive(world, sqs, url) for _ in range(6)]
    counts = [len(each) for each in found]
    assert sum(counts) == 10
    assert max(counts) < 10
    for each in (message for page in found for message in page):
        assert json.loads(each["Body"])["Message"] == '"' * 260_000


def test_it_is_billed_as_native_calls(
    world: World, sns: Any, sqs: Any, shop: Client, arn: str
) -> None:
    for queue, topic in (("orders", "drinks"), ("plain", "foods")):
        assert shop.put(f"/queues/{queue}", {"partitions": 1}).status == 201
        shop.put(f"/topics/{topic}", {"partitions": 1})
    subscribe(sns, arn)
    copy = {"protocol": "queue", "endpoint": "plain"}
    assert shop.put("/topics/foods/subscriptions/copy", copy).status == 201
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    native_message = {"messages": [{"body": "tea"}]}
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(3):  # then caches are warm
        ours = [
            world.units(lambda: shop.post("/topics/foods/messages", native_message)),
            world.units(world.settle),
            world.units(partial(_take_natively, shop, "plain")),
        ]
        theirs = [
            world.units(lambda: sns.publish(TopicArn=arn, Message="tea")),
            world.units(world.settle),
            world.units(partial(_take, world, sqs, url)),
        ]
    assert [write for write, _ in theirs] == [write for write, _ in ours]
    assert sum(read for _, read in theirs) <= sum(read for _, read in ours) + 0.5


def _take_natively(shop: Client, queue: str) -> None:
    (message,) = shop.receive(queue, 1)
    shop.post(f"/queues/{queue}/messages/delete", {"receipts": [message["receipt"]]})


def _take(world: World, sqs: Any, url: str) -> None:
    (message,) = receive(world, sqs, url, 1)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
