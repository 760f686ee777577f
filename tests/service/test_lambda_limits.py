"""The whole service within Lambda's limits: work over them is lost, but never half done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cirrusmq_lambda import replies
from cirrusmq_local.cloud.invocation import LINKS, TimedOutError
from cirrusmq_local.testing import Subscriber, World

if TYPE_CHECKING:
    from tests.service.conftest import MakeQueue
    from tests.service.topics import TestTopic


def test_an_answer_too_large_for_lambda_is_lost_and_its_messages_stay_claimed(
    make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue(max_message_bytes=262_144, partitions=1)
    for _ in range(16):
        queue.send("語" * 87_000)
    monkeypatch.setattr(replies, "TEXT_ANSWER_BYTES", 100_000_000)
    request = {"max": 16, "wait_seconds": 0}
    reply = queue.client.post(f"{queue.path}/messages/receive", request)
    assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})
    assert queue.counts()["inactive"] > 10


def test_a_too_long_push_is_ended_midway(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    topic.subscribe("hook", protocol="http", endpoint="http://hook.example/hook")

    def slowly(url: str) -> str | None:
        world.clock.pass_seconds(910)
        return None

    world.endpoint = slowly
    with pytest.raises(TimedOutError):
        topic.publish("hello")
    assert len(world.posts) == 1
    world.endpoint = lambda url: None
    world.run("sweep")
    world.settle()
    assert len(world.posts) == 2  # the outcome of the first one was not stored


@pytest.mark.parametrize("may_loop", [False, True])
def test_a_looping_invocation_is_dropped_unless_it_may_loop(
    world: World, monkeypatch: pytest.MonkeyPatch, may_loop: bool
) -> None:
    runs: list[Any] = []

    def again(event: Any, context: Any) -> None:
        runs.append(event)
        if len(runs) < 3 * LINKS:
            world.core.invoke("push", {"deliver": {}})

    name = world._names["push"]
    function, _ = world._handlers[name]
    looping = replace(function, may_loop=may_loop)
    handlers = {**world._handlers, name: (looping, again)}
    monkeypatch.setattr(world, "_handlers", handlers)
    world.core.invoke("push", {"deliver": {}})
    world.settle()
    assert len(runs) == (3 * LINKS if may_loop else LINKS)
    assert world.dropped == ([] if may_loop else [("push", {"deliver": {}})])
