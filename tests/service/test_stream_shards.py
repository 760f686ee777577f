"""A stream keeps the order of one partition key alone: the promised orders need no more.

Here each partition key is a shard, and one shard is read to its end before another is begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import TestQueue
from tests.service.topics import TestTopic

from cirrusmq.base import ulid
from cirrusmq_local.testing import Client, Subscriber, World

COUNT = 24
READERS = ("group", "queue", "receiver", "url")


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
        self.bodies += self._queue.consume(**self._fields)


def make_reader(alice: Client, kind: str) -> tuple[Callable[[str], None], Callable[[], list[str]]]:
    """What sends a message of a group, and what takes all that a reader has: its bodies so far."""
    if kind == "receiver":
        alice.put("/queues/ordered", {"ordered": True, "partitions": 4})
        queue = TestQueue(alice, "ordered")
        queue.add_receiver("second")
        consumer = Consumer(queue, receiver="second")

        def send(body: str) -> None:
            assert queue.try_send([{"body": body, "group": "g"}]).status == 201

    else:
        topic = TestTopic(alice)
        if kind == "group":
            consumer = Consumer(topic.subscribe("ordered", ordered=True))
        elif kind == "queue":
            alice.put("/queues/ordered", {"ordered": True})
            topic.subscribe("feed", "queue", endpoint="ordered")
            consumer = Consumer(TestQueue(alice, "ordered"))
        else:
            topic.subscribe("web", "http", retry={"policy": "backoff"})

        def send(body: str) -> None:
            assert topic.try_publish([{"body": body, "group": "g"}]).status == 201

    if kind == "url":
        subscriber: Subscriber = alice.world.subscriber()

        def take_posts() -> list[str]:
            push(alice.world)
            return subscriber.bodies()

        return send, take_posts

    def take() -> list[str]:
        consumer()
        return consumer.bodies

    return send, take


@pytest.mark.parametrize("latest_first", [False, True])
@pytest.mark.parametrize("kind", READERS)
def test_an_ordered_reader_gets_a_group_in_order(
    world: World, alice: Client, kind: str, latest_first: bool
) -> None:
    send, take = make_reader(alice, kind)
    bodies = [f"{number:02d}" for number in range(COUNT)]
    for body in bodies:
        world.clock.pass_seconds(0.001)
        send(body)
    fan_out_by_shards(world, latest_first=latest_first, then=take)
    assert take() == bodies


def test_a_topic_without_ordered_readers_spreads_its_log(world: World, topic: TestTopic) -> None:
    topic.subscribe("pull")
    for number in range(COUNT):
        world.clock.pass_seconds(0.001)
        assert topic.try_publish([{"body": str(number), "group": "g"}]).status == 201
    assert fan_out_by_shards(world, latest_first=False, then=world.settle) > 4


def test_a_repeated_publish_in_order_has_the_same_id(world: World, topic: TestTopic) -> None:
    topic.subscribe("ordered", ordered=True)
    messages = [{"body": "x", "group": "g"}]
    for entropy in range(8):
        attempt = ulid.encode(world.clock.now_ms(), bytes([entropy] * 10))
        first = topic.try_publish(messages, attempt=attempt)
        world.clock.pass_seconds(0.5)
        assert topic.try_publish(messages, attempt=attempt).json == first.json
    assert fan_out_by_shards(world, latest_first=False, then=world.settle) == 1
