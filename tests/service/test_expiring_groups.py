"""A pull group's message that would expire while retries remain moves to its dead-letter queue."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import TestQueue
from tests.service.faults import Throttled
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, World

DAY = 86_400
WAITS = {"policy": "custom", "waits": [100, 100]}


def sweep(world: World) -> None:
    """A minute passes, and the functions that the sweep invokes are run."""
    world.clock.pass_seconds(60)
    world.settle()
    world.run("sweep")
    world.settle()


def fail(world: World, group: TestSubscription, seconds: float, step: float) -> int:
    """Receive and give back all for so long; how many deliveries that made."""
    delivered = 0
    for _ in range(round(seconds / step)):
        held = group.receive()
        delivered += len(held)
        if held:
            group.give_back(*held)
        world.clock.pass_seconds(step)
    return delivered


@pytest.mark.long
def test_http_unordered_reaches_its_dead_letter_queue(
    world: World, alice: Client, topic: TestTopic
) -> None:
    group = topic.subscribe("group", retry={"policy": "http_unordered"})
    topic.publish("x")

    assert 280 <= fail(world, group, DAY - 150, 100) <= 289
    for _ in range(2):
        sweep(world)

    (letter,) = TestQueue(alice, f"dlq-{group.id}").receive()
    assert (letter["body"], letter["dead_letter"]["reason"]) == ("x", "expired")
    assert letter["dead_letter"]["receive_count"] >= 280


def pass_to_end(world: World, published_ms: int, seconds: float) -> None:
    """Let time pass until so many seconds before the end of a message's life."""
    end_ms = published_ms + DAY * 1000
    world.clock.pass_seconds((end_ms - world.clock.now_ms()) / 1000 - seconds)


def last_minutes(world: World, published_ms: int, minutes: int = 6) -> None:
    """Let time pass to the end of a message's life, with the sweeps of its last minutes."""
    pass_to_end(world, published_ms, 60 * minutes)
    for _ in range(minutes + 2):
        sweep(world)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "retry",
    [
        {"policy": "custom", "waits": [43_200, 43_200]},
        {"policy": "custom", "waits": [30] * 200},
        pytest.param(
            {"policy": "custom", "waits": [43_200] * 9, "jitter": 0.5}, marks=pytest.mark.long
        ),
        {"policy": "unordered", "max_retries": 1_000},
        {"policy": "exponential_decay"},
    ],
)
@pytest.mark.parametrize(("comes_back", "received_again"), [(True, True), (False, False)])
def test_a_message_of_gone_consumers_is_not_lost_in_silence(
    world: World,
    topic: TestTopic,
    dead: TestQueue,
    retry: dict[str, Any],
    comes_back: bool,
    received_again: bool,
) -> None:
    group = topic.subscribe("group", retry=retry, dead_letter_queue="dead")
    published_ms = world.clock.now_ms()
    topic.publish("x")
    held = group.receive(visibility_timeout_seconds=20)
    if comes_back:
        group.give_back(*held)
    sweep(world)
    if received_again:
        world.clock.pass_seconds(43_300)
        group.receive(visibility_timeout_seconds=20)
        world.clock.pass_seconds(21)
        group.receive(visibility_timeout_seconds=20)  # which re-keys what waits for long
        sweep(world)

    last_minutes(world, published_ms)

    assert [each["body"] for each in dead.receive_all()] == ["x"]
    assert group.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 0}


def test_an_unreceived_message_can_be_received_to_its_end(
    world: World, topic: TestTopic, dead: TestQueue
) -> None:
    group = topic.subscribe("group", dead_letter_queue="dead")
    published_ms = world.clock.now_ms()
    topic.publish("x")
    sweep(world)
    pass_to_end(world, published_ms, 100)
    sweep(world)

    assert [each["body"] for each in group.receive()] == ["x"]
    assert dead.counts() == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("alive", [True, False])
def test_a_message_behind_an_endless_retry_is_not_lost(
    world: World, topic: TestTopic, dead: TestQueue, alive: bool
) -> None:
    retry = {"policy": "ordered", "interval_seconds": 30}
    group = topic.subscribe("group", ordered=True, retry=retry, dead_letter_queue="dead")
    published_ms = world.clock.now_ms()
    topic.publish("sick", group="g")
    topic.publish("1", "2", group="g")
    topic.publish("other", group="h")
    group.delete(*(each for each in group.receive() if each["body"] == "other"))
    sweep(world)
    world.clock.pass_seconds(40_000)
    (held,) = group.receive(1)
    assert held["body"] == "sick"
    group.give_back(held)
    if alive:
        world.clock.pass_seconds(40_000)
        fail(world, group, 6_000, 60)

    last_minutes(world, published_ms)

    assert sorted(each["body"] for each in dead.receive_all()) == ["1", "2", "sick"]
    assert group.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 0}


@pytest.mark.parametrize("ordered", [False, True])
def test_a_group_with_an_unreceived_head_is_left_alone(
    world: World, topic: TestTopic, dead: TestQueue, ordered: bool
) -> None:
    topic.subscribe("group", ordered=ordered, dead_letter_queue="dead")
    published_ms = world.clock.now_ms()
    topic.publish("1", "2", group="g")
    sweep(world)

    last_minutes(world, published_ms)

    assert dead.counts() == {}


@pytest.mark.parametrize("handed_over", [True, False])
def test_an_own_dead_letter_queue_is_made_by_its_first_mover(
    world: World, alice: Client, topic: TestTopic, handed_over: bool
) -> None:
    group = topic.subscribe("group", retry={"policy": "http_unordered"})
    published_ms = world.clock.now_ms()
    topic.publish("x")
    group.give_back(*group.receive())
    sweep(world)

    if handed_over:
        pass_to_end(world, published_ms, 90)
        for partition in range(8):
            world.run("replay", {"aged": {"resource": group.id, "partition": partition}})
    else:
        last_minutes(world, published_ms)

    assert TestQueue(alice, f"dlq-{group.id}").counts() == {"active": 1}


class TestLastMinute:
    """What was received is not lost where its last lease ends when no sweep comes any more.

    24 h - 2 min      the sweep: it is held
                      the lease ends ── 24 h: it expires ── the sweep, late ── TTL
    """

    def at_end(self, world: World, published_ms: int, seconds: float) -> None:
        """Let time pass until so many seconds before the end of a message's life, TTL included."""
        pass_to_end(world, published_ms, seconds)
        world.engine.remove_expired()

    def hold_to_the_end(self, world: World, topic: TestTopic, group: TestSubscription) -> int:
        """Publish a message and hold it to the end of its life; answers when it began."""
        published_ms = world.clock.now_ms()
        topic.publish("x")
        world.settle()
        self.at_end(world, published_ms, 100)
        group.receive(visibility_timeout_seconds=3_600)
        return published_ms

    @pytest.mark.few(4)
    @pytest.mark.parametrize("lease_seconds", [70, 3_600])
    @pytest.mark.parametrize("late_seconds", [1, 400, 3_500])
    @pytest.mark.parametrize("ordered", [False, True])
    def test_held_messages_move_to_the_dead_letter_queue(
        self,
        world: World,
        topic: TestTopic,
        dead: TestQueue,
        lease_seconds: int,
        late_seconds: int,
        *,
        ordered: bool,
    ) -> None:
        group = topic.subscribe("group", dead_letter_queue="dead", ordered=ordered)
        published_ms = world.clock.now_ms()
        for number in range(3):
            topic.publish(f"m{number}", "x" * 5_000, group=f"g{number}")
        sweep(world)
        self.at_end(world, published_ms, 100)
        held = group.receive_all(visibility_timeout_seconds=lease_seconds)
        assert len(held) == 6
        group.delete(held[0])
        world.run("sweep")
        assert dead.counts() == {}

        self.at_end(world, published_ms, -late_seconds)
        assert group.receive() == []
        world.run("sweep")
        world.settle()

        letters = dead.receive_all()
        assert sorted(each["id"] for each in letters) == sorted(each["id"] for each in held[1:])
        assert {each["dead_letter"]["reason"] for each in letters} == {"expired"}
        for _ in range(3):
            sweep(world)
        assert sum(dead.counts().values()) == 5

    @pytest.mark.parametrize("delay_seconds", [0, 30, 3_000])
    def test_given_back_messages_move_as_well(
        self, world: World, topic: TestTopic, dead: TestQueue, delay_seconds: int
    ) -> None:
        group = topic.subscribe("group", dead_letter_queue="dead")
        published_ms = world.clock.now_ms()
        topic.publish("a", "b")
        sweep(world)
        self.at_end(world, published_ms, 200)
        group.give_back(*group.receive(), delay_seconds=delay_seconds)

        self.at_end(world, published_ms, -300)
        for _ in range(2):
            sweep(world)

        assert sorted(each["body"] for each in dead.receive_all()) == ["a", "b"]

    def test_a_store_refusing_the_move_is_asked_again(
        self, world: World, topic: TestTopic, dead: TestQueue
    ) -> None:
        group = topic.subscribe("group", dead_letter_queue="dead")
        self.hold_to_the_end(world, topic, group)
        refusing = Throttled(world, lambda operation, _: operation == "TransactWriteItems")
        for _ in range(10):
            sweep(world)
        refusing.end()

        sweep(world)

        assert [each["body"] for each in dead.receive_all()] == ["x"]

    def test_the_messages_of_a_former_source_move_as_well(
        self, world: World, alice: Client, topic: TestTopic, dead: TestQueue
    ) -> None:
        group = topic.subscribe("group", dead_letter_queue="dead")
        published_ms = self.hold_to_the_end(world, topic, group)
        to = format_time(world.clock.now_ms() - 10_000)
        assert alice.post(f"{group.path}/rewind", {"to": to}).status == 202
        world.settle()

        self.at_end(world, published_ms, -60)
        for _ in range(2):
            sweep(world)

        assert [each["body"] for each in dead.receive_all()] == ["x"]

    @pytest.mark.long
    def test_a_sweep_reads_expired_messages_once(
        self, world: World, topic: TestTopic, dead: TestQueue
    ) -> None:
        topic.subscribe("group", dead_letter_queue="dead")
        for _ in range(300):
            topic.publish("x" * 500)
        world.settle()
        world.clock.pass_seconds(DAY + 600)  # in the cloud TTL may be late by days

        first = world.units(lambda: world.run("sweep"))
        world.clock.pass_seconds(60)
        again = world.units(lambda: world.run("sweep"))

        assert first[1] - again[1] > 15


class TestWaits:
    """A wait counts from the end of the message's lease."""

    @pytest.fixture(params=["group", "queue", "ordered queue"])
    def source(self, request: pytest.FixtureRequest, alice: Client, topic: TestTopic) -> TestQueue:
        """A source in which a message waits for its consumer."""
        if request.param == "group":
            group = topic.subscribe("group", retry=WAITS)
            topic.publish("x")
            return group
        kind = {"ordered": True} if request.param == "ordered queue" else {}
        assert alice.put("/queues/letters", kind).status == 201
        dead_letter = {"queue": "letters", "max_receives": 9}
        alice.put("/queues/orders", {"retry": WAITS, "dead_letter": dead_letter, **kind})
        queue = TestQueue(alice, "orders")
        queue.send("x", group="g")
        return queue

    @pytest.mark.parametrize("ends", ["by a give-back", "by itself", "after a hold"])
    def test_each_wait_begins_with_its_end(
        self, world: World, source: TestQueue, ends: str
    ) -> None:
        for _ in range(2):
            (held,) = source.receive(visibility_timeout_seconds=300)
            world.clock.pass_seconds(200)
            if ends == "by a give-back":
                source.give_back(held)
            elif ends == "after a hold":
                source.hold(held, 300)
                world.clock.pass_seconds(300)
            else:
                world.clock.pass_seconds(100)
            world.clock.pass_seconds(99.9)
            assert source.receive() == []
            world.clock.pass_seconds(0.1)
        assert len(source.receive()) == 1
