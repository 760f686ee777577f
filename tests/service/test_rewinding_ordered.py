"""Rewinding an ordered queue: rewound messages wait until their group is free."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, bodies
from tests.service.crashes import before_each_call, run_in_small_steps

from cirrusmq_local.testing import World

TRIED_ONCE: dict[str, Any] = {
    "ordered": True,
    "partitions": 1,
    "rewind_seconds": 3_600,
    "dead_letter": {"queue": "dead", "max_receives": 1},
}


@pytest.fixture
def ordered(make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", ordered=True, partitions=1, rewind_seconds=3_600)


def send_each(world: World, queue: TestQueue, *numbers: object, group: str = "g") -> None:
    for number in numbers:
        queue.send(str(number), group=group)
        world.clock.pass_seconds(0.1)


@pytest.mark.few(1)
@pytest.mark.parametrize("earlier", [2, 60])
def test_they_wait_while_a_later_one_is_held_and_come_once_it_is_settled(
    world: World, ordered: TestQueue, start: str, earlier: int
) -> None:
    send_each(world, ordered, *range(earlier + 2))
    for _ in range(earlier):
        ordered.delete(*ordered.receive(1))
    (held,) = ordered.receive(1, visibility_timeout_seconds=1_000)
    world.clock.pass_seconds(1)

    assert ordered.run("rewind", to=start)["state"] == "succeeded"

    assert ordered.counts() == {"active": earlier + 1, "inactive": 1}
    assert ordered.receive() == []
    world.clock.pass_seconds(120)
    assert ordered.receive() == []
    ordered.delete(held)
    assert ordered.consume(1) == [*map(str, range(earlier)), str(earlier + 1)]


def test_they_come_first_when_the_lease_of_the_later_one_ends(
    world: World, ordered: TestQueue, start: str
) -> None:
    send_each(world, ordered, 1, 2, 3)
    ordered.delete(*ordered.receive(2))
    ordered.receive(1)
    ordered.run("rewind", to=start)
    assert ordered.receive() == []

    world.clock.pass_seconds(31)

    assert ordered.consume(1) == ["1", "2", "3"]


def test_messages_of_one_send_wait_for_each_other_too(
    world: World, ordered: TestQueue, start: str
) -> None:
    ordered.send("1", "2", "3", group="g")
    (one,) = ordered.receive(1)
    ordered.delete(one)
    (two,) = ordered.receive(1)
    world.clock.pass_seconds(1)

    ordered.run("rewind", to=start)

    assert ordered.receive() == []
    ordered.delete(two)
    assert ordered.consume(1) == ["1", "3"]


def test_a_free_group_does_not_wait_for_another(
    world: World, ordered: TestQueue, start: str
) -> None:
    send_each(world, ordered, 1, 2, 3, group="held")
    send_each(world, ordered, 4, 5, 6, group="free")
    for _ in range(4):
        ordered.delete(*(each for each in ordered.receive(16) if each["body"] in "1245"))
        world.clock.pass_seconds(31)
    (three,) = (each for each in ordered.receive(16) if each["body"] == "3")
    world.clock.pass_seconds(1)

    ordered.run("rewind", to=start)

    world.clock.pass_seconds(31 - 2)
    ordered.hold(three, 30)
    world.clock.pass_seconds(2)
    assert ordered.consume(1) == ["4", "5", "6"]
    ordered.delete(three)
    assert ordered.consume(1) == ["1", "2"]


def test_whoever_read_a_later_one_before_cannot_take_it_any_more(
    world: World, ordered: TestQueue, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_each(world, ordered, 1, 2, 3)
    ordered.delete(*ordered.receive(2))
    world.clock.pass_seconds(1)
    first: list[str] = []

    def rewind_before_the_claim(operation: str, _: object) -> None:
        if operation == "UpdateItem" and not first:
            first.append("under way")
            ordered.run("rewind", to=start)
            first[:] = bodies(ordered.receive(1))

    before_each_call(world, monkeypatch, rewind_before_the_claim)
    late = ordered.receive(1)

    assert (first, late) == (["1"], [])
    world.clock.pass_seconds(31)
    assert ordered.consume(1) == ["1", "2", "3"]


def test_a_rewind_stopped_anywhere_leaves_no_group_waiting_for_good(
    world: World, ordered: TestQueue, start: str
) -> None:
    send_each(world, ordered, *range(50))
    assert len(ordered.consume(1)) == 50
    world.clock.pass_seconds(1)
    ordered.start("rewind", to=start)

    assert run_in_small_steps(world) > 2

    assert ordered.counts() == {"active": 50}
    assert ordered.consume(1) == [*map(str, range(50))]


def test_a_second_rewind_and_a_purge_find_waiting_messages(
    world: World, ordered: TestQueue, start: str
) -> None:
    send_each(world, ordered, 1, 2, 3)
    ordered.delete(*ordered.receive(2))
    (three,) = ordered.receive(1)
    world.clock.pass_seconds(1)
    ordered.run("rewind", to=start)
    assert ordered.run("rewind", to=start)["done"] == 0
    assert ordered.receive() == []

    ordered.run("purge")

    assert ordered.act("delete", three)["failed"]
    assert ordered.counts() == {}
    assert {item["pk"]["S"][0] for item in world.items()} == {"H", "N"}  # a voided mark, a counter


@pytest.mark.parametrize("together", [True, False])
def test_a_used_up_message_is_not_received_behind_a_rewound_one(
    world: World, make_queue: MakeQueue, dead: TestQueue, start: str, together: bool
) -> None:
    """It was tried as often as it may be, and becomes a dead letter when its turn comes."""
    queue = make_queue(**TRIED_ONCE)
    if together:
        queue.send("done", "used up", "next", group="g")
    else:
        send_each(world, queue, "done", "used up", "next")
    queue.delete(*queue.receive(1))
    (held,) = queue.receive(1)
    queue.run("rewind", to=start)
    queue.give_back(held)
    world.clock.pass_seconds(5)

    assert queue.consume() == ["done", "next"]
    assert dead.bodies() == ["used up"]
