"""The cost and the reach of a sweep: idle resources, one that fails, messages above their age."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.crashes import before_each_call, slow_store
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.maintenance.sweep import sweep
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq_local.testing import World

A = TypeVar("A")
B = TypeVar("B")
BY_AGE = {"queue": "dead", "max_age_seconds": 300}


def read_units(world: World, call: Callable[[], object]) -> float:
    return world.units(call)[1]


class TestIdleResources:
    """They are not read at all, however many there are."""

    @pytest.mark.few(1)
    @pytest.mark.parametrize("used", [False, True])
    def test_a_sweep_costs_the_same_whatever_the_number_of_idle_queues(
        self, world: World, make_queue: MakeQueue, dead: TestQueue, used: bool
    ) -> None:
        busy = make_queue("busy")
        units = []
        for count in (0, 20, 100):
            for number in range(count):
                queue = make_queue(f"idle-{count}-{number}", dead_letter=BY_AGE)
                if used:
                    queue.send("x")
                    queue.delete(*queue.receive())
            world.settle()
            world.clock.pass_seconds(7_200)
            busy.send("x")
            world.settle()
            world.run("sweep")  # writes the hour's gauges, and forgets those that became idle
            units.append(read_units(world, lambda: world.run("sweep")))

        assert max(units) - min(units) <= 4  # of the busy queue, which holds more each time
        assert max(units) < 60 + delivery_items.SHARDS  # which are listed, a unit for each key

    def test_idle_subscriptions_cost_no_look_into_their_partitions(
        self, world: World, topic: TestTopic
    ) -> None:
        units, pulls = [], list[TestSubscription]()
        for count in (1, 20):
            for number in range(count):
                topic.subscribe(f"web-{count}-{number}", "http")
            pulls += [topic.subscribe(f"pull-{count}-{number}") for number in range(count)]
            topic.publish("x")
            for pull in pulls:
                pull.delete(*pull.receive())
            world.settle()
            world.clock.pass_seconds(7_200)
            world.run("sweep")
            units.append(read_units(world, lambda: world.run("sweep")))

        assert units[1] - units[0] <= 4

    def test_an_idle_queue_is_swept_as_soon_as_it_is_used_again(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(dead_letter=BY_AGE)
        world.clock.pass_seconds(100_000)
        world.run("sweep")
        queue.send("x")
        world.clock.pass_seconds(301)

        world.run("sweep")  # before the meter has counted it

        assert dead.counts() == {"active": 1}

    def test_a_change_during_its_counters_removal_is_not_forgotten(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from cirrusmq.storage.counters import read_kept

        queue = make_queue()
        queue.send("x")
        queue.delete(*queue.receive())
        world.settle()
        world.clock.pass_seconds(7_200)
        world.run("sweep")  # moves its rates to their day
        sent: list[str] = []

        def send_before(operation: str, request: object) -> None:
            if operation == "DeleteItem" and "changed" in str(request) and not sent:
                sent.append("y")
                queue.send("y")
                world.run_stream("meter")

        before_each_call(world, monkeypatch, send_before)
        world.run("sweep")

        assert sent
        assert read_kept(world.core, queue.show()["id"]).messages == 1


class TestFailures:
    def test_one_failing_queue_stops_none_of_the_others(
        self, world: World, make_queue: MakeQueue, dead: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queues = [make_queue(f"q{number}", dead_letter=BY_AGE) for number in range(5)]
        for queue in queues:
            queue.send("x")
        world.clock.pass_seconds(301)
        broken = str(queues[2].show()["id"])

        def fail(_: str, request: object) -> None:
            if f"#{broken}#" in str(request):
                raise ValueError("a fault of the code")

        before_each_call(world, monkeypatch, fail)
        world.run("sweep")
        monkeypatch.undo()

        assert dead.counts() == {"active": 4}

    @pytest.mark.parametrize(
        "part", ["operations.running", "delivery_items.read_all", "write_gauges"]
    )
    def test_one_failing_part_stops_none_of_the_others_and_is_behind(
        self,
        world: World,
        make_queue: MakeQueue,
        dead: TestQueue,
        monkeypatch: pytest.MonkeyPatch,
        part: str,
    ) -> None:
        make_queue(dead_letter=BY_AGE).send("x")
        assert sweep(world.core, 50_000).behind_ms == 0
        world.clock.pass_seconds(301)

        def fail(*_: Any) -> Any:
            raise ValueError("a fault of the code")

        monkeypatch.setattr(f"cirrusmq.maintenance.sweep.{part}", fail)
        if part == "write_gauges":  # an hour's are written in that hour alone
            world.settle()
            world.clock.pass_seconds(3_600)
        before_ms = sweep(world.core, 50_000).behind_ms
        world.clock.pass_seconds(60)

        assert sweep(world.core, 50_000).behind_ms == before_ms + 60_000
        assert dead.counts() == {"active": 1}

    def test_a_failing_schedule_stops_none_of_the_others(
        self, world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = [topic.subscribe(f"web{number}", "http").shown for number in range(4)]
        topic.try_publish([{"body": "x"}])
        world.run_stream("fan_out")
        world.invoked.clear()  # every event is lost
        world.settle()

        from cirrusmq.push import delivery

        resume = delivery.resume_if_stuck

        def fail(core: Any, schedule: Any, **given: Any) -> bool:
            if schedule.subscription_id == shown[1]["id"]:
                raise ValueError("a fault of the code")
            return resume(core, schedule, **given)

        monkeypatch.setattr(delivery, "resume_if_stuck", fail)
        world.run("sweep")
        world.settle()

        assert len(world.posts) == 3


class TestTime:
    @pytest.mark.long
    def test_the_oldest_message_is_found_wherever_it_is_though_a_sweep_sees_a_part(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The last shard was never seen: 90,000 s were reported as 1 s."""
        queues = [make_queue(f"q{number}") for number in range(60)]
        last = max(queues, key=lambda queue: _place(queue))
        last.send("old")
        world.settle()
        world.clock.pass_seconds(90_000)
        for queue in queues:
            queue.send("x")
        world.settle()
        slow_store(world, monkeypatch, 1)
        ages = [sweep(world.core, 50_000).oldest_age_ms // 1000 for _ in range(40)]

        assert max(ages) >= 90_000
        found = next(n for n, age in enumerate(ages) if age >= 90_000)
        assert all(age >= 90_000 for age in ages[found:])

    def test_a_sweep_ends_in_its_time(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(60):
            make_queue(f"q{number}").send("x")
        world.settle()
        slow_store(world, monkeypatch, 0.1)
        begun_ms = world.clock.now_ms()
        sweep(world.core, 20_000)

        assert world.clock.now_ms() - begun_ms < 20_000 + 16 * 1_000


def _place(queue: TestQueue) -> tuple[int, str]:
    from cirrusmq.storage.counters import counter_key

    pk, sk = counter_key(str(queue.show()["id"]))
    return int(pk.partition("#")[2]), sk


class SideBySide:
    """`map` as threads do it, on a clock that is set: calls of 16 take as long as the longest."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self, call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
        clock, listed, answers = self._world.clock, list(values), list[B]()
        for first in range(0, len(listed), 16):
            begun_ms = latest_ms = clock.now_ms()
            for value in listed[first : first + 16]:
                clock._now_ms = begun_ms
                answers.append(call(value))
                latest_ms = max(latest_ms, clock.now_ms())
            clock._now_ms = latest_ms
        return answers


class TestByAge:
    COUNT = 800
    CALL_SECONDS = 0.008
    """Of the store, in the cloud."""

    @pytest.mark.long
    def test_a_thousand_messages_a_second_move_within_two_minutes(
        self, world: World, make_queue: MakeQueue, dead: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of each partition 250 a second: the four of a queue are handed over side by side."""
        queue = make_queue(dead_letter=BY_AGE, partitions=1)
        for number in range(self.COUNT // 16):
            queue.try_send([{"body": f"{number}-{n}"} for n in range(16)])
        for message in queue.receive_all(visibility_timeout_seconds=1):
            assert message
        world.settle()
        world.clock.pass_seconds(301)
        side = SideBySide(world)
        world.core = replace(world.core, in_parallel=side, in_own_pool=side)
        slow_store(world, monkeypatch, self.CALL_SECONDS)
        begun_ms = world.clock.now_ms()
        world.run("sweep")
        world.settle()
        monkeypatch.undo()

        assert dead.counts() == {"active": self.COUNT}
        assert (world.clock.now_ms() - begun_ms) / 1000 < self.COUNT / 250

    def test_young_messages_are_not_read(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(dead_letter=BY_AGE, partitions=1)
        queue.send("old")
        world.clock.pass_seconds(301)
        world.settle()
        world.run("sweep")
        units = []
        for count in (10, 100, 1_000):
            for _ in range(count // 10):
                queue.send(*("x" * 10 for _ in range(10)))
            world.settle()
            world.clock.pass_seconds(70)
            world.run("sweep")  # which passes them once
            units.append(read_units(world, lambda: world.run("sweep")))

        assert max(units) - min(units) <= 5

    @pytest.mark.parametrize("delay", [50, 200, 1_000])
    def test_a_delayed_message_is_given_up_within_two_minutes_of_its_time(
        self, world: World, make_queue: MakeQueue, dead: TestQueue, delay: int
    ) -> None:
        queue = make_queue(dead_letter=BY_AGE)
        queue.send("x", delay_seconds=delay)
        due = max(delay, 300)
        given_up = 0
        for minute in range(1, 40):
            world.clock.pass_seconds(60)
            world.settle()
            world.run("sweep")
            if dead.counts():
                given_up = 60 * minute
                break

        assert due <= given_up <= due + 120

    def test_a_lowered_limit_holds_for_a_message_waiting_for_a_retry(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(dead_letter=BY_AGE | {"max_age_seconds": 40_000})
        queue.send("x")
        queue.give_back(*queue.receive(), delay_seconds=30_000)
        world.settle()
        world.run("sweep")
        world.clock.pass_seconds(1_000)
        queue.patch(dead_letter=BY_AGE)

        world.run("sweep")

        assert dead.counts() == {"active": 1}

    def test_a_raised_limit_holds_for_it_too(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(dead_letter=BY_AGE)
        queue.send("x")
        world.clock.pass_seconds(290)
        queue.give_back(*queue.receive(), delay_seconds=5_000)
        world.settle()
        world.run("sweep")
        queue.patch(dead_letter=BY_AGE | {"max_age_seconds": 2_000})
        for _ in range(28):
            world.clock.pass_seconds(60)
            world.run("sweep")
        assert dead.counts() == {}

        for _ in range(3):
            world.clock.pass_seconds(60)
            world.run("sweep")

        assert dead.counts() == {"active": 1}

    def test_a_noted_held_one_is_given_up_after_its_lease(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(dead_letter=BY_AGE)
        queue.send("x")
        queue.give_back(*queue.receive(), delay_seconds=200)
        world.clock.pass_seconds(200)
        assert queue.receive(visibility_timeout_seconds=500)
        for _ in range(8):
            world.clock.pass_seconds(60)
            world.run("sweep")
        assert dead.counts() == {}
        world.clock.pass_seconds(60)

        world.run("sweep")

        assert dead.counts() == {"active": 1}
        world.run("sweep")
        assert not [i for i in world.items() if i["pk"]["S"][0] == "A" and i["sk"]["S"] != "~"]

    def test_two_at_once_move_each_message_once(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(dead_letter=BY_AGE, partitions=2)
        for number in range(20):
            queue.send(str(number))
        world.clock.pass_seconds(301)
        event = {"aged": {"resource": queue.show()["id"], "partition": 0}}
        for _ in range(2):
            world.run("replay", event)
        world.run("sweep")

        assert sorted(each["body"] for each in dead.receive_all()) == sorted(map(str, range(20)))
