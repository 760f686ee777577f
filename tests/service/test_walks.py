"""A walk through a partition: whole or cut, and what cut walks see together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.service.test_looks_around_groups import by_key, make, send_all

from cirrusmq.model.source import Source, queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.storage.walk import FIRST_PARCELS, Bounds, PartitionScan
from cirrusmq_local.testing import World

GROUPS = 60


def filled(kind: str, each: int) -> tuple[World, Source]:
    """A source whose groups have as many parcels each."""
    world = World()
    alice = make(kind, world)
    for _ in range(each):
        send_all(alice, by_key(GROUPS))
        world.clock.pass_seconds(1)
    queue = get_queue(world.core, "alice", "q")
    return world, queue_source(queue, world.core.now_ms())


def keys_of(walk: PartitionScan, *, passing: bool) -> list[str]:
    """The keys that a walk yields; `passing`: each group is passed at its first parcel."""
    keys: list[str] = []
    for parcel in walk:
        keys.append(parcel.sort_key)
        if passing:
            walk.pass_group()
    return keys


BOUNDS: list[tuple[str, Callable[[World], Bounds]]] = [
    ("a page", lambda world: Bounds(pages=1)),
    ("two pages", lambda world: Bounds(pages=2)),
    ("a unit", lambda world: Bounds(units=1.0)),
    ("nothing", lambda world: Bounds(units=0.0)),
    ("a time that is over", lambda world: Bounds(deadline_ms=world.core.now_ms())),
]


@pytest.mark.parametrize("kind", ["plain", "fair", "ordered"])
def test_a_walk_without_bounds_is_whole_and_sees_every_parcel_in_order(kind: str) -> None:
    world, source = filled(kind, 3)

    walk = PartitionScan(world.core, source, 0, Bounds())
    keys = keys_of(walk, passing=False)

    parcels = [i["sk"]["S"] for i in world.items() if i["pk"]["S"].startswith("Q#")]
    assert keys == sorted(parcels)
    assert walk.cut is None


@pytest.mark.few(14)
@pytest.mark.parametrize("passing", [False, True])
@pytest.mark.parametrize("bounds", [each for _, each in BOUNDS], ids=[name for name, _ in BOUNDS])
@pytest.mark.parametrize("kind", ["fair", "ordered"])
def test_cut_walks_together_see_the_same_as_a_whole_one(
    kind: str, bounds: Callable[[World], Bounds], passing: bool
) -> None:
    world, source = filled(kind, 3)
    whole = PartitionScan(world.core, source, 0, Bounds())
    expected = keys_of(whole, passing=passing)
    behind, cuts, keys = "", 0, list[str]()

    while True:
        walk = PartitionScan(world.core, source, 0, bounds(world), behind)
        keys += keys_of(walk, passing=passing)
        if walk.cut is None:
            break
        assert walk.cut > behind
        behind, cuts = walk.cut, cuts + 1

    assert cuts >= 1
    groups = {key.partition("#")[0] for key in keys}
    assert len(groups) == GROUPS
    assert keys == sorted(set(keys))
    if not passing:
        assert keys == expected


@pytest.mark.parametrize("kind", ["fair", "ordered"])
def test_a_passed_long_group_costs_a_page(kind: str) -> None:
    world = World()
    alice = make(kind, world)
    for _ in range(20):
        send_all(alice, ["long"] * 160)
        send_all(alice, by_key(3))
    queue = get_queue(world.core, "alice", "q")

    walk = PartitionScan(world.core, queue_source(queue, world.core.now_ms()), 0, Bounds())
    groups = {key.partition("#")[0] for key in keys_of(walk, passing=True)}

    assert len(groups) == 4
    assert walk.pages <= 5


@pytest.mark.long
def test_skipped_parcels_of_a_group_are_not_read() -> None:
    world, source = filled("fair", FIRST_PARCELS * 3)
    last = max(i["sk"]["S"] for i in world.items() if i["pk"]["S"].startswith("Q#"))
    last_ms = last.split("#")[1]

    walk, keys = PartitionScan(world.core, source, 0, Bounds()), list[str]()
    for parcel in walk:
        keys.append(parcel.sort_key)
        walk.skip_to(last_ms)

    assert sum(key.split("#")[1] == last_ms for key in keys) == GROUPS
    assert len(keys) < GROUPS * FIRST_PARCELS * 2


def test_no_walk_goes_beyond_its_last_key_nor_begins_at_expired_ones() -> None:
    world, source = filled("plain", 3)
    keys = sorted(i["sk"]["S"] for i in world.items() if i["pk"]["S"].startswith("Q#"))
    middle = keys[len(keys) // 2]

    walk = PartitionScan(world.core, source, 0, Bounds(), until=middle)
    before = keys_of(walk, passing=False)
    behind = keys_of(PartitionScan(world.core, source, 0, Bounds(), middle), passing=False)
    world.clock.pass_seconds(source.longest_retention_seconds + 3_600)

    assert before == keys[: len(keys) // 2 + 1]
    assert behind == keys[len(keys) // 2 + 1 :]
    assert keys_of(PartitionScan(world.core, source, 0, Bounds()), passing=False) == []
