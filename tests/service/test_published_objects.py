"""Large publishes: the log record names an object, and every kind of subscription reads it."""

from __future__ import annotations

import json
import logging
import random
from typing import Any

import pytest
from tests.service.buckets import Bucket, give_bucket
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_costs import b64
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.base.errors import Unavailable
from cirrusmq.storage.parcels import LOG
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq_local.testing import Client, World

_chance = random.Random(2)


def large(count: int = 1) -> list[dict[str, Any]]:
    """Messages that cannot be packed into less."""
    return [{"body_base64": b64(_chance.randbytes(15_000 + n))} for n in range(max(count, 2))]


def publish(topic: TestTopic, messages: list[dict[str, Any]], **fields: Any) -> list[str]:
    """Publish and fan out; answers the messages' ids."""
    topic.client.world.clock.pass_seconds(0.001)
    reply = topic.try_publish(messages, **fields)
    assert reply.status == 201, reply.text
    topic.client.world.settle()
    return [entry["id"] for entry in reply.json["messages"]]


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [each["body_base64"] for each in messages]


def records(world: World, owner: str) -> list[dict[str, Any]]:
    return [item for item in world.items() if item["pk"]["S"].startswith(f"{LOG}#{owner}#")]


def test_the_record_has_no_bodies_and_every_reader_has_them(
    world: World, topic: TestTopic, make_queue: MakeQueue, bucket: Bucket
) -> None:
    queue = make_queue()
    group = topic.subscribe("group")
    ordered = topic.subscribe("ordered", ordered=True)
    topic.subscribe("copy", "queue", endpoint="orders")
    topic.subscribe("hook", "http")
    eyes = topic.subscribe("eyes", mode="broadcasting")
    messages = large(3)
    sent = publish(topic, messages)

    (record,) = records(world, topic.shown["id"])
    assert item_bytes(record) < UNIT_BYTES
    assert len(bucket.keys) == 1
    assert bodies(group.receive()) == bodies(messages)
    held = ordered.receive_all()
    assert sorted(bodies(held)) == sorted(bodies(messages))
    assert all("group" not in each for each in held)
    assert bodies(queue.receive()) == bodies(messages)
    posted = [json.loads(body)["msgBody"] for _, _, body in world.posts]
    assert posted == bodies(messages)
    world.clock.pass_seconds(5)
    assert bodies(eyes.log()["messages"]) == bodies(messages)
    assert {each["state"] for each in topic.trace(sent[1]).values()} == {"delivered", "pending"}


def test_a_filter_takes_messages_of_it(world: World, topic: TestTopic, bucket: Bucket) -> None:
    topic.subscribe("all")
    tagged = topic.subscribe("tagged", filter={"tags": ["a"]})
    eyes = topic.subscribe("eyes", mode="broadcasting", filter={"tags": ["a"]})
    priced = topic.subscribe("priced", filter={"sql": "price > 10"})
    messages = large(3)
    messages[1]["tags"] = ["a"]
    messages[2]["attributes"] = {"price": "11"}
    publish(topic, messages)
    assert bodies(tagged.receive()) == bodies(messages[1:2])
    assert bodies(priced.receive()) == bodies(messages[2:])
    world.clock.pass_seconds(5)
    gets = len(bucket.calls)
    assert bodies(eyes.log()["messages"]) == bodies(messages[1:2])
    publish(topic, large(2))
    world.clock.pass_seconds(5)
    assert bodies(eyes.log()["messages"]) == bodies(messages[1:2])
    assert bucket.calls[gets:] == ["get", "put", "get"]  # none for what is not selected


@pytest.mark.parametrize("attributes", [{"ordered": True}, {"rewind_seconds": 60}])
@pytest.mark.parametrize("selected", [None, {"tags": ["a"]}])
def test_queues_in_need_of_a_send_get_a_reference(
    world: World,
    topic: TestTopic,
    make_queue: MakeQueue,
    bucket: Bucket,
    attributes: dict[str, Any],
    selected: dict[str, Any] | None,
) -> None:
    queue = make_queue(**attributes)
    queue.add_receiver("audit")
    filters = {"filter": selected} if selected else {}
    topic.subscribe("copy", "queue", endpoint="orders", **filters)
    messages = large(3)
    messages[0]["tags"] = messages[2]["tags"] = ["a"]
    expected = [messages[0], messages[2]] if selected else messages
    ids = publish(topic, messages)
    for receiver in ("default", "audit"):
        held = queue.receive_all(receiver=receiver)
        assert sorted(bodies(held)) == sorted(bodies(expected))
        if "ordered" in attributes:
            assert {each["group"] for each in held} <= set(ids)
    assert bucket.calls.count("put") == 1
    owned = [item for item in world.items() if item["pk"]["S"].startswith(f"{LOG}#")]
    assert all("b" not in item for item in owned)


def test_a_message_with_a_group_of_its_own_goes_back_to_it(
    topic: TestTopic, make_queue: MakeQueue, dead: TestQueue, bucket: Bucket
) -> None:
    """Its object has no group; an unordered dead-letter queue between does not lose it."""
    queue = make_queue(ordered=True, dead_letter={"queue": "dead", "max_receives": 9})
    topic.subscribe("copy", "queue", endpoint="orders")
    messages = large(2)
    ids = publish(topic, messages)
    queue.act("dead-letter", *queue.receive_all())
    assert {each["group"] for each in dead.peek()} == set(ids)
    assert dead.run("redrive")["done"] == 2
    held = queue.receive_all()
    assert sorted(bodies(held)) == sorted(bodies(messages))
    assert {each["group"] for each in held} == set(ids)


def test_a_late_fan_out_has_the_object_live_as_long_as_the_queues_messages(
    world: World, topic: TestTopic, make_queue: MakeQueue, bucket: Bucket
) -> None:
    retention_seconds = 431_000
    queue = make_queue(ordered=True, message_retention_seconds=retention_seconds)
    topic.subscribe("copy", "queue", endpoint="orders")
    messages = large(2)
    assert topic.try_publish(messages).status == 201
    world.clock.pass_seconds(86_000)
    world.settle()
    world.clock.pass_seconds(retention_seconds - 10)
    assert sorted(bodies(queue.receive_all())) == sorted(bodies(messages))
    assert bucket.calls.count("copy") >= 1


def test_the_object_lives_as_long_as_the_longest_delivery(
    world: World, topic: TestTopic, make_queue: MakeQueue, bucket: Bucket
) -> None:
    queue = make_queue(message_retention_seconds=1_296_000)
    topic.subscribe("group")
    topic.subscribe("copy", "queue", endpoint="orders")
    messages = large(2)
    publish(topic, messages)
    assert [key[:3] for key in bucket.keys] == ["d16"]
    world.clock.pass_seconds(1_296_000 - 1)
    assert bodies(queue.receive()) == bodies(messages)


@pytest.mark.parametrize("later", [0, 5])
def test_a_repeated_publish_is_stored_once(
    world: World, topic: TestTopic, group: TestSubscription, bucket: Bucket, later: int
) -> None:
    """Where no try is known after a while, it is settled under another id."""
    messages, attempt = large(2), f"01M7Q5CQG0{7:016d}"
    world.clock.pass_seconds(later)
    first = topic.try_publish(messages, attempt=attempt)
    again = topic.try_publish(messages, attempt=attempt)
    assert first.json == again.json
    world.settle()
    assert bodies(group.receive()) == bodies(messages)
    assert group.receive() == []


def test_if_the_bucket_refuses_the_record_has_the_bodies(
    topic: TestTopic, group: TestSubscription, bucket: Bucket
) -> None:
    bucket.refused = {"put"}
    messages = large(2)
    publish(topic, messages)
    assert bucket.keys == []
    assert bodies(group.receive()) == bodies(messages)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_the_log_shows_messages_in_objects_and_others_in_order(
    topic: TestTopic, bucket: Bucket, limit: int
) -> None:
    topic.subscribe("group")
    expected = []
    for number in range(4):
        messages = large(2)
        publish(topic, messages)
        expected += bodies(messages)
        if number % 2:
            topic.publish(f"small {number}")
            expected.append(f"small {number}")
    topic.client.world.clock.pass_seconds(5)
    shown: list[str] = []
    page: dict[str, Any] = {"messages": [{}], "cursor": None}
    while page["messages"]:
        after = {"after": page["cursor"]} if page["cursor"] else {}
        page = topic.log(limit=limit, **after)
        shown += [each.get("body") or each["body_base64"] for each in page["messages"]]
        assert len(page["messages"]) <= limit
    assert shown == expected


def test_readers_of_the_log_are_told_to_come_again_while_the_bucket_refuses(
    world: World, topic: TestTopic, bucket: Bucket
) -> None:
    topic.subscribe("group")
    messages = large(2)
    publish(topic, messages)
    world.clock.pass_seconds(5)
    bucket.refused = {"get"}
    reply = topic.client.get(f"{topic.path}/messages")
    assert (reply.status, reply.code) == (503, "Unavailable")
    bucket.refused = set()
    assert bodies(topic.log()["messages"]) == bodies(messages)


def test_posts_wait_while_the_bucket_refuses(
    world: World, topic: TestTopic, bucket: Bucket
) -> None:
    topic.subscribe("hook", "http")
    bucket.refused = {"get", "range"}
    messages = large(2)
    with pytest.raises(Unavailable):  # of the function that posts, which is run again
        publish(topic, messages)
    assert world.posts == []
    bucket.refused = set()
    world.clock.pass_seconds(60)  # the lease of the one that failed is over
    topic.publish("x")
    posted = [json.loads(body)["msgBody"] for _, _, body in world.posts]
    assert sorted(posted) == sorted([*bodies(messages), "x"])


def test_a_reader_of_the_log_passes_over_a_missing_object_and_it_is_told(
    world: World, topic: TestTopic, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    topic.subscribe("group")
    publish(topic, large(2))
    bucket.lose()
    topic.publish("x")
    world.clock.pass_seconds(5)
    with caplog.at_level(logging.ERROR):
        assert [each["body"] for each in topic.log()["messages"]] == ["x"]
    assert "is missing or is none" in caplog.text


def test_usage_of_a_publish_is_the_same_as_without_the_bucket(world: World, alice: Client) -> None:
    told = []
    for name, least in (("plain", 0), ("object", 1)):
        give_bucket(world, least)
        topic = TestTopic(alice, name)
        group = topic.subscribe("group")
        publish(topic, [{"body": "a" * 9_000}, {"body": "é" * 4_000, "tags": ["t"]}])
        group.delete(*group.receive())
        world.settle()
        told.append(
            sorted(
                str(
                    {
                        key: value
                        for key, value in record["M"].items()
                        if key not in ("resource", "id")
                    }
                )
                for item in world.items("usage")
                for record in item.get("records", {"L": []})["L"]
                if name in record["M"]["resource"]["S"]
            )
        )
    assert told[0] == told[1]
    assert told[0]
