"""Every step of a message's life is taken by a call, and is lawful when it is.

The fixture `world` judges the writes of all tests of this folder; here is one for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.lawful_writes import judge
from tests.service.buckets import give_bucket
from tests.service.conftest import MakeQueue
from tests.service.test_bodies_in_objects import MIN, large
from tests.service.topics import Schedules, TestTopic

from cirrusmq.model.steps import STEPS
from cirrusmq_local.testing import World


class Stage(NamedTuple):
    """What a test has at hand."""

    world: World
    make_queue: MakeQueue
    topic: TestTopic
    schedules: Schedules
    start: str
    """The time at which it began."""


def claimed(stage: Stage) -> None:
    queue = stage.make_queue()
    queue.send("a")
    assert queue.receive()


def unread(stage: Stage) -> None:
    """The object with its body is gone."""
    bucket, queue = give_bucket(stage.world, MIN), stage.make_queue()
    queue.try_send(large())
    bucket.lose()
    assert queue.receive() == []


def unclaimed(stage: Stage) -> None:
    """The bucket refuses to read its body."""
    bucket, queue = give_bucket(stage.world, MIN), stage.make_queue()
    queue.try_send(large())
    bucket.refused = {"get"}
    assert queue.client.post(f"{queue.path}/messages/receive", {"max": 1}).status == 503


def preceded(stage: Stage) -> None:
    admitted(stage)


def admitted(stage: Stage) -> None:
    """The first message of a group comes back, before one that nobody holds."""
    queue = stage.make_queue("orders", ordered=True, partitions=1, rewind_seconds=3_600)
    for body in ("1", "2", "3"):
        queue.send(body, group="g")
        stage.world.clock.pass_seconds(0.1)
    queue.delete(*queue.receive(1))
    queue.receive(1, visibility_timeout_seconds=10)
    queue.run("rewind", to=stage.start)
    stage.world.clock.pass_seconds(11)
    assert [each["body"] for each in queue.receive(1)] == ["1"]


def held(stage: Stage) -> None:
    queue = stage.make_queue()
    queue.send("a")
    queue.hold(queue.receive()[0], 100)


def given_back(stage: Stage) -> None:
    queue = stage.make_queue()
    queue.send("a")
    queue.give_back(*queue.receive())


def deleted(stage: Stage) -> None:
    queue = stage.make_queue()
    queue.send("a", "b")
    queue.delete(queue.receive()[0])


def moved(stage: Stage) -> None:
    stage.make_queue("dead")
    queue = stage.make_queue(dead_letter={"queue": "dead", "max_receives": 9})
    queue.send("a", "b")
    queue.act("dead-letter", queue.receive()[0])


def dropped(stage: Stage) -> None:
    stage.topic.subscribe("web", "http", retry={"policy": "backoff"})
    _publish_to_a_url_that_fails(stage)


def cancelled(stage: Stage) -> None:
    queue = stage.make_queue()
    (sent,) = queue.send("a", delay_seconds=60)
    assert queue.client.delete(f"{queue.path}/messages/{sent['id']}").status in (200, 204)


def reopened(stage: Stage) -> None:
    queue = stage.make_queue(rewind_seconds=3_600)
    queue.send("a", "b")
    queue.delete(queue.receive()[0])
    stage.world.clock.pass_seconds(1)
    assert queue.run("rewind", to=stage.start)["done"] == 1


def kept(stage: Stage) -> None:
    """Its retries are used up, and no queue takes it: the account has one of that name."""
    web = stage.topic.subscribe("web", "http", retry={"policy": "custom", "waits": [1]})
    stage.make_queue(f"dlq-{web.id}", ordered=True)
    _publish_to_a_url_that_fails(stage)


def delivered(stage: Stage) -> None:
    stage.topic.subscribe("web", "http")
    stage.topic.publish("a")
    stage.world.settle()
    assert len(stage.world.posts) == 1


def failed(stage: Stage) -> None:
    stage.topic.subscribe("web", "http")
    stage.world.endpoint = lambda url: "status 500"
    stage.topic.publish("a")
    stage.world.settle()
    assert len(stage.world.posts) == 1


def _publish_to_a_url_that_fails(stage: Stage) -> None:
    stage.world.endpoint = lambda url: "status 500"
    stage.topic.publish("a")
    stage.schedules.run_out()
    assert len(stage.world.posts) > 1


@pytest.mark.parametrize("name", [step.name for step in STEPS])
def test_a_step_is_taken(
    name: str,
    world: World,
    make_queue: MakeQueue,
    topic: TestTopic,
    schedules: Schedules,
    now: Callable[..., str],
) -> None:
    taking: Any = globals()[name]

    taking(Stage(world, make_queue, topic, schedules, now()))

    judged = judge(world)
    assert judged.steps[name]
    assert judged.faults == []
