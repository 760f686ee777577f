"""How many parcels a receive reads: few where it wants one message and nothing is before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.crashes import before_each_call

from cirrusmq.receiving.heads.memory import HeadMemory
from cirrusmq_local.testing import World

FEW, PAGE = 4, 10


@pytest.fixture
def pages(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits of the queries of parcels, as they are made."""
    limits: list[int] = []

    def note(operation: str, request: Mapping[str, Any]) -> None:
        if operation == "Query" and "Limit" in request:
            limits.append(request["Limit"])

    before_each_call(world, monkeypatch, note)
    return limits


@pytest.fixture
def full(world: World, make_queue: MakeQueue) -> TestQueue:
    """A queue of one partition with twenty messages, one after the other."""
    queue = make_queue(partitions=1)
    for number in range(20):
        queue.send(f"{number:02d}" + "x" * 600)
        world.clock.pass_seconds(0.001)
    return queue


def test_taking_one_message_after_the_other_reads_few_behind_it(
    full: TestQueue, pages: list[int]
) -> None:
    taken = []
    for _ in range(12):
        (message,) = full.receive(1)
        full.delete(message)
        taken.append(message["body"][:2])
    assert taken == [f"{number:02d}" for number in range(12)]
    assert pages == [PAGE] + [FEW] * 11


def test_few_parcels_cost_the_least_possible(world: World, full: TestQueue) -> None:
    full.delete(*full.receive(1))
    world.engine.reset_capacity()
    full.receive(1)
    assert world.engine.capacity()["by_operation"]["Query"]["read_units"] == 0.5


def test_messages_in_flight_at_the_head_cost_no_further_call(
    full: TestQueue, pages: list[int]
) -> None:
    for _ in range(PAGE):
        assert full.receive(1)
    assert pages == [PAGE, FEW] + [PAGE] * (PAGE - 2)


def test_another_environments_claims_cost_one_further_call(
    world: World, full: TestQueue, pages: list[int]
) -> None:
    full.receive(5)
    (pk,) = {item["pk"]["S"] for item in world.items() if item["pk"]["S"].startswith("Q#")}
    world.core.memory(HeadMemory).note_first(pk, clear=True)
    pages.clear()
    assert full.receive(1)
    assert full.receive(1)
    assert pages == [FEW, 4 * FEW, PAGE]


def test_a_receive_of_several_messages_reads_whole_pages_and_so_does_the_next(
    full: TestQueue, pages: list[int]
) -> None:
    full.delete(*full.receive(1))
    assert len(full.receive(2)) == 2
    assert len(full.receive(1)) == 1
    assert len(full.receive(16)) == 13
    assert pages == [PAGE, PAGE, PAGE, 16]
