"""One invocation of push for all subscriptions of a batch: each as if it had one of its own."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.faults import Throttled
from tests.service.topic_crashes import Crashes
from tests.service.topics import Schedules, TestTopic, hold_to_be_fast

from cirrusmq.base.errors import Unavailable
from cirrusmq.wiring.adapters import ThreadWindow, in_own_pool
from cirrusmq_local.testing import Client, Subscriber, World

COUNT = 20
NAMES = [f"web{number:02d}" for number in range(COUNT)]


def subscribe(topic: TestTopic, names: list[str] = NAMES, **fields: Any) -> None:
    for name in names:
        topic.subscribe(name, "http", endpoint=f"http://127.0.0.1:9/{name}", **fields)


def fan_out(topic: TestTopic, *bodies: str) -> list[dict[str, Any]]:
    """Publish and fan out; answers the events that push is invoked with."""
    world = topic.client.world
    world.clock.pass_seconds(0.001)
    assert topic.try_publish([{"body": body} for body in bodies]).status == 201
    world.run_stream("fan_out")
    return [event for role, event in world.invoked if role == "push"]


def names_in(event: dict[str, Any]) -> list[str]:
    """The subscriptions that an invocation is told of."""
    return [each["subscription"] for each in (event["deliver"], *event.get("others", ()))]


def of_path(url: str) -> str:
    return url.rpartition("/")[2]


def posted(world: World) -> Counter[str]:
    """Posts by their URL."""
    return Counter(of_path(url) for url, _, _ in world.posts)


def test_large_messages_share_no_more_of_an_invocation_than_its_memory_holds(
    alice: Client,
) -> None:
    topic = TestTopic(alice, max_message_bytes=4_194_304)
    subscribe(topic, NAMES[:5])
    events = fan_out(topic, "x" * 3_500_000)
    assert sorted(len(names_in(event)) for event in events) == [1, 2, 2]
    topic.client.world.invoked.clear()
    (event,) = fan_out(topic, "x" * 65_536)
    assert len(names_in(event)) == 5


def test_the_urls_of_a_batch_share_an_invocation_and_cost_no_more_units(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    subscribe(topic)
    topic.publish("warm")
    (event,) = fan_out(topic, "one")
    assert sorted(names_in(event)) == NAMES
    assert world.units(lambda: world.run("push", event)) == (3 * COUNT, COUNT)
    assert all(subscriber.bodies(name) == ["warm", "one"] for name in NAMES)


def test_one_with_much_to_do_has_an_invocation_of_its_own(topic: TestTopic) -> None:
    subscribe(topic, NAMES[:3])
    busy = fan_out(topic, *(str(number) for number in range(16)))
    assert [names_in(event) for event in busy] == [NAMES[:3]]
    topic.client.world.invoked.clear()
    for _ in range(3):
        topic.try_publish([{"body": "x"}] * 16)
    busiest = fan_out(topic, "x")
    assert [names_in(event) for event in busiest] == [[name] for name in NAMES[:3]]


def test_more_windows_than_threads_take_several_invocations(topic: TestTopic) -> None:
    subscribe(topic, NAMES[:7], max_in_flight=256)
    subscribe(topic, NAMES[7:9], retry={"policy": "backoff"}, max_in_flight=256)
    assert [len(names_in(event)) for event in fan_out(topic, "x")] == [2, 2, 2, 3]


def test_a_repeated_event_posts_nothing_again(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    subscribe(topic)
    (event,) = fan_out(topic, "one", "two")
    world.run("push", event)
    world.run("push", event)
    world.settle()
    assert posted(world) == dict.fromkeys(NAMES, 2)


def test_one_of_a_deleted_subscription_is_left_out(world: World, topic: TestTopic) -> None:
    subscribe(topic, NAMES[:3])
    fan_out(topic, "one")
    assert topic.client.delete(f"{topic.path}/subscriptions/{NAMES[1]}").status == 204
    world.settle()
    assert posted(world) == {NAMES[0]: 1, NAMES[2]: 1}


def test_a_failing_one_waits_for_its_retry_and_no_other_does(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    subscribe(topic, NAMES[:3])
    subscriber.answer = lambda delivery: 500 if delivery.path == NAMES[1] else 204
    schedules = Schedules(world)
    topic.publish("one")
    topic.publish("two")
    assert posted(world) == {NAMES[0]: 2, NAMES[1]: 1, NAMES[2]: 2}
    subscriber.answer = lambda delivery: 204
    schedules.run_out()
    assert posted(world) == {NAMES[0]: 2, NAMES[1]: 3, NAMES[2]: 2}
    assert sum(schedules.started.values()) == 1


def test_one_with_an_unwritable_state_fails_the_invocation_when_all_have_ended(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    subscribe(topic, NAMES[:3])
    found = {
        name: topic.client.get(f"{topic.path}/subscriptions/{name}").json for name in NAMES[:3]
    }
    (event,) = fan_out(topic, "one")
    hold_to_be_fast(world)

    def of_one(operation: str, request: Any) -> bool:
        key = request.get("Key", {}).get("sk", {}).get("S")
        return operation == "UpdateItem" and key == found[NAMES[0]]["id"]

    fault = Throttled(world, of_one)
    with pytest.raises(Unavailable):
        world.run("push", event)
    assert posted(world) == {NAMES[1]: 1, NAMES[2]: 1}
    fault.end()
    world.run("push", event)
    assert posted(world) == dict.fromkeys(NAMES[:3], 1)


def test_a_retrying_one_is_tried_for_once_and_read_from_then_on(
    world: World, topic: TestTopic, subscriber: Subscriber
) -> None:
    subscribe(topic, NAMES[:1])
    subscriber.down()
    topic.publish("one")

    def cost() -> tuple[float, float]:
        world.invoked.clear()
        (event,) = fan_out(topic, "more")
        return world.units(lambda: world.run("push", event))

    assert [cost() for _ in range(3)] == [(1, 0), (0, 1), (0, 1)]
    assert posted(world) == {NAMES[0]: 1}


def held(world: World) -> set[str]:
    """The subscriptions whose posts somebody holds."""
    return {item["subscription"]["S"] for item in world.items() if "holder" in item}


class TestHanging:
    def test_a_hanging_one_holds_up_no_other_and_keeps_its_own_lease_alone(
        self, world: World, topic: TestTopic
    ) -> None:
        subscribe(topic, NAMES)
        topic.publish("warm")
        world.core = replace(world.core, window=ThreadWindow, in_own_pool=in_own_pool)
        fan_out(topic, "one")
        others_are_free = []

        def answer(url: str) -> None:
            if of_path(url) != NAMES[0]:
                return
            until = time.monotonic() + 10
            while held(world) != {NAMES[0]} and time.monotonic() < until:
                time.sleep(0.01)
            others_are_free.append(held(world) == {NAMES[0]})

        world.endpoint = answer
        world.settle()
        assert others_are_free == [True]
        assert posted(world) == dict.fromkeys(NAMES, 2)
        assert held(world) == set()

    def test_one_waiting_for_its_rate_holds_up_no_other_and_leaves(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """At 1 a second its six messages take 5 s: the others' are posted in its first wait."""
        subscribe(topic, NAMES[:1], rate=1)
        subscribe(topic, NAMES[1:6])
        hold_to_be_fast(world)
        world.core = replace(world.core, window=ThreadWindow, in_own_pool=in_own_pool)
        (event,) = fan_out(topic, *(str(number) for number in range(6)))
        world.invoked.clear()
        sleep = world.clock.sleep
        others_are_done: list[bool] = []

        def done() -> bool:
            return held(world) == {NAMES[0]} and all(
                posted(world)[name] == 6 for name in NAMES[1:6]
            )

        def wait(seconds: float) -> None:
            until = time.monotonic() + 10
            while not others_are_done and not done() and time.monotonic() < until:
                time.sleep(0.01)
            others_are_done.append(done())
            sleep(seconds)

        monkeypatch.setattr(world.clock, "sleep", wait)
        begun_ms = world.clock.now_ms()
        world.run("push", event)
        assert others_are_done[0]
        assert world.clock.now_ms() - begun_ms <= 2_300
        assert posted(world)[NAMES[0]] == 2
        (told,) = [event["deliver"] for _, event in world.invoked]
        assert (told["subscription"], told["hops"]) == (NAMES[0], 1)
        world.settle()
        assert posted(world) == dict.fromkeys(NAMES[:6], 6)
        times = sorted(each.at_ms for each in subscriber.deliveries if each.path == NAMES[0])
        assert all(after - before >= 1_000 for before, after in pairwise(times))


class TestLeaving:
    def test_a_busy_one_leaves_for_an_invocation_of_its_own(
        self, world: World, topic: TestTopic
    ) -> None:
        subscribe(topic, NAMES[:2], max_in_flight=1)
        hold_to_be_fast(world)
        world.endpoint = lambda url: world.clock.pass_seconds(0.3)
        (event,) = fan_out(topic, *(str(number) for number in range(16)))
        world.invoked.clear()
        world.run("push", event)
        told = [event["deliver"] for _, event in world.invoked]
        assert {each["subscription"]: each["hops"] for each in told} == dict.fromkeys(NAMES[:2], 1)
        before = posted(world)
        assert all(before[name] < 16 for name in NAMES[:2])
        world.settle()
        assert posted(world) == dict.fromkeys(NAMES[:2], 16)

    def test_a_lone_one_does_not_leave(self, world: World, topic: TestTopic) -> None:
        subscribe(topic, NAMES[:1], max_in_flight=1)
        hold_to_be_fast(world)
        world.endpoint = lambda url: world.clock.pass_seconds(0.3)
        (event,) = fan_out(topic, *(str(number) for number in range(16)))
        world.invoked.clear()
        world.run("push", event)
        assert posted(world) == {NAMES[0]: 16}
        assert not world.invoked


@pytest.mark.few(1)
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.long)])
def test_an_invocation_cut_off_anywhere_loses_nothing_of_any(step: int, fast: bool) -> None:
    at = 0
    while True:
        world = World()
        topic = TestTopic(world.client("alice"))
        subscribe(topic, NAMES[:2])
        subscribe(topic, NAMES[2:3], retry={"policy": "backoff"})
        subscriber, schedules = world.subscriber(), Schedules(world, sweeps=True)
        crashes = Crashes(world, "push", at)
        if fast:
            hold_to_be_fast(world)
        topic.publish("one", "two")
        schedules.pass_seconds(1)
        topic.publish("three")
        schedules.pass_seconds(120)
        for name in NAMES[:3]:
            bodies = subscriber.bodies(name)
            assert sorted(set(bodies)) == ["one", "three", "two"], (at, name)
            assert len(bodies) <= 5, (at, name)
            if name == NAMES[2]:
                assert list(dict.fromkeys(bodies)) == ["one", "two", "three"], at
        world.engine.close()
        if crashes.crashed_ms is None:
            break
        at += step
    assert at > 20
