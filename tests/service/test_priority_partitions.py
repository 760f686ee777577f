"""Priorities over several partitions: what a receive takes, whatever the item of looks says."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, bodies
from tests.service.crashes import before_each_call
from tests.service.test_looking_up import read_units
from tests.service.test_priorities import send
from tests.service.test_rates_by_group import environment
from tests.service.test_receiving import attempt
from tests.service.topic_crashes import Crash

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.priority import Rank, level_prefix
from cirrusmq.receiving import best_levels
from cirrusmq.receiving.best_levels import MAX_SOURCES, BestMemory
from cirrusmq_local.testing import World

PARTITIONS = 4


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", priorities=16, partitions=PARTITIONS)


def partition_of(message: Message, partitions: int = PARTITIONS) -> int:
    send_id = message["id"].removeprefix("Msg-")[:26]  # behind it is the place in its send
    return zlib.crc32(send_id.encode()) % partitions


def send_into(
    queue: TestQueue,
    partition: int,
    priority: int,
    *,
    partitions: int = PARTITIONS,
    delay_seconds: int = 0,
) -> None:
    """Put a message of a priority into one partition; those that came elsewhere are taken back."""
    while True:
        (sent,) = queue.send(f"{priority}", priority=priority, delay_seconds=60)
        path = f"{queue.path}/messages/{sent['id']}"
        if partition_of(sent, partitions) == partition:
            given = {"delay_seconds": delay_seconds}
            assert queue.client.patch(path, given).status == 200
            return
        assert queue.client.delete(path).status == 204


def ones(queue: TestQueue) -> list[int]:
    """Receive one message after the other; returns their priorities."""
    return [int(each) for each in one_by_one(queue)]


def one_by_one(queue: TestQueue) -> Iterator[str]:
    while found := queue.receive(1):
        yield found[0]["body"]


def hints(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if item["pk"]["S"].endswith("#best")]


def put_hint(world: World, **changes: Any) -> None:
    (item,) = hints(world)
    put = {"TableName": world.tables.messages, "Item": {**item, **changes}}
    world.engine.execute("PutItem", put)


class TestOrder:
    @pytest.mark.parametrize("partitions", [2, 4, 16])
    def test_the_highest_come_first_wherever_they_are(
        self, world: World, make_queue: MakeQueue, partitions: int
    ) -> None:
        queue = make_queue(priorities=16, partitions=partitions)
        for number in range(40):
            send(queue, number * 7 % 16 + 1)
        world.clock.pass_seconds(1)

        assert ones(queue) == sorted((n * 7 % 16 + 1 for n in range(40)), reverse=True)

    def test_no_answer_of_several_has_a_lower_one_than_is_elsewhere(
        self, world: World, queue: TestQueue
    ) -> None:
        for number in range(60):
            send(queue, number % 5 + 1)
        left = sorted(number % 5 + 1 for number in range(60))
        while found := [int(body) for body in bodies(queue.receive(16))]:
            for each in found:
                left.remove(each)
            assert not left or min(found) >= left[-1]
            world.clock.pass_seconds(0.1)
        assert left == []

    def test_a_better_one_is_seen_within_a_second(self, world: World, queue: TestQueue) -> None:
        for _ in range(30):
            send_into(queue, 0, 2)
        assert bodies(queue.receive(1)) == ["2"]
        send_into(queue, 3, 9)
        world.clock.pass_seconds(0.81)
        assert bodies(queue.receive(1)) == ["9"]

    def test_a_delayed_one_and_an_ended_lease_are_seen(
        self, world: World, queue: TestQueue
    ) -> None:
        send_into(queue, 1, 16)
        held = queue.receive(1, visibility_timeout_seconds=5)
        send_into(queue, 2, 12, delay_seconds=3)
        for _ in range(20):
            send_into(queue, 0, 1)
        seen = []
        for _ in range(8):
            seen += bodies(queue.receive(1))
            world.clock.pass_seconds(1)
        assert bodies(held) == ["16"]
        assert seen == ["1", "1", "1", "12", "1", "16", "1", "1"]

    def test_a_waiting_receive_takes_the_best_of_the_arrivals(self, make_queue: MakeQueue) -> None:
        queue = make_queue(priorities=4, partitions=16)
        for priority in (1, 2, 4, 3, 1):
            queue.send(f"{priority}", priority=priority, delay_seconds=5)
        assert bodies(queue.receive(1, wait_seconds=20)) == ["4"]

    def test_levels_of_one_call_are_in_its_partition(self, queue: TestQueue) -> None:
        messages = [{"body": f"{n}", "priority": n} for n in (3, 16, 3, 9)]
        assert queue.try_send(messages).status == 201
        assert bodies(queue.receive()) == ["16", "9", "3", "3"]

    def test_receivers_have_the_same_order(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("audit")
        for number in range(20):
            send(queue, number % 4 + 1)
        world.settle()
        found = []
        while got := queue.receive(1, receiver="audit"):
            found += bodies(got)
        assert found == sorted(found, reverse=True)
        assert len(found) == 20

    def test_a_repeat_finds_the_messages_of_its_receive(
        self, world: World, queue: TestQueue
    ) -> None:
        for number in range(40):
            send(queue, number % 4 + 1)
        own = attempt(world)
        first = queue.receive(4, attempt=own)
        again = queue.receive(4, attempt=own, repeat=True)
        assert [each["receipt"] for each in again] == [each["receipt"] for each in first]


class TestAgeing:
    @pytest.fixture
    def queue(self, make_queue: MakeQueue) -> TestQueue:
        return make_queue("orders", priorities=4, partitions=PARTITIONS, ageing_seconds=60)

    @pytest.mark.parametrize(("seconds", "first"), [(170, "4"), (181, "1"), (900, "1")])
    def test_a_level_counts_one_higher_for_each_ageing(
        self, world: World, queue: TestQueue, seconds: float, first: str
    ) -> None:
        send_into(queue, 0, 1)
        world.clock.pass_seconds(seconds)
        send_into(queue, 1, 4)
        assert bodies(queue.receive(1)) == [first]
        assert bodies(queue.receive(1)) == [{"1": "4", "4": "1"}[first]]

    def test_a_partition_with_a_rest_for_the_next_answer_is_not_taken_for_empty(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        """
        partition 0   level 2 of 0 s, level 1 of 50 s and of 65 s: 50 s goes first at 160 s
        partition 1   level 2 of 160 s: not before level 1 of 65 s
        """
        queue = make_queue("aged", priorities=2, partitions=2, ageing_seconds=10)
        send_into(queue, 0, 1, partitions=2)
        world.clock.pass_seconds(60)
        send_into(queue, 0, 2, partitions=2)
        world.clock.pass_seconds(5)
        send_into(queue, 0, 1, partitions=2)
        world.clock.pass_seconds(100)
        assert bodies(queue.receive(16)) == ["1", "2"]

        send_into(queue, 1, 2, partitions=2)
        assert bodies(queue.receive(1)) == ["1"]

    def test_of_a_level_only_old_enough_messages_go_before_a_higher_one_elsewhere(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        """
        partition 0   level 1 of 0 s, which goes first, and of 9 s
        partition 1   level 2 of 14 s, which counts as of 4 s
        """
        queue = make_queue("aged", priorities=2, partitions=2, ageing_seconds=10)
        send_into(queue, 0, 1, partitions=2)
        world.clock.pass_seconds(9)
        send_into(queue, 0, 1, partitions=2)
        world.clock.pass_seconds(5)
        send_into(queue, 1, 2, partitions=2)
        world.clock.pass_seconds(2)

        assert [bodies(queue.receive(16)) for _ in range(4)] == [["1"], ["2"], ["1"], []]

    def test_the_ages_go_with_the_item(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(best_levels, "FIRST_PUT", 1)
        for partition, priority, seconds in ((0, 1, 100), (1, 2, 55), (2, 3, 70), (3, 4, 0)):
            send_into(queue, partition, priority)
            world.clock.pass_seconds(seconds)
        found = []
        for _ in range(4):
            with environment(world, {}):
                found += bodies(queue.receive(1))
        # Active for 225, 125, 70 and 0 s: as much as levels 4.8, 4.1, 4.2 and 4.
        assert found == ["1", "3", "2", "4"]


class TestItem:
    """Receives of environments that know nothing but the item of the last look."""

    @pytest.fixture(autouse=True)
    def looked(self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch) -> None:
        """Level 16 was in partition 2 when somebody looked; it is received, and the rest is low."""
        monkeypatch.setattr(best_levels, "FIRST_PUT", 1)
        for partition in range(PARTITIONS):
            send_into(queue, partition, 1)
            send_into(queue, partition, 2)
        send_into(queue, 2, 16)
        with environment(world, {}):
            assert bodies(queue.receive(1)) == ["16"]

    def received(self, world: World, queue: TestQueue, seconds: float = 0) -> list[str]:
        with environment(world, {}, seconds):
            return bodies(queue.receive(1))

    def test_a_look_is_not_made_again(self, world: World, queue: TestQueue) -> None:
        path = f"{queue.path}/messages/receive"
        with environment(world, {}):
            _, units = read_units(world, lambda: queue.client.post(path, {"max": 1}))
        assert units == 0.5 + 0.5  # the item, and the partition

    def test_an_overstated_level_is_looked_up(self, world: World, queue: TestQueue) -> None:
        """It says 16 in partition 2, where nothing higher than 2 is left."""
        for _ in range(PARTITIONS):
            assert self.received(world, queue) == ["2"]
        assert [self.received(world, queue) for _ in range(5)] == [["1"]] * 4 + [[]]

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"t": {"N": "0"}},
            {"l": {"L": [{"N": "16"}, {"N": "0"}, {"N": "0"}, {"N": "0"}]}},
            {"l": {"L": [{"N": "0"}] * PARTITIONS}},
            {"l": {"L": [{"N": "1"}] * 2}},
        ],
        ids=["as it is", "of long ago", "wrong", "empty", "of fewer partitions"],
    )
    def test_whatever_it_says_the_best_is_seen_within_a_second(
        self, world: World, queue: TestQueue, changes: dict[str, Any]
    ) -> None:
        put_hint(world, **changes)
        assert self.received(world, queue) == ["2"]
        send_into(queue, 3, 9)
        world.clock.pass_seconds(0.81)
        assert self.received(world, queue) == ["9"]

    def test_one_of_a_fast_clock_is_not_believed_for_longer(
        self, world: World, queue: TestQueue
    ) -> None:
        """
        its clock   12:00:02  looks, and writes
        our clock   12:00:00  goes by it ── 0.8 s ── looks
        """
        put_hint(world, t={"N": str(world.clock.now_ms() + 2_000)})
        memory: dict[type, Any] = {}
        with environment(world, memory):
            assert bodies(queue.receive(1)) == ["2"]
        send_into(queue, 3, 9)
        world.clock.pass_seconds(0.81)
        with environment(world, memory):
            assert bodies(queue.receive(1)) == ["9"]

    def test_an_older_look_written_over_a_newer_one_hides_nothing(
        self, world: World, queue: TestQueue
    ) -> None:
        """
        one        looks at 0 s ───────────────────────── writes its look of 0 s
        another              9 is sent   looks at 0.7 s: 9
        a third                                                    looks, since 0 s is long ago
        """
        (first,) = hints(world)
        send_into(queue, 3, 9)
        world.clock.pass_seconds(0.81)
        assert self.received(world, queue) == ["9"]
        send_into(queue, 3, 9)
        put_hint(world, **first)
        assert self.received(world, queue) == ["9"]

    def test_a_message_for_few_receives_hides_nothing_from_others(
        self, world: World, queue: TestQueue
    ) -> None:
        """What a look finds counts, whether its own receive can hold it or not."""
        world.clock.pass_seconds(1)
        looks = []
        for _ in range(2):
            looks.append(self.received(world, queue))
            world.clock.pass_seconds(1)
        assert looks == [["2"], ["2"]]

    def test_the_store_refuses_its_write(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = world.core.store.write

        def refuse(operation: str, request: dict[str, Any]) -> Any:
            if request.get("Item", {}).get("pk", {}).get("S", "").endswith("#best"):
                raise Unavailable
            return write(operation, request)

        monkeypatch.setattr(world.core.store, "write", refuse)
        world.clock.pass_seconds(1)
        send_into(queue, 0, 7)
        assert self.received(world, queue) == ["7"]
        assert [self.received(world, queue) for _ in range(4)] == [["2"]] * 4

    def test_a_refused_partition_comes_last(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And what this receive did not see is not told to others."""
        world.clock.pass_seconds(1)
        send_into(queue, 3, 9)
        (before,), query = hints(world), world.core.store.query

        def refuse(request: dict[str, Any]) -> Any:
            if request["ExpressionAttributeValues"][":pk"]["S"].endswith("#3"):
                raise Unavailable
            return query(request)

        with monkeypatch.context() as patch:
            patch.setattr(world.core.store, "query", refuse)
            assert self.received(world, queue) == ["2"]
        assert hints(world) == [before]
        assert self.received(world, queue) == ["9"]


class TestCrashes:
    def test_a_receive_ended_before_any_call_of_the_store_hides_nothing(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The next receives get the highest ones, whatever it left behind."""
        calls, at = 0, 0

        def end(*_: object) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                raise Crash

        while not at or calls >= at:
            queue = make_queue(f"orders{at}", priorities=4, partitions=2)
            for partition, priority in ((0, 1), (1, 3), (0, 2)):
                send_into(queue, partition, priority, partitions=2)
            world.clock.pass_seconds(1)
            calls, at = 0, at + 1
            with monkeypatch.context() as patch, environment(world, {}):
                before_each_call(world, patch, end)
                with suppress(Crash):
                    queue.receive(1, visibility_timeout_seconds=30)
            world.clock.pass_seconds(61)
            with environment(world, {}):
                assert ones(queue) == [3, 2, 1], at
        assert at > 6


class TestGrowth:
    def test_partitions_grow_and_everything_is_found(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(priorities=4)
        assert queue.show()["partitions"] == 1
        sent = send(queue, 1, 4, 2)
        for partitions in (4, 16):
            assert queue.patch(partitions=partitions).status == 200
            world.clock.pass_seconds(200)
            sent += send(queue, 3, 1, 4)
        assert queue.client.put("/queues/other", {"priorities": 4, "partitions": 16}).status == 201
        assert queue.patch(partitions=17).json["parameter"] == "partitions"
        assert queue.patch(partitions=2).code == "InUse"
        for each in sent:
            shown = queue.client.get(f"{queue.path}/messages/{each['id']}")
            assert (shown.status, shown.json["state"]) == (200, "active"), shown.text
        assert ones(queue) == [4, 4, 4, 3, 3, 2, 1, 1, 1]

    def test_a_look_of_fewer_partitions_does_not_count(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(priorities=16, partitions=2)
        for _ in range(20):
            send(queue, 1)
        queue.receive(1)
        queue.patch(partitions=4)
        world.clock.pass_seconds(0.2)
        send_into(queue, 3, 9)
        with environment(world, {}):
            assert bodies(queue.receive(1)) == ["9"]


class TestCosts:
    def test_a_message_costs_no_more_to_send(self, world: World, queue: TestQueue) -> None:
        for _ in range(8):
            send(queue, 1)
        queue.receive(1)
        assert world.write_units(lambda: queue.send("x" * 100, priority=16)) == 1

    def test_a_busy_receive_looks_at_one_partition(self, world: World, queue: TestQueue) -> None:
        path = f"{queue.path}/messages/receive"

        def look() -> Any:
            return queue.client.post(path, {"max": 1, "wait_seconds": 0})

        for partition in range(PARTITIONS):
            for _ in range(4):
                send_into(queue, partition, 2)
        look()
        assert [read_units(world, look)[1] for _ in range(3)] == [0.5] * 3

    def test_a_look_through_all_costs_half_a_unit_each_and_one_write(
        self, world: World, queue: TestQueue
    ) -> None:
        for partition in range(PARTITIONS):
            send_into(queue, partition, 5)
            send_into(queue, partition, 5)
        queue.receive(1)
        world.clock.pass_seconds(1)
        wrote, read = world.units(lambda: queue.receive(1))
        # The item and each partition, the partition to take from, and the queue's attributes.
        assert read - 0.5 * (1 + PARTITIONS + 1) <= 0.5
        assert wrote == 2  # the claim and the item

    @pytest.mark.parametrize("partitions", [4, 16])
    def test_a_message_alone_pays_no_write_but_its_own(
        self,
        world: World,
        make_queue: MakeQueue,
        monkeypatch: pytest.MonkeyPatch,
        partitions: int,
    ) -> None:
        monkeypatch.setattr(best_levels, "FIRST_PUT", 10**9)
        queue = make_queue(priorities=16, partitions=partitions)
        for _ in range(3):
            queue.send("alone", priority=9)
            world.clock.pass_seconds(11)
            world.engine.reset_capacity()
            assert bodies(queue.receive(1)) == ["alone"]
            paid = world.engine.capacity()["by_table"][world.tables.messages]
            # The claim; the item, each partition, and the partition to take from.
            units = paid["write_units"], paid["read_units"]
            assert units == (1, 0.5 * (1 + partitions + 1))
        assert hints(world) == []

    def test_of_many_rarely_receiving_environments_few_look(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        """Each receives once: some eight of them look before one tells the others."""
        queue = make_queue(priorities=16, partitions=16)
        for _ in range(100):
            queue.send("x", priority=9)
        world.clock.pass_seconds(11)
        looks, path = 0, f"{queue.path}/messages/receive"
        for _ in range(100):
            with environment(world, {}):
                _, units = read_units(world, lambda: queue.client.post(path, {"max": 1}))
                looks += units > 5
            world.clock.pass_seconds(0.02)
        assert looks <= 24

    def test_an_empty_queue_writes_nothing(self, world: World, queue: TestQueue) -> None:
        queue.receive()
        world.clock.pass_seconds(1)
        assert world.write_units(lambda: queue.receive(1)) == 0
        assert hints(world) == []

    def test_a_wait_stays_within_its_cost(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(priorities=4, partitions=16)
        _, read = world.units(lambda: queue.receive(1, wait_seconds=20))
        assert read <= 150

    def test_one_partition_has_no_item(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(priorities=4)
        send(queue, 1, 2, 3)
        assert ones(queue) == [3, 2, 1]
        assert hints(world) == []
        assert BestMemory not in world.core.memories


def test_an_environment_remembers_a_bounded_number_of_sources() -> None:
    memory = BestMemory()
    for number in range(2 * MAX_SOURCES):
        memory.keep(f"{number}", best_levels._BestLook(0, 0, [Rank(level_prefix(1), 0)], 800))
    assert len(memory._looks) == MAX_SOURCES
    assert memory.known("0") is None
    assert memory.known(f"{2 * MAX_SOURCES - 1}") is not None
