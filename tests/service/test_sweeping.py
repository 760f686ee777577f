"""Sweeping with a slow store: a sweep that runs out of time leaves nothing for good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.conftest import MakeQueue, TestQueue, sweep
from tests.service.crashes import slow_store
from tests.service.test_sweep_figures import SideBySide
from tests.service.topics import TestTopic

from cirrusmq.fanout.reader_parcels import ReaderShare
from cirrusmq_local.testing import World

SECONDS_A_CALL = 3
"""A sweep of five minutes makes about a hundred calls of the store then."""


@pytest.fixture
def slow_down(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on every call of the store takes its time; those side by side the same time."""

    def slow_down() -> None:
        slow_store(world, monkeypatch, SECONDS_A_CALL)
        side = SideBySide(world)
        world.core = replace(world.core, in_own_pool=side, in_parallel=side)

    return slow_down


@pytest.fixture
def aged(dead: TestQueue, make_queue: MakeQueue) -> TestQueue:
    """A queue whose only message grew too old."""
    queue = make_queue("aged", dead_letter={"queue": "dead", "max_age_seconds": 300})
    queue.send("x")
    return queue


def gauges(world: World) -> Counter[str]:
    """How many gauges of kept messages each queue has."""
    return Counter(
        record["M"]["resource"]["S"].removeprefix("queue:")
        for item in world.items("usage")
        for record in item.get("records", {"L": []})["L"]
        if record["M"]["kind"]["S"] == "kept"
    )


def fill(world: World, make_queue: MakeQueue, count: int) -> list[str]:
    """Queues with a message each, a while ago; answers their names."""
    names = [f"q{number}" for number in range(count)]
    for name in names:
        make_queue(name).send("x")
    world.settle()
    world.clock.pass_seconds(3_600)
    return names


def test_gauges_longer_than_a_sweep_are_finished_by_the_next_ones(
    world: World, make_queue: MakeQueue, slow_down: Callable[[], None]
) -> None:
    names = fill(world, make_queue, 60)
    slow_down()
    world.run("sweep")
    assert 0 < len(gauges(world)) < 60

    for _ in range(6):
        world.run("sweep")

    assert gauges(world) == Counter(names)


def test_the_next_hour_begins_anew_if_the_last_one_stopped_halfway(
    world: World, make_queue: MakeQueue, slow_down: Callable[[], None]
) -> None:
    names = fill(world, make_queue, 30)
    slow_down()
    world.run("sweep")  # which is not enough for all
    assert 0 < len(gauges(world)) < 30

    world.clock.pass_seconds(3_600)
    for _ in range(6):
        world.run("sweep")

    found = gauges(world)
    assert set(found) == set(names)
    assert set(found.values()) == {1, 2}  # two of those that the first hour's sweep reached


def test_messages_are_given_up_by_age_whatever_time_the_gauges_take(
    world: World,
    dead: TestQueue,
    aged: TestQueue,
    make_queue: MakeQueue,
    slow_down: Callable[[], None],
) -> None:
    fill(world, make_queue, 60)
    slow_down()

    for _ in range(30):
        world.run("sweep")
        world.settle()  # work that takes the sweep too long is handed over

    assert (aged.counts(), dead.counts()) == ({}, {"active": 1})


@pytest.mark.long
def test_shares_put_aside_do_not_keep_the_sweep_from_the_rest(
    world: World,
    dead: TestQueue,
    aged: TestQueue,
    topic: TestTopic,
    monkeypatch: pytest.MonkeyPatch,
    slow_down: Callable[[], None],
) -> None:
    def break_down(share: ReaderShare) -> Any:
        raise ValueError("a fault of the code")

    monkeypatch.setattr("cirrusmq.fanout.reader_parcels.parcels_of", break_down)
    topic.subscribe("group")
    for number in range(150):
        assert topic.try_publish([{"body": str(number)}]).status == 201
    world.settle()
    world.clock.pass_seconds(3_600)
    slow_down()

    for _ in range(30):
        sweep(world)

    assert (aged.counts(), dead.counts()) == ({}, {"active": 1})
    assert gauges(world)
