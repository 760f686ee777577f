"""Ageing of priorities: who has waited long enough goes before what is higher."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, bodies, sweep
from tests.service.test_looking_up import read_units
from tests.service.test_priorities import send
from tests.service.test_rates_by_group import environment

from cirrusmq.model.priority import Rank, level_prefix
from cirrusmq.receiving.ageing import MAX_PARTITIONS, AgeMemory
from cirrusmq.receiving.heads.memory import HeadMemory
from cirrusmq_local.testing import World

LEVEL_1, LEVEL_2 = level_prefix(1), level_prefix(2)


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", priorities=4, ageing_seconds=60)


class TestOrder:
    @pytest.mark.parametrize(
        ("sent", "order"),
        [
            *(([(1, seconds), (4, 0)], ["4", "1"]) for seconds in (0, 59, 119, 179)),
            *(([(1, seconds), (4, 0)], ["1", "4"]) for seconds in (181, 900)),
            # The higher one waits too.
            ([(1, 100), (4, 1_000)], ["4", "1"]),
            # Active for 220, 120, 70 and 0 s: as much as levels 4.7, 4, 4.2 and 4.
            ([(1, 100), (2, 50), (3, 70), (4, 0)], ["1", "3", "2", "4"]),
        ],
        ids=str,
    )
    def test_a_level_counts_one_higher_for_each_ageing(
        self, world: World, queue: TestQueue, sent: list[tuple[int, int]], order: list[str]
    ) -> None:
        """`sent`: priorities, and the seconds that pass behind each."""
        for priority, seconds in sent:
            send(queue, priority)
            world.clock.pass_seconds(seconds)

        assert [bodies(queue.receive(1))[0] for _ in sent] == order

    def test_only_old_enough_messages_go_before(self, world: World, queue: TestQueue) -> None:
        for number in range(12):
            queue.send(f"old {number}", priority=1)
        world.clock.pass_seconds(200)
        for number in range(30):
            queue.send(f"new {number}", priority=1)
        send(queue, 4, 4)

        received = [body for _ in range(20) for body in bodies(queue.receive(4))]

        assert {each.split(" ")[0] for each in received[:12]} == {"old"}
        assert received[12:14] == ["4", "4"]
        assert len(received) == 44

    @pytest.mark.few(1)
    @pytest.mark.parametrize(
        ("sent", "limit"),
        [
            (1, 1),
            (4, 4),
            pytest.param(16, 16, marks=pytest.mark.long),
            pytest.param(2, 1, marks=pytest.mark.long),
            pytest.param(6, 4, marks=pytest.mark.long),
        ],
    )
    def test_it_is_not_passed_by_far_later_messages(
        self, world: World, queue: TestQueue, sent: int, limit: int
    ) -> None:
        """A message waits for those that were sent within 180 s after it, and for no others."""
        low = send(queue, 1)[0]["id"]
        passed = seconds = 0
        while seconds < 500:
            for _ in range(sent):
                queue.send("high", priority=4)
            held = queue.receive(limit)
            if low in [each["id"] for each in held]:
                break
            assert {each["body"] for each in held} == {"high"}
            passed += len(held)
            queue.delete(*held)
            world.clock.pass_seconds(1)
            seconds += 1
        assert abs(passed - 180 * sent) <= 2 * max(sent, limit)

    def test_receivers_of_one_head_take_the_oldest_of_a_level(
        self, world: World, queue: TestQueue
    ) -> None:
        """A later one in its place would pass lower ones that are older than itself by age."""
        for _ in range(14):
            queue.send("x", priority=4)
            world.clock.pass_seconds(20)
        (pk,) = {item["pk"]["S"] for item in world.items() if item["pk"]["S"].startswith("Q#")}
        world.core.memory(HeadMemory).contend(pk, world.core.now_ms())

        sent = [queue.receive(1)[0]["sent_at"] for _ in range(14)]

        assert sent == sorted(sent)

    def test_another_environments_receives_are_seen(self, world: World, queue: TestQueue) -> None:
        """It took the old one: who has known of it does not pass what is higher."""
        send(queue, 1, 1)
        world.clock.pass_seconds(300)
        send(queue, 4, 1, 1)
        knowing: dict[type, Any] = {}
        with environment(world, knowing):
            assert bodies(queue.receive(1)) == ["1"]
        with environment(world, {}):
            assert bodies(queue.receive(1)) == ["1"]
        with environment(world, knowing):
            assert [bodies(queue.receive(1)) for _ in range(3)] == [["4"], ["1"], ["1"]]

    def test_held_messages_in_front_do_not_hide_it(self, world: World, queue: TestQueue) -> None:
        for number in range(40):
            queue.send(f"held {number}", priority=1)
        assert len(queue.receive_all(visibility_timeout_seconds=3_000)) == 40
        queue.send("waits", priority=1)
        world.clock.pass_seconds(200)
        send(queue, 4)
        assert bodies(queue.receive(1)) == ["waits"]

    def test_an_ended_lease_begins_a_wait(self, world: World, queue: TestQueue) -> None:
        send(queue, 1)
        queue.receive(1, visibility_timeout_seconds=1_000)
        world.clock.pass_seconds(1_001)
        send(queue, 4)
        assert bodies(queue.receive(1)) == ["4"]

    def test_failures_in_front_do_not_hide_waiting_messages(
        self, world: World, queue: TestQueue
    ) -> None:
        """The leases of 30 earlier messages of its level ended just now."""
        for number in range(30):
            queue.send(f"fails {number}", priority=1)
            world.clock.pass_seconds(0.01)
        queue.send("waits", priority=1)
        held = [queue.receive(1, visibility_timeout_seconds=200)[0]["body"] for _ in range(30)]
        assert "waits" not in held
        world.clock.pass_seconds(201)
        send(queue, 4, 4)
        assert bodies(queue.receive(1)) == ["waits"]
        assert bodies(queue.receive(1)) == ["4"]

    def test_receivers_and_functions_age_too(self, world: World, make_queue: MakeQueue) -> None:
        got: list[str] = []
        queue = make_queue("orders", priorities=4, ageing_seconds=60)
        queue.add_receiver("audit")
        send(queue, 1)
        world.settle()
        world.clock.pass_seconds(200)
        send(queue, 4)
        world.settle()
        assert bodies(queue.receive(1, receiver="audit")) == ["1"]
        world.handle = lambda event: got.extend(each["body"] for each in event["Records"])
        assert queue.patch(invoke={"function": "handler", "batch": 1}).status == 200
        sweep(world, after_seconds=60)
        assert got == ["1", "4"]

    def test_without_it_nothing_ages(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue("strict", priorities=4)
        send(queue, 1)
        world.clock.pass_seconds(100_000)
        send(queue, 4)
        assert bodies(queue.receive(1)) == ["4"]
        assert AgeMemory not in world.core.memories


class TestContract:
    def test_it_is_changed_and_taken_away(self, queue: TestQueue) -> None:
        assert queue.show()["ageing_seconds"] == 60
        assert queue.patch(ageing_seconds=10).json["ageing_seconds"] == 10
        assert queue.patch(ageing_seconds=None).json["ageing_seconds"] is None


class TestCosts:
    def test_all_levels_are_looked_through_once_a_second(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        units = []
        for name, given in (("strict", {}), ("aged", {"ageing_seconds": 60})):
            queue = make_queue(name, priorities=16, **given)
            for priority in range(1, 17):
                for _ in range(5):
                    queue.send("x", priority=priority)
            path = f"/queues/{name}/messages/receive"

            def look(path: str = path, queue: TestQueue = queue) -> Any:
                return queue.client.post(path, {"max": 1, "wait_seconds": 0})

            look()
            first = read_units(world, look)[1]
            world.clock.pass_seconds(2)
            look_attributes = read_units(world, look)[1]
            units.append((first, look_attributes))
        (strict, strict_later), (aged, aged_later) = units
        assert aged == strict
        # Half a unit for each of 16 levels, and for the end.
        assert aged_later - strict_later == 8.5


def test_an_environment_remembers_a_bounded_number_of_partitions() -> None:
    ages = AgeMemory()
    for number in range(2 * MAX_PARTITIONS):
        ages.note_all(f"Q#{number}#0", 5, {LEVEL_1: 3})
    assert len(ages._seen) == MAX_PARTITIONS
    fresh = Rank(LEVEL_2, 100_000)
    assert ages.older("Q#0#0", fresh, 10_000) == []
    assert ages.older(f"Q#{2 * MAX_PARTITIONS - 1}#0", fresh, 10_000) == [Rank(LEVEL_1, 3)]


def test_ranks_compare_by_age_and_level() -> None:
    low, high = Rank(LEVEL_1, 1_000), Rank(LEVEL_2, 61_000)
    assert low.served_ms(60_000) == high.served_ms(60_000)
    assert low.old_enough_ms(high, 60_000) == 1_000
    ages = AgeMemory()
    ages.note_all("Q", 0, {low.prefix: 1_000, high.prefix: 61_000})
    assert ages.older("Q", high, 60_000) == [low]
    assert ages.older("Q", Rank(high.prefix, 60_999), 60_000) == []
    assert ages.older("Q", low, 60_000) == []
