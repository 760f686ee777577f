"""Subscriptions that filter by the body: at the publish, and where messages are read later."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from tests.service.buckets import Bucket, give_bucket
from tests.service.conftest import Message, sweep
from tests.service.half import Producers
from tests.service.topics import TestTopic, log_bodies

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, World

DEAR = {"body_policy": {"item": {"price": [{"numeric": [">=", 100]}]}}}


def body(price: int, size: int = 0) -> str:
    return json.dumps({"item": {"price": price}, "text": "a" * size})


def texts(messages: Sequence[Message]) -> list[str]:
    return sorted(each["body"] for each in messages)


@pytest.fixture(params=[0, 20_000], ids=["small", "in an object"])
def size(request: pytest.FixtureRequest, world: World) -> int:
    """Characters beside what is filtered by: many, so that messages are in the bucket."""
    if request.param:
        give_bucket(world, 1)
    return int(request.param)


def test_a_publish_decides_by_the_body(topic: TestTopic, size: int) -> None:
    group = topic.subscribe("group", filter=DEAR)
    other = topic.subscribe("other", filter={**DEAR, "sql": "kind = 'a'"})
    topic.publish(body(250, size), body(50, size), "no JSON", attributes={"kind": "a"})
    topic.publish(body(100, size))
    assert texts(group.receive()) == sorted([body(250, size), body(100, size)])
    assert texts(other.receive()) == [body(250, size)]


def test_a_group_starting_earlier_gets_passing_messages(
    world: World, topic: TestTopic, size: int
) -> None:
    topic.subscribe("first")
    topic.publish(body(250, size), body(50, size))
    world.clock.pass_seconds(10)
    group = topic.subscribe("group", filter=DEAR, start="earliest")
    world.settle()
    topic.publish(body(100, size), body(99, size))
    assert texts(group.receive()) == sorted([body(250, size), body(100, size)])


def test_a_rewound_group_gets_messages_passed_at_the_publish(
    world: World, topic: TestTopic, size: int
) -> None:
    group = topic.subscribe("group", filter=DEAR)
    topic.publish(body(250, size), body(50, size))
    assert len(group.receive_all()) == 1
    world.clock.pass_seconds(10)
    assert topic.client.patch(group.path, {"filter": {"sql": "n > 1"}}).status == 200
    since = format_time(world.clock.now_ms() - 60_000)
    assert topic.client.post(f"{group.path}/rewind", {"to": since}).status == 202
    world.settle()
    assert texts(group.receive()) == [body(250, size)]


def test_a_broadcasting_reader_reads_passing_messages(
    world: World, topic: TestTopic, size: int
) -> None:
    topic.subscribe("group")
    reader = topic.subscribe("reader", mode="broadcasting", filter=DEAR)
    topic.publish(body(250, size), body(50, size))
    world.clock.pass_seconds(60)
    assert log_bodies(reader.log()) == [body(250, size)]


def test_a_half_message_is_decided_at_its_commit(topic: TestTopic, size: int) -> None:
    group = topic.subscribe("group", filter=DEAR)
    producers = Producers(topic)
    dear, cheap = producers.commit(producers.prepare(body(250, size), body(50, size)))
    assert (dear["matched"], cheap["matched"]) == (1, 0)
    assert texts(group.receive()) == [body(250, size)]


def test_a_match_names_the_member_stopping_a_body(alice: Client, topic: TestTopic) -> None:
    given = {"messages": [{"body": body(50)}, {"body": body(500)}, {"body": "x"}], "filter": DEAR}
    reply = alice.post(f"{topic.path}/match", given)
    assert [each["passes"] for each in reply.json["messages"]] == [False, True, False]
    told = [each.get("why_not") for each in reply.json["messages"]]
    assert told == [
        "body_policy: no condition holds of item", None, "the body is no JSON object",
    ]  # fmt: skip


def test_a_refusing_bucket_loses_nothing(world: World, topic: TestTopic) -> None:
    bucket: Bucket = give_bucket(world, 1)
    topic.subscribe("first")
    topic.publish(body(250, 20_000))
    world.clock.pass_seconds(10)
    bucket.refused.add("get")
    group = topic.subscribe("group", filter=DEAR, start="earliest")
    world.settle()
    bucket.refused.clear()
    for _ in range(3):
        sweep(world, after_seconds=120)
    assert texts(group.receive()) == [body(250, 20_000)]


def test_an_older_release_refuses_to_use_such_a_subscription(
    world: World, topic: TestTopic
) -> None:
    group = topic.subscribe("group", filter=DEAR)
    documents = [item["document"]["S"] for item in world.items("directory") if "document" in item]
    (held,) = [text for text in documents if '"name":"group"' in text]
    assert '"format":2' in held
    assert topic.client.patch(group.path, {"filter": None}).status == 200
    documents = [item["document"]["S"] for item in world.items("directory") if "document" in item]
    assert not [text for text in documents if '"format"' in text]
