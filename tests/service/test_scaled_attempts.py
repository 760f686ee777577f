"""At a time scale: a client repeats its calls in real time, the service's runs faster."""

from __future__ import annotations

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_repeated_sends import attempt
from tests.service.topics import TestTopic

from cirrusmq_local.testing import ManualClock, Reply, World

SCALE = 600


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(ManualClock, "scale", float(SCALE))
    return world


def pass_real_seconds(world: World, seconds: float) -> None:
    world.clock.pass_seconds(seconds * SCALE)


def send(queue: TestQueue, shown: str) -> Reply:
    return queue.try_send([{"body": "hello"}], attempt=shown)


@pytest.mark.parametrize("seconds", [1, 15, 119])
def test_a_send_repeated_after_real_seconds_is_stored_once(
    world: World, queue: TestQueue, seconds: float
) -> None:
    shown = attempt(world)
    first = send(queue, shown)
    assert first.status == 201
    pass_real_seconds(world, seconds)
    assert send(queue, shown).json == first.json
    assert queue.bodies() == ["hello"]


def test_an_attempt_ends_after_120_real_seconds(world: World, queue: TestQueue) -> None:
    shown = attempt(world)
    pass_real_seconds(world, 120.1)
    refused = send(queue, shown)
    assert (refused.status, refused.json["parameter"]) == (400, "attempt")


def test_a_late_try_is_received_however_short_its_life(world: World, make_queue: MakeQueue) -> None:
    """Its key has the time of its attempt, its life begins when it is stored."""
    queue = make_queue(message_retention_seconds=60)
    shown = attempt(world)
    pass_real_seconds(world, 100)
    assert send(queue, shown).status == 201
    world.clock.pass_seconds(59)
    assert queue.bodies() == ["hello"]


def test_a_message_moved_meanwhile_is_not_stored_again(world: World, queue: TestQueue) -> None:
    shown = attempt(world)
    first = send(queue, shown)
    queue.give_back(*queue.receive(), delay_seconds=3_600)
    pass_real_seconds(world, 10)
    assert queue.consume() == ["hello"]
    assert send(queue, shown).json == first.json
    assert queue.receive() == []


def test_a_receive_is_repeated_after_real_seconds(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(visibility_timeout_seconds=43_200)
    queue.send("hello")
    shown = attempt(world)
    first = queue.receive(attempt=shown)
    assert len(first) == 1
    pass_real_seconds(world, 1)
    assert queue.receive(attempt=shown, repeat=True) == first


def test_a_publish_is_repeated_after_real_seconds(world: World, topic: TestTopic) -> None:
    group, shown = topic.subscribe("all"), attempt(world)
    first = topic.try_publish([{"body": "hello"}], attempt=shown)
    assert first.status == 201, first.text
    pass_real_seconds(world, 1)
    assert topic.try_publish([{"body": "hello"}], attempt=shown).json == first.json
    world.settle()
    assert group.bodies() == ["hello"]
