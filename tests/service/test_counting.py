"""Counts of a queue: exact while they can be read for 40 units, near enough beyond."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue

from cirrusmq.base import ulid
from cirrusmq_local.testing import World

COUNT_UNITS = 40


def units(world: World) -> float:
    return float(world.engine.capacity()["read_units"])


def shown(world: World, queue: TestQueue) -> dict[str, Any]:
    """The queue as it is shown, for 40 units at most."""
    before = units(world)
    answer = queue.show()
    assert units(world) - before <= COUNT_UNITS
    return answer


def counts(world: World, queue: TestQueue) -> dict[str, int]:
    """The counts that are not 0, the age of the oldest message aside."""
    all_counts = shown(world, queue)["counts"]
    del all_counts["oldest_active_age_seconds"]
    return {name: count for name, count in all_counts.items() if count}


def fill(
    world: World,
    queue: TestQueue,
    parcel: dict[str, Any],
    count: int,
    between_s: tuple[float, float],
    lease_seconds: float = 0,
) -> None:
    """Put messages straight into the store, sent between two times from now, as sends would.

    With a lease each has been received once and is held for so long. The meter counts them.
    """
    chance = random.Random(count)
    now_ms = world.clock.now_ms()
    partitions = queue.show()["partitions"]
    puts = []
    for number in range(count):
        at_s = between_s[0] + (between_s[1] - between_s[0]) * number / count
        at_ms = now_ms + round(1000 * at_s)
        sent_ms = min(at_ms, now_ms)
        item = parcel | {
            "pk": {"S": f"{parcel['pk']['S'].rpartition('#')[0]}#{number % partitions}"},
            "sk": {"S": f"{at_ms:013d}#{ulid.encode(sent_ms, chance.randbytes(10))}"},
            "t": {"N": str(sent_ms)},
            "v": {"L": [{"N": str(at_ms)}]},
        }
        if lease_seconds:
            item |= {
                "v": {"L": [{"N": str(now_ms + round(1000 * lease_seconds))}]},
                "r": {"L": [{"N": "1"}]},
                "f": {"L": [{"N": str(now_ms)}]},
                "k": {"L": [{"B": chance.randbytes(16)}]},
            }
        puts.append({"PutRequest": {"Item": item}})
    for place in range(0, len(puts), 25):
        request = {"RequestItems": {world.tables.messages: puts[place : place + 25]}}
        world.engine.execute("BatchWriteItem", request)
    world.run_stream("meter")


@pytest.mark.parametrize("partitions", [1, 4, 64])
@pytest.mark.parametrize("ordered", [False, True])
def test_small_counts_are_exact_at_once(
    world: World, make_queue: MakeQueue, partitions: int, ordered: bool
) -> None:
    rewinds = {"rewind_seconds": 600} if partitions < 64 else {}
    queue = make_queue(partitions=partitions, ordered=ordered, **rewinds)
    for number in range(30):
        queue.send("x", "y", group=str(number))
    assert counts(world, queue) == {"active": 60}
    held = queue.receive(16) + queue.receive(16) + queue.receive(16)
    assert counts(world, queue) == {"active": 60 - len(held), "inactive": len(held)}
    queue.delete(*held[:3])
    left = {"active": 60 - len(held), "inactive": len(held) - 3}
    assert counts(world, queue) == (left | {"rewindable": 3} if rewinds else left)


@pytest.mark.parametrize("batch", [1, 16])
def test_hundreds_of_parcels_are_counted_exactly_without_the_meter(
    world: World, make_queue: MakeQueue, batch: int
) -> None:
    queue = make_queue()
    for _ in range(250):
        queue.send(*("x" * 20 for _ in range(batch)))
    queue.send("later", delay_seconds=60)
    world.clock.pass_seconds(5)

    assert counts(world, queue) == {"active": 250 * batch, "delayed": 1}


FEW_AND_FOR_LONG_MANY = [4, pytest.param(255, marks=pytest.mark.long)]


class TestLongQueues:
    """Counted by the meter, and divided by a sample of states."""

    parcel: dict[str, Any]

    @pytest.fixture
    def queue(self, world: World, make_queue: MakeQueue, partitions: int) -> TestQueue:
        queue = make_queue(partitions=partitions)
        queue.send("x" * 100)
        self.parcel = next(item for item in world.items() if item["pk"]["S"].startswith("Q#"))
        queue.delete(*queue.receive())
        world.run_stream("meter")
        return queue

    @pytest.mark.parametrize("partitions", FEW_AND_FOR_LONG_MANY)
    def test_all_that_waits(self, world: World, queue: TestQueue) -> None:
        fill(world, queue, self.parcel, 2_000, (-4_000, -1))

        assert counts(world, queue) == {"active": 2_000}
        if queue.show()["partitions"] <= 4:
            assert shown(world, queue)["counts"]["oldest_active_age_seconds"] == 4_000

    @pytest.mark.parametrize("partitions", FEW_AND_FOR_LONG_MANY)
    def test_all_in_flight(self, world: World, queue: TestQueue) -> None:
        fill(world, queue, self.parcel, 2_000, (-4_000, -1_000), lease_seconds=600)

        assert counts(world, queue) == {"inactive": 2_000}

    @pytest.mark.parametrize("partitions", FEW_AND_FOR_LONG_MANY)
    def test_all_delayed(self, world: World, queue: TestQueue) -> None:
        fill(world, queue, self.parcel, 2_000, (1_000, 4_000))

        assert counts(world, queue) == {"delayed": 2_000}

    @pytest.mark.parametrize("partitions", [4, 255])
    def test_each_state(self, world: World, queue: TestQueue) -> None:
        fill(world, queue, self.parcel, 900, (-4_000, -2_000), lease_seconds=600)
        fill(world, queue, self.parcel, 1_500, (-2_000, -1))
        fill(world, queue, self.parcel, 600, (1, 2_000))

        found = counts(world, queue)

        assert sum(found.values()) == pytest.approx(3_000, abs=2)
        assert found["inactive"] == pytest.approx(900, rel=0.3)
        assert found["active"] == pytest.approx(1_500, rel=0.3)
        assert found["delayed"] == pytest.approx(600, rel=0.3)


def test_a_long_ordered_queue_is_counted_within_40_units(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue(ordered=True)
    for _ in range(150):
        queue.send(*("x" * 100 for _ in range(2)), group=str(world.random.random()))
        queue.send(*("x" * 500 for _ in range(2)), group=str(world.random.random()))
    held = [message for _ in range(8) for message in queue.receive(16)]
    assert len(held) == 128
    world.run_stream("meter")

    found = counts(world, queue)

    assert sum(found.values()) == 600
    assert found["inactive"] == pytest.approx(128, rel=0.6)


def test_a_long_archive_is_counted_within_40_units(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(rewind_seconds=600)
    for _ in range(60):
        queue.send(*("x" * 40 for _ in range(16)))
    queue.delete(*queue.receive_all())
    queue.send("y")
    world.run_stream("meter")

    assert counts(world, queue) == {"active": 1, "rewindable": 960}
