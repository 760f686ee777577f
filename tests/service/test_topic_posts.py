"""Posts that a lease must outlast, and leases of a dead process."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import TestQueue, sweep
from tests.service.topic_crashes import Crash
from tests.service.topics import Schedules, TestTopic

from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery import rules as delivery_rules
from cirrusmq_local.stack.recovery import release_posts
from cirrusmq_local.testing import Delivery, Subscriber, World

BACKOFF = {"retry": {"policy": "backoff"}}


def crash(delivery: Delivery) -> int:
    raise Crash


def die_while_posting(topic: TestTopic, subscriber: Subscriber, *bodies: str) -> None:
    subscriber.answer = crash
    with pytest.raises(Crash):
        topic.publish(*bodies)
    subscriber.up()


def test_nothing_passes_a_message_posted_by_a_dead_process_if_order_counts(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    topic.subscribe("web", "http", **BACKOFF)
    die_while_posting(topic, subscriber, "one", "two")
    sweep(world)
    assert subscriber.bodies() == ["one"]
    Schedules(world, sweeps=True).pass_seconds(120)
    assert subscriber.bodies() == ["one", "one", "two"]


@pytest.mark.parametrize("attributes", [{}, BACKOFF])
@pytest.mark.parametrize("seconds", [9.0, 14.0, 28.0, 40.0])
def test_no_post_starts_too_late_for_its_hold(
    world: World,
    topic: TestTopic,
    subscriber: Subscriber,
    attributes: dict[str, Any],
    seconds: float,
) -> None:
    web = topic.subscribe("web", "http", **attributes)
    store, slow = world.core.store, [seconds]
    call, answer = store._call, world.endpoint
    left_ms: list[int] = []

    def dawdle(operation: str, request: dict[str, Any]) -> dict[str, Any]:
        answer = call(operation, request)
        if operation == "UpdateItem" and "held_until = :" in request["UpdateExpression"]:
            world.clock.pass_seconds(slow.pop() if slow else 0)
        return answer

    def endpoint(url: str) -> str | None:
        delivery = delivery_items.read(world.core, web.id)
        assert delivery is not None
        left_ms.append(delivery.held_until_ms - world.clock.now_ms())
        return answer(url)

    store._call = dawdle  # type: ignore[method-assign]
    world.endpoint = endpoint
    topic.publish("one")
    assert not slow
    Schedules(world, sweeps=True).pass_seconds(120)
    assert subscriber.bodies() == ["one"]
    assert min(left_ms) >= delivery_rules.POST_MS


@pytest.mark.parametrize("attributes", [{}, BACKOFF])
def test_posts_of_a_killed_stack_are_free_when_it_starts_again(
    world: World, topic: TestTopic, subscriber: Subscriber, attributes: dict[str, Any]
) -> None:
    web = topic.subscribe("web", "http", **attributes)
    die_while_posting(topic, subscriber, "one", "two")
    sweep(world)
    assert "one" not in subscriber.bodies()[1:]

    release_posts(world.core)

    sweep(world)
    assert sorted(subscriber.bodies()[1:]) == ["one", "two"]
    assert web.show()["counts"]["active"] == 0


@pytest.mark.long
def test_a_push_reads_no_more_for_earlier_deliveries(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    topic.subscribe("web", "http")

    def read_units() -> float:
        return world.units(lambda: topic.publish("x" * 200))[1]

    topic.publish("first")
    first = read_units()
    for _ in range(40):
        topic.publish(*["x" * 200] * 16)
    assert read_units() == first
    assert len(subscriber.bodies()) == 643


@pytest.mark.long
def test_a_message_blocked_all_its_life_becomes_a_dead_letter(
    world: World, topic: TestTopic, subscriber: Subscriber, dead: TestQueue
) -> None:
    web = topic.subscribe("web", "http", dead_letter_queue="dead")
    topic.subscribe("other", "http", endpoint="http://127.0.0.1:9/other")
    subscriber.down()
    schedules = Schedules(world, sweeps=True, sweep_minutes=30)
    bodies = [f"{number:03d}" for number in range(96)]
    for first in range(0, 96, 16):
        topic.publish(*bodies[first : first + 16])
    schedules.pass_seconds(84_000)
    schedules.sweep_ms = 60_000
    schedules.pass_seconds(2_500)
    letters = dead.receive_all()
    assert sorted(letter["body"] for letter in letters) == bodies
    reasons = {letter["dead_letter"]["reason"] for letter in letters}
    assert "expired" in reasons <= {"expired", "retries"}  # the first ones were posted 177 times
    assert web.show()["counts"]["active"] == 0
    # Without a dead-letter queue it is dropped at its expiry.
    assert topic.active() == 0
