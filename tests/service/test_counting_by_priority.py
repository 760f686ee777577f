"""Counts by priority of queues that are too long to be read: by the meter, and never misleading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_counting import counts
from tests.service.test_priorities import send

from cirrusmq.queues import counts as counting
from cirrusmq.runtime.store import number_in
from cirrusmq.storage.counters import counter_key, levels_in
from cirrusmq_local.testing import World


@pytest.fixture
def queue(make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch) -> TestQueue:
    """A queue of which few messages are read when it is shown."""
    for name, value in (
        *(("COUNT_UNITS", 3.0), ("_PAGE_UNITS", 0.5), ("_KEPT_BACK_UNITS", 0.0)),
        *(("_FIRST_PARCELS", 4), ("_PAGE_PARCELS", 4)),
    ):
        monkeypatch.setattr(counting, name, value)
    return make_queue(priorities=16)


def counter(world: World, queue: TestQueue) -> dict[str, Any]:
    place = counter_key(queue.show()["id"])
    (item,) = (each for each in world.items("usage") if each["sk"]["S"] == place[1])
    return item


def by_priority(world: World, queue: TestQueue) -> dict[str, int]:
    found = counts(world, queue, approximate=True)
    levels: Any = found["active_by_priority"]
    return dict(levels)


def fill(world: World, queue: TestQueue, *levels: int, each: int = 20) -> None:
    for level in levels:
        for _ in range(each):
            queue.send("x" * 200, priority=level)
    world.run_stream("meter")


def test_an_unread_level_has_its_number(world: World, queue: TestQueue) -> None:
    fill(world, queue, 16, 9, 1)

    assert by_priority(world, queue) == {"16": 20, "9": 20, "1": 20}


def test_levels_together_are_the_active_ones(world: World, queue: TestQueue) -> None:
    fill(world, queue, 16, 9, 1)
    held = queue.receive(6)
    queue.delete(*held[:3])
    world.run_stream("meter")

    found = counts(world, queue, approximate=True)
    levels: Any = found["active_by_priority"]
    assert sum(levels.values()) == found["active"]
    assert levels["9"] >= levels["16"]
    assert counter(world, queue)["q16"] == {"N": "17"}


def test_an_emptied_level_is_not_named(world: World, queue: TestQueue) -> None:
    fill(world, queue, 9, 1)
    send(queue, 16, 16)
    world.run_stream("meter")
    queue.delete(*queue.receive(2))
    world.run_stream("meter")

    assert counter(world, queue)["q16"] == {"N": "0"}
    assert by_priority(world, queue) == {"9": 20, "1": 20}


def test_a_dead_letter_is_counted_in_its_new_queue(world: World, make_queue: MakeQueue) -> None:
    dead = make_queue("dead", priorities=4)
    queue = make_queue(priorities=16, dead_letter={"queue": "dead", "max_receives": 1})
    send(queue, 9, 2)
    queue.act("dead-letter", *queue.receive(1), reason="bad")
    world.settle()

    assert levels_in(counter(world, queue)) == {2: 1}
    assert levels_in(counter(world, dead)) == {4: 1}  # its highest


@pytest.mark.parametrize("lengths", [(9, 5), (5, 9), (4, 4, 9, 9)])
def test_a_batch_repeated_by_the_stream_counts_once(
    world: World, queue: TestQueue, lengths: Sequence[int]
) -> None:
    send(queue, *range(1, 10))
    records = world.engine.read_stream(world.tables.messages, 0, 9)
    for length in lengths:
        world.run("meter", {"Records": [each.as_lambda_record() for each in records[:length]]})
        assert levels_in(counter(world, queue)) == dict.fromkeys(range(1, length + 1), 1)


def test_changes_without_a_new_sum_are_counted_for_certain(world: World, queue: TestQueue) -> None:
    send(queue, 3)
    world.run_stream("meter")
    queue.delete(*queue.receive(1))
    send(queue, 5)
    world.run_stream("meter")

    assert levels_in(counter(world, queue)) == {5: 1}


def test_numbers_of_an_earlier_release_are_not_shown(world: World, queue: TestQueue) -> None:
    """It counted no levels, so the messages that were read are shown alone."""
    fill(world, queue, 16, 9, 1)
    item = counter(world, queue)
    del item["q16"], item["q01"]
    world.engine.execute("PutItem", {"TableName": world.tables.usage, "Item": item})

    assert levels_in(counter(world, queue)) is None
    assert by_priority(world, queue).keys() == {"16"}


def test_a_plain_queues_counter_has_none(world: World, make_queue: MakeQueue) -> None:
    for name, kind in (("plain", {}), ("grouped", {"fair": True}), ("in-order", {"ordered": True})):
        queue = make_queue(name, **kind)
        queue.send("x", **({"group": "g"} if kind else {}))
        world.run_stream("meter")
        item = counter(world, queue)
        assert number_in(item, "messages") == 1
        assert [each for each in item if each.startswith("q")] == []


def test_levels_cost_the_meter_nothing_more(world: World, make_queue: MakeQueue) -> None:
    """They are attributes of the counter that is written all the same."""
    plain, leveled = make_queue("plain"), make_queue("leveled", priorities=32)

    def units(queue: TestQueue, **given: Any) -> float:
        queue.send("x", **given)
        return world.write_units(lambda: world.run_stream("meter"))

    assert units(leveled, priority=32) == units(plain)
    for level in range(1, 32):
        leveled.send("x", priority=level)
    world.run_stream("meter")
    assert units(leveled, priority=1) == units(plain)
