"""Counts of a queue: exact while they can be read for 40 units, near enough beyond."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_costs import fill as put_all
from tests.service.topics import TestTopic

from cirrusmq.base import ulid
from cirrusmq_local.testing import Client, World

COUNT_UNITS = 40


def units(world: World) -> float:
    return float(world.engine.capacity()["read_units"])


def shown(world: World, queue: TestQueue) -> dict[str, Any]:
    """The queue as it is shown, for 40 units at most."""
    before = units(world)
    answer = queue.show()
    assert units(world) - before <= COUNT_UNITS
    return answer


def counts(world: World, queue: TestQueue, *, approximate: bool = False) -> dict[str, int]:
    """The counts that are not 0, the age of the oldest message aside, and whether they are so."""
    all_counts = shown(world, queue)["counts"]
    del all_counts["oldest_active_age_seconds"]
    assert all_counts.pop("approximate", False) is approximate
    return {name: count for name, count in all_counts.items() if count}


def fill(
    world: World,
    queue: TestQueue,
    parcel: dict[str, Any],
    count: int,
    between_s: tuple[float, float],
    lease_seconds: float = 0,
    *,
    metered: bool = True,
) -> None:
    """Put messages straight into the store, sent between two times from now, as sends would.

    With a lease each has been received once and is held for so long. The meter counts them, if
    they are `metered`.
    """
    chance = random.Random(f"{count} {metered}")
    now_ms = world.clock.now_ms()
    partitions = queue.show()["partitions"]
    items = []
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
        items.append(item)
    put_all(world, items)
    if metered:
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

    @pytest.mark.few(1)
    @pytest.mark.parametrize("partitions", FEW_AND_FOR_LONG_MANY)
    @pytest.mark.parametrize(
        ("state", "between_s", "lease_seconds"),
        [
            ("active", (-4_000, -1), 0),
            ("delayed", (1_000, 4_000), 0),
            pytest.param("inactive", (-4_000, -1_000), 600, marks=pytest.mark.long),
        ],
    )
    def test_all_in_one_state(
        self,
        world: World,
        queue: TestQueue,
        state: str,
        between_s: tuple[float, float],
        lease_seconds: float,
    ) -> None:
        fill(world, queue, self.parcel, 2_000, between_s, lease_seconds)

        assert counts(world, queue, approximate=True) == {state: 2_000}
        if state == "active" and queue.show()["partitions"] <= 4:
            assert shown(world, queue)["counts"]["oldest_active_age_seconds"] == 4_000

    @pytest.mark.long
    @pytest.mark.parametrize("partitions", [4, 255])
    def test_each_state(self, world: World, queue: TestQueue) -> None:
        fill(world, queue, self.parcel, 900, (-4_000, -2_000), lease_seconds=600)
        fill(world, queue, self.parcel, 1_500, (-2_000, -1))
        fill(world, queue, self.parcel, 600, (1, 2_000))

        found = counts(world, queue, approximate=True)

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


@pytest.mark.long
def test_a_long_archive_is_counted_within_40_units(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(rewind_seconds=600)
    for _ in range(60):
        queue.send(*("x" * 40 for _ in range(16)))
    queue.delete(*queue.receive_all())
    queue.send("y")
    world.run_stream("meter")

    assert counts(world, queue) == {"active": 1, "rewindable": 960}


class TestBursts:
    """What the meter has not counted yet is approximate, and no less than what was read."""

    @pytest.mark.long
    @pytest.mark.parametrize("state", ["active", "delayed", "inactive"])
    @pytest.mark.parametrize("metered", [0, 0.5])
    def test_a_burst_before_the_meter_says_so(
        self, world: World, make_queue: MakeQueue, state: str, metered: float
    ) -> None:
        queue = make_queue()
        queue.send("x" * 100)
        parcel = next(item for item in world.items() if item["pk"]["S"].startswith("Q#"))
        between_s = (1_000.0, 4_000.0) if state == "delayed" else (-4_000.0, -1.0)
        lease_seconds = 600 if state == "inactive" else 0
        first = round(9_000 * metered)
        fill(world, queue, parcel, first, between_s, lease_seconds)
        fill(world, queue, parcel, 9_001 - first, between_s, lease_seconds, metered=False)

        found = counts(world, queue, approximate=True)

        assert found[state] >= max(first, 500)
        assert sum(found.values()) < 9_001

    @pytest.mark.parametrize("count", [30, 3_000])
    @pytest.mark.parametrize("reader", ["receiver", "group"])
    def test_receivers_and_pull_subscriptions_say_so_as_well(
        self, world: World, queue: TestQueue, topic: TestTopic, reader: str, count: int
    ) -> None:
        if reader == "receiver":
            path, reader_id = f"{queue.path}/receivers/copy", queue.add_receiver("copy")["id"]
            queue.send("x")
        else:
            group = topic.subscribe()
            path, reader_id = group.path, group.id
            topic.publish("x")
        world.run_stream("fan_out")
        beginning = f"Q#{reader_id}#"
        (parcel,) = (item for item in world.items() if item["pk"]["S"].startswith(beginning))
        fill(world, queue, parcel, count - 1, (-60, -1), metered=False)

        shown = queue.client.get(path).json["counts"]

        assert shown.get("approximate", False) is (count > 30)
        assert shown["active"] == count or 500 < shown["active"] < count

    @pytest.mark.parametrize("delay_seconds", [0, 600])
    @pytest.mark.parametrize("limit", [7, 20])
    def test_urls_and_topics_are_counted_up_to_a_limit(
        self,
        world: World,
        alice: Client,
        monkeypatch: pytest.MonkeyPatch,
        limit: int,
        delay_seconds: int,
    ) -> None:
        for module in ("cirrusmq.subscriptions.state", "cirrusmq_lambda.answers.topics"):
            monkeypatch.setattr(f"{module}.COUNT_EXACT_MESSAGES", limit)
        topic = TestTopic(alice)
        world.endpoint = lambda url: "status 500"
        topic.subscribe("web", protocol="http", endpoint="http://127.0.0.1:9/")
        topic.publish(*("x" * 12), delay_seconds=delay_seconds)
        world.run_stream("fan_out")

        shown = alice.get("/topics/news/subscriptions/web").json["counts"]

        assert shown.get("approximate", False) is (limit < 12)
        assert limit < shown["delayed" if delay_seconds else "active"] <= 12 or limit > 12
        approximate = {"approximate": True} if limit < 12 else {}
        counted = alice.get("/topics/news").json["counts"]
        assert counted == {"active": min(limit + 1, 12), **approximate}
