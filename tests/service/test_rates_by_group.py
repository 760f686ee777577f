"""Rates by group of a fair queue: no group gets more than its rate, and the others get theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_clock_skew import SkewedClock
from tests.service.test_fair_queues import fill, groups
from tests.service.test_looking_up import read_units
from tests.service.test_rates_of_queues import next_second, received

from cirrusmq_local.testing import World


@contextmanager
def environment(world: World, memories: dict[type, Any], seconds: float = 0) -> Iterator[None]:
    """Receives are answered by an environment with a memory and a clock of its own."""
    core = world.core
    world.core = replace(core, clock=SkewedClock(world.clock, seconds), memories=memories)
    try:
        yield
    finally:
        world.core = core


def rate_items(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items("usage") if item["pk"]["S"].startswith("T#rate#")]


def receive_all(queue: TestQueue) -> Counter[str | None]:
    """Receive until an answer is empty."""
    found: Counter[str | None] = Counter()
    while got := queue.receive(wait_seconds=0):
        found.update(groups(got))
    return found


@pytest.fixture
def queue(make_queue: MakeQueue, world: World) -> TestQueue:
    made = make_queue("orders", fair=True, partitions=1, rate=5)
    next_second(world)
    return made


class TestGroups:
    def test_a_group_gets_its_rate_in_each_second(self, world: World, queue: TestQueue) -> None:
        fill(queue, "loud", 32)
        fill(queue, "red", 3)

        seconds = []
        for _ in range(3):
            next_second(world)
            seconds.append(receive_all(queue))

        assert seconds[0] == {"loud": 5, "red": 3}
        assert seconds[1:] == [{"loud": 5}, {"loud": 5}]

    @pytest.mark.parametrize("limit", [1, 4, 16])
    def test_a_receive_goes_on_to_other_groups(
        self, world: World, queue: TestQueue, limit: int
    ) -> None:
        fill(queue, "loud", 64)
        next_second(world)
        for _ in range(5):
            queue.receive(1, wait_seconds=0)
        for group in ("red", "blue"):
            fill(queue, group, 2)

        assert receive_all(queue) == {"red": 2, "blue": 2}

    def test_full_groups_are_an_empty_answer_and_not_throttled(
        self, world: World, queue: TestQueue
    ) -> None:
        fill(queue, "loud", 16)
        next_second(world)
        assert receive_all(queue) == {"loud": 5}
        path = f"{queue.path}/messages/receive"
        reply = queue.client.post(path, {"max": 16, "wait_seconds": 0})
        assert (reply.status, reply.json["messages"]) == (200, [])

    def test_a_wait_goes_on_into_the_next_second(self, world: World, queue: TestQueue) -> None:
        fill(queue, "loud", 16)
        next_second(world)
        assert receive_all(queue) == {"loud": 5}
        second = world.clock.now_ms() // 1_000
        assert queue.receive(1, wait_seconds=5)
        assert world.clock.now_ms() // 1_000 == second + 1

    def test_messages_without_a_group_are_a_group(self, world: World, queue: TestQueue) -> None:
        queue.send(*["x"] * 16)
        next_second(world)
        assert receive_all(queue) == {None: 5}

    def test_a_receive_of_the_group_respects_it(self, world: World, queue: TestQueue) -> None:
        fill(queue, "loud", 16)
        fill(queue, "red", 16)
        next_second(world)
        counts = [received(queue, 3, group="loud") for _ in range(4)]
        assert counts == [3, 2, 0, 0]
        assert received(queue, 16, group="red") == 5

    def test_receivers_have_it_for_themselves(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("audit")
        fill(queue, "loud", 16)
        world.settle()
        next_second(world)
        counts = [received(queue, 16, receiver="audit"), received(queue), received(queue)]
        assert counts == [5, 5, 0]

    def test_it_holds_beside_the_rate_of_the_queue(self, world: World, queue: TestQueue) -> None:
        assert queue.patch(receive_rate=7, rate=4).status == 200
        world.clock.pass_seconds(5)
        fill(queue, "loud", 16)
        fill(queue, "red", 16)
        next_second(world)
        got = Counter(groups(queue.receive(16, wait_seconds=0)))
        assert sorted(got.values()) == [3, 4]
        assert received(queue) == 0

    def test_it_holds_beside_max_in_flight(self, world: World, queue: TestQueue) -> None:
        assert queue.patch(max_in_flight=7).status == 200
        world.clock.pass_seconds(5)
        fill(queue, "loud", 32)
        counts = []
        for _ in range(3):
            next_second(world)
            counts.append(receive_all(queue)["loud"])
        assert counts == [5, 2, 0]

    def test_it_is_taken_away(self, world: World, queue: TestQueue) -> None:
        fill(queue, "loud", 32)
        assert queue.patch(rate=None).json["rate"] is None
        world.clock.pass_seconds(5)
        assert receive_all(queue) == {"loud": 32}


class TestEnvironments:
    @pytest.mark.parametrize("ahead", [0.0, 0.7, 1.999, -1.999])
    def test_they_share_it_whatever_their_clocks(
        self, world: World, make_queue: MakeQueue, ahead: float
    ) -> None:
        queue = make_queue("orders", fair=True, partitions=1, rate=4)
        fill(queue, "loud", 160)
        next_second(world)
        memories: list[dict[type, Any]] = [{}, {}]
        taken = 0
        for _ in range(40):
            for memory, skew in zip(memories, (0.0, ahead), strict=True):
                with environment(world, memory, skew):
                    taken += len(queue.receive(1, wait_seconds=0))
            world.clock.pass_seconds(0.1)

        # Four seconds pass, and the clock that is ahead begins one of its own first.
        assert 4 * 3 <= taken <= 4 * 5

    def test_a_group_full_elsewhere_is_full_here(self, world: World, queue: TestQueue) -> None:
        fill(queue, "loud", 32)
        fill(queue, "red", 1)
        next_second(world)
        with environment(world, {}):
            assert receive_all(queue) == {"loud": 5, "red": 1}
        with environment(world, {}):
            assert receive_all(queue) == {}

    def test_a_lost_claim_takes_nothing(self, world: World, queue: TestQueue) -> None:
        """Two read the same messages; the loser's part of the rate is for its next claim."""
        fill(queue, "loud", 1)
        next_second(world)
        loser: dict[type, Any] = {}
        write = world.core.store.write
        raced: list[dict[str, Any]] = []

        def race(call: str, request: dict[str, Any]) -> Any:
            if call == "UpdateItem" and request["Key"]["pk"]["S"].startswith("Q#") and not raced:
                raced.append(request)
                with environment(world, {}):
                    assert len(queue.receive(1, wait_seconds=0)) == 1
            return write(call, request)

        with environment(world, loser), pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(world.core.store), "write", lambda _, *given: race(*given))
            assert queue.receive(1, wait_seconds=0) == []
        assert raced
        fill(queue, "loud", 8)
        with environment(world, loser):
            assert receive_all(queue) == {"loud": 4}


class TestDeadLetters:
    def test_dead_lettered_or_moved_messages_take_nothing(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        make_queue("dead")
        letters = {"queue": "dead", "max_receives": 1}
        queue = make_queue("orders", fair=True, partitions=1, rate=2, dead_letter=letters)
        fill(queue, "loud", 4)
        next_second(world)
        queue.give_back(*queue.receive(16, wait_seconds=0))
        next_second(world)

        assert receive_all(queue) == {"loud": 2}
        world.settle()
        assert queue.client.get("/queues/dead").json["counts"]["active"] == 2


class TestContract:
    def test_it_is_shown(self, queue: TestQueue, make_queue: MakeQueue) -> None:
        assert queue.show()["rate"] == 5
        assert make_queue("other").show()["rate"] is None


class TestCosts:
    def test_a_claim_of_a_group_costs_one_unit_more(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        units = []
        for name, attributes in (("free", {}), ("rated", {"rate": 100})):
            queue = make_queue(name, fair=True, partitions=1, **attributes)
            fill(queue, "loud", 64)
            next_second(world)
            queue.receive(1, wait_seconds=0)
            units.append(world.units(lambda: queue.receive(4, wait_seconds=0))[0])  # noqa: B023
        assert units[1] == units[0] + 1

    def test_a_long_full_group_is_passed_without_reading_it(
        self, world: World, queue: TestQueue
    ) -> None:
        for _ in range(20):
            fill(queue, "loud", 16)
        next_second(world)
        receive_all(queue)
        path = f"{queue.path}/messages/receive"
        look = partial(queue.client.post, path, {"max": 16, "wait_seconds": 0})
        reply, reads = read_units(world, look)
        assert reply.json["messages"] == []
        assert reads <= 1.5
        assert world.units(look)[0] == 0

    def test_many_full_groups_hide_no_other_one(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", fair=True, partitions=1, rate=1)
        for number in range(60):
            for _ in range(6):
                queue.send("x" * 100, group=f"full {number}")
        next_second(world)
        world.clock.pass_seconds(0.001)
        for _ in range(400):
            if not queue.receive(1, wait_seconds=0):
                break
        queue.send("new", group="new")
        second = world.clock.now_ms() // 1_000
        found = [group for _ in range(12) for group in groups(queue.receive(1, wait_seconds=0))]
        assert world.clock.now_ms() // 1_000 == second
        assert found == ["new"]

    def test_a_fair_queue_without_it_reads_and_writes_nothing_for_it(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", fair=True, max_in_flight=4)
        fill(queue, "loud", 16)
        queue.receive_all()
        assert rate_items(world) == []
