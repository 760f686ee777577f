"""A stream keeps the order of one partition key alone: the promised orders need no more.

Here each partition key is a shard, and one shard is read to its end before another is begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.topics import TestTopic

from cirrusmq.base import ulid
from cirrusmq_local.testing import Subscriber, World

COUNT = 24


def fan_out_by_shards(world: World, *, latest_first: bool, then: Callable[[], object]) -> int:
    """Fan out what was logged, doing `then` after each shard; answers how many there were."""
    shards: dict[str, list[dict[str, Any]]] = {}
    for each in world.engine.read_stream(world.tables.messages, 0, 10_000):
        pk = each.keys["pk"]["S"]
        if each.event_name == "INSERT" and pk.startswith("L#"):
            shards.setdefault(pk, []).append(each.as_lambda_record())
    for pk in sorted(shards, reverse=latest_first):
        world.run("fan_out", {"Records": shards[pk]})
        then()
    return len(shards)


def push(world: World) -> None:
    while world.invoked:
        role, event = world.invoked.popleft()
        world.run(role, event)


class Consumer:
    """Receives and deletes all there is, each time it is called."""

    def __init__(self, queue: TestQueue, **fields: Any) -> None:
        self._queue = queue
        self._fields = fields
        self.bodies: list[str] = []

    def __call__(self) -> None:
        while messages := self._queue.receive(**self._fields):
            self.bodies += [message["body"] for message in messages]
            self._queue.delete(*messages)


def publish_in_turn(world: World, topic: TestTopic) -> list[str]:
    bodies = [f"{number:02d}" for number in range(COUNT)]
    for body in bodies:
        world.clock.pass_seconds(0.001)
        assert topic.try_publish([{"body": body, "group": "g"}]).status == 201
    return bodies


@pytest.mark.parametrize("latest_first", [False, True])
def test_an_ordered_subscription_gets_a_group_in_order(
    world: World, topic: TestTopic, latest_first: bool
) -> None:
    consumer = Consumer(topic.subscribe("ordered", ordered=True))
    bodies = publish_in_turn(world, topic)
    fan_out_by_shards(world, latest_first=latest_first, then=consumer)
    assert consumer.bodies == bodies


@pytest.mark.parametrize("latest_first", [False, True])
def test_a_url_that_is_promised_order_gets_it(
    world: World, topic: TestTopic, subscriber: Subscriber, latest_first: bool
) -> None:
    topic.subscribe("web", "http", retry={"policy": "backoff"})
    bodies = publish_in_turn(world, topic)
    fan_out_by_shards(world, latest_first=latest_first, then=lambda: push(world))
    assert subscriber.bodies() == bodies


@pytest.mark.parametrize("latest_first", [False, True])
def test_an_ordered_queue_gets_what_is_published_in_order(
    world: World, topic: TestTopic, make_queue: MakeQueue, latest_first: bool
) -> None:
    consumer = Consumer(make_queue("ordered", ordered=True))
    topic.subscribe("to-queue", "queue", endpoint="ordered")
    bodies = publish_in_turn(world, topic)
    fan_out_by_shards(world, latest_first=latest_first, then=consumer)
    assert consumer.bodies == bodies


@pytest.mark.parametrize("latest_first", [False, True])
def test_a_receiver_of_an_ordered_queue_gets_a_group_in_order(
    world: World, make_queue: MakeQueue, latest_first: bool
) -> None:
    queue = make_queue("ordered", ordered=True, partitions=4)
    queue.add_receiver("second")
    bodies = [f"{number:02d}" for number in range(COUNT)]
    for body in bodies:
        assert queue.try_send([{"body": body, "group": "g"}]).status == 201
    consumer = Consumer(queue, receiver="second")
    fan_out_by_shards(world, latest_first=latest_first, then=consumer)
    assert consumer.bodies == bodies


def test_a_topic_without_ordered_readers_spreads_its_log(world: World, topic: TestTopic) -> None:
    topic.subscribe("pull")
    publish_in_turn(world, topic)
    assert fan_out_by_shards(world, latest_first=False, then=world.settle) > 4


def test_a_publish_in_order_that_is_repeated_has_the_same_id(
    world: World, topic: TestTopic
) -> None:
    topic.subscribe("ordered", ordered=True)
    messages = [{"body": "x", "group": "g"}]
    for entropy in range(8):
        attempt = ulid.encode(world.clock.now_ms(), bytes([entropy] * 10))
        first = topic.try_publish(messages, attempt=attempt)
        world.clock.pass_seconds(0.5)
        assert topic.try_publish(messages, attempt=attempt).json == first.json
    assert fan_out_by_shards(world, latest_first=False, then=world.settle) == 1
