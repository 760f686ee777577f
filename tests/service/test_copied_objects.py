"""Large messages that begin a longer life than their object: whoever gives it copies the object."""

from __future__ import annotations

import random

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_costs import b64
from tests.service.topics import Schedules, TestTopic

from cirrusmq_local.testing import World

DAY_SECONDS = 86_400
LONGEST_SECONDS = 15 * DAY_SECONDS
BODY = b64(random.Random(4).randbytes(30_000))


def copies(world: World) -> int:
    return world.bucket.requests().get("CopyObject", 0)


def assert_copied_once(world: World, dead: TestQueue) -> None:
    """The object was copied, and the copy lives to the end of the dead letter's life."""
    assert copies(world) == 1
    world.clock.pass_seconds(LONGEST_SECONDS - 60)
    assert [each["body_base64"] for each in dead.receive()] == [BODY]


def test_the_sweep_copies_the_object_of_a_message_given_up_by_age(
    world: World, make_queue: MakeQueue
) -> None:
    dead = make_queue("dead", message_retention_seconds=LONGEST_SECONDS)
    queue = make_queue(dead_letter={"queue": "dead", "max_age_seconds": 300})
    assert queue.try_send([{"body_base64": BODY}]).status == 201
    world.clock.pass_seconds(301)
    world.run("sweep")
    assert_copied_once(world, dead)


@pytest.mark.parametrize("function", ["push", "push_slow"])
def test_push_copies_the_object_of_a_message_refused_for_good(
    world: World, make_queue: MakeQueue, topic: TestTopic, function: str
) -> None:
    dead = make_queue("dead", message_retention_seconds=LONGEST_SECONDS)
    retry = {"policy": "custom", "waits": [1]}
    topic.subscribe("web", "http", retry=retry, dead_letter_queue="dead")
    world.endpoint = lambda url: "status 500"
    assert topic.try_publish([{"body_base64": BODY}]).status == 201
    world.settle()
    for _ in range(3):
        world.clock.pass_seconds(10)
        for _, state in list(world.executions):
            world.run(function, state)
        world.settle()
    assert_copied_once(world, dead)


def test_call_copies_the_object_of_a_message_failed_for_good(world: World) -> None:
    """A group's first dead letter: the queue for it is made then."""
    topic = TestTopic(world.client("alice", admin=True))
    retry = {"policy": "custom", "waits": [1]}
    group = topic.subscribe("group", invoke={"function": "handler"}, retry=retry)
    world.handle = lambda event: {
        "batchItemFailures": [{"itemIdentifier": each["messageId"]} for each in event["Records"]]
    }
    assert topic.try_publish([{"body_base64": BODY}]).status == 201
    Schedules(world, sweeps=True).pass_seconds(180)
    assert len(world.batches) == 2
    (dead,) = topic.client.receive(f"dlq-{group.id}")
    assert dead["body_base64"] == BODY
    assert copies(world) == 1
