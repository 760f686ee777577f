"""Repeating a receive: its messages and its costs, in a queue of any length."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from tests.service.test_waiting import send_to_groups

from cirrusmq.base import ulid
from cirrusmq_local.testing import Client, World

REPEAT_UNITS = 50
LEASE_MS = 3_600_000
COUNT = 1_500


def attempt(world: World) -> str:
    return ulid.encode(world.clock.now_ms(), world.random.randbytes(10))


def units(world: World) -> float:
    return float(world.engine.capacity()["read_units"])


def queue(world: World, partitions: int, **attributes: Any) -> Client:
    alice = world.client("alice", admin=True)
    attributes |= {"partitions": partitions, "visibility_timeout_seconds": LEASE_MS // 1000}
    assert alice.put("/queues/orders", attributes).status == 201
    return alice


def copies(
    world: World,
    parcel: dict[str, Any],
    partitions: int,
    begin_ms: int,
    end_ms: int,
    *,
    held: bool,
) -> None:
    """Put messages like this one straight into each partition, sent evenly in between.

    `held`: each was received a second after it was sent, by others.
    """
    chance = random.Random(held)
    _, source_id, _ = parcel["pk"]["S"].split("#")
    puts = []
    for pk in (f"Q#{source_id}#{partition}" for partition in range(partitions)):
        for number in range(COUNT):
            sent_ms = begin_ms + (end_ms - begin_ms) * number // COUNT
            entropy = ulid.encode(sent_ms, chance.randbytes(10))
            item = parcel | {
                "pk": {"S": pk},
                "sk": {"S": f"{sent_ms:013d}#{entropy}"},
                "t": {"N": str(sent_ms)},
                "v": {"L": [{"N": str(sent_ms)}]},
            }
            if held:
                item |= {
                    "v": {"L": [{"N": str(sent_ms + LEASE_MS)}]},
                    "r": {"L": [{"N": "1"}]},
                    "f": {"L": [{"N": str(sent_ms + 1_000)}]},
                    "k": {"L": [{"B": chance.randbytes(16)}]},
                }
            puts.append({"PutRequest": {"Item": item}})
    for first in range(0, len(puts), 25):
        request = {"RequestItems": {world.tables.messages: puts[first : first + 25]}}
        world.engine.execute("BatchWriteItem", request)


def parcels(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if item["pk"]["S"].startswith("Q#")]


@cache
def filled(partitions: int) -> tuple[World, str]:
    """The world that those tests begin like, and alice's key in it."""
    world = World(seed=5)
    alice = queue(world, partitions)
    alice.send("orders", "x" * 100)
    (parcel,) = parcels(world)
    (held,) = alice.receive("orders")
    alice.post("/queues/orders/messages/delete", {"receipts": [held["receipt"]]})
    now_ms = world.clock.now_ms()
    world.clock.pass_seconds(600)
    copies(world, parcel, partitions, now_ms, now_ms + 300_000, held=True)
    copies(world, parcel, partitions, now_ms + 300_000, now_ms + 600_000, held=False)
    return world, alice.authorization


class TestLongQueues:
    """1,500 messages in flight and 1,500 that wait, in each partition."""

    @pytest.fixture(params=[pytest.param(1, marks=pytest.mark.long), 4])
    def long(self, request: pytest.FixtureRequest) -> tuple[World, Client]:
        first, authorization = filled(request.param)
        world = World(seed=5, like=first)
        return world, Client(world, authorization)

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("seconds", "others"), [pytest.param(0.5, 0, marks=pytest.mark.long), (29, 40)]
    )
    def test_a_repeat_finds_the_first_ones_messages_within_50_units(
        self, long: tuple[World, Client], seconds: float, others: int
    ) -> None:
        world, alice = long
        for _ in range(others):
            alice.receive("orders", 16)
        world.clock.pass_seconds(1)
        token = attempt(world)
        world.clock.pass_seconds(0.05)
        first = alice.receive("orders", 16, attempt=token)
        assert len(first) == 16
        for _ in range(others):
            alice.receive("orders", 16)
        world.clock.pass_seconds(seconds)
        before = units(world)

        again = alice.receive("orders", 16, attempt=token, repeat=True)

        assert units(world) - before <= REPEAT_UNITS
        assert sorted(again, key=_id) == sorted(first, key=_id)

    def test_without_a_first_it_acts_as_one_within_50_units(
        self, long: tuple[World, Client]
    ) -> None:
        world, alice = long
        for _ in range(20):
            alice.receive("orders")  # receivers know the heads
        before = units(world)

        first = alice.receive("orders", 16, attempt=attempt(world), repeat=True)

        assert len(first) == 16
        assert units(world) - before <= REPEAT_UNITS + 10


def test_a_repeat_behind_a_long_flight_finds_all_given_back_one_by_one() -> None:
    """They stand at the times they were due at, and were first received long before the attempt."""
    world = World(seed=5)
    alice = queue(world, 1)
    alice.send("orders", "x" * 100)
    (parcel,) = parcels(world)
    (held,) = alice.receive("orders")
    alice.post("/queues/orders/messages/delete", {"receipts": [held["receipt"]]})
    now_ms = world.clock.now_ms()
    copies(world, parcel, 1, now_ms, now_ms + 300_000, held=True)
    world.clock.pass_seconds(600)
    alice.send("orders", "a", "b")
    for message in alice.receive("orders", 16):
        world.clock.pass_seconds(2)
        receipts = {"receipts": [message["receipt"]], "delay_seconds": 2}
        alice.post("/queues/orders/messages/give-back", receipts)
    world.clock.pass_seconds(40)
    token = attempt(world)
    first = alice.receive("orders", 16, attempt=token)
    assert [message["body"] for message in first] == ["a", "b"]
    before = units(world)

    again = alice.receive("orders", 16, attempt=token, repeat=True)

    assert units(world) - before <= REPEAT_UNITS
    assert [message["body"] for message in again] == ["a", "b"]
    assert again == first


def _id(message: dict[str, Any]) -> str:
    return str(message["id"])


def test_a_repeat_in_front_of_an_unreceived_backlog_acts_as_a_first(world: World) -> None:
    alice = queue(world, 1)
    for number in range(40):
        alice.send("orders", f"m{number}")
    assert len(alice.receive("orders", 16, attempt=attempt(world), repeat=True)) == 16


def test_a_repeat_for_fewer_gets_as_many_messages_as_it_wants() -> None:
    world = World()
    alice = queue(world, 1)
    alice.send("orders", *"abcdefgh")
    alice.send("orders", *"ijklmnop")
    token = attempt(world)
    first = alice.receive("orders", 16, attempt=token)
    assert len(first) == 16

    assert alice.receive("orders", 3, attempt=token, repeat=True) == first[:3]


def test_a_message_late_in_the_wait_is_found_by_its_repeat() -> None:
    world = World()
    alice = queue(world, 4)
    alice.send("orders", "late", delay_seconds=10)
    token = attempt(world)
    (first,) = alice.receive("orders", wait_seconds=20, attempt=token)
    world.clock.pass_seconds(5)

    assert alice.receive("orders", attempt=token, repeat=True) == [first]


@pytest.mark.few(1)
@pytest.mark.parametrize("partitions", [1, 4])
def test_a_repeat_in_an_ordered_queue_costs_at_most_50_units(partitions: int) -> None:
    world = World()
    alice = queue(world, partitions, ordered=True)
    send_to_groups(alice, 1_000, "x" * 50)
    for _ in range(20):
        alice.receive("orders", 16)
    token = attempt(world)
    first_answer = alice.receive("orders", 16, attempt=token)
    assert len(first_answer) == 16
    for _ in range(20):
        alice.receive("orders", 16)
    before = units(world)

    again = alice.receive("orders", 16, attempt=token, repeat=True)

    assert units(world) - before <= REPEAT_UNITS
    assert again == first_answer
