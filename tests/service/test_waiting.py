"""Long polls: the cost of a wait without messages, and the delay of a message that is sent."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from tests.service.test_receiving import after

from cirrusmq.receiving.polling import ROUND_SECONDS
from cirrusmq_local.testing import Client, World

POLL_UNITS = 150


def cloud() -> tuple[World, Client]:
    """A world whose caches turn over each second, as those of the cloud do."""
    world = World(shared_caches=False)
    return world, world.client("alice", admin=True)


def units(world: World) -> float:
    return float(world.engine.capacity()["read_units"])


def hold_all(alice: Client, count: int, path: str = "/queues/orders") -> None:
    """Hold all messages that there are for an hour."""
    wanted = {"max": 16, "visibility_timeout_seconds": 3_600, "wait_seconds": 20}
    held = 0
    while some := alice.post(f"{path}/messages/receive", wanted).json["messages"]:
        held += len(some)
    assert held == count


def send_to_groups(alice: Client, count: int, body: str) -> None:
    """A message in each of so many groups."""
    for first in range(0, count, 10):
        messages = [{"body": body, "group": str(first + n)} for n in range(10)]
        alice.post("/queues/orders/messages", {"messages": messages})


def poll_units(world: World, alice: Client, path: str, **fields: Any) -> float:
    """Read units of all tables that a poll of 20 s takes without any message."""
    before = units(world)
    reply = alice.post(f"{path}/messages/receive", {"max": 16, "wait_seconds": 20, **fields})
    assert reply.json == {"messages": []}
    return units(world) - before


@pytest.mark.few(5)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("partitions", [1, 4, 16, 64, 255])
def test_an_idle_poll_of_20_seconds_costs_at_most_150_units(partitions: int, ordered: bool) -> None:
    world, alice = cloud()
    alice.put("/queues/orders", {"partitions": partitions, "ordered": ordered})
    alice.put("/queues/orders/receivers/copy", {"start": "latest"})

    for _ in range(2):
        assert poll_units(world, alice, "/queues/orders") <= POLL_UNITS
    assert poll_units(world, alice, "/queues/orders", receiver="copy") <= POLL_UNITS


@pytest.mark.parametrize("kind", ["ordered", "fair"])
@pytest.mark.parametrize("partitions", [1, 4, 64])
def test_so_does_one_of_a_group(partitions: int, kind: str) -> None:
    world, alice = cloud()
    alice.put("/queues/orders", {"partitions": partitions, kind: True})
    alice.send("orders", *"abc", group="mine")
    alice.receive("orders", 16, group="mine")

    assert poll_units(world, alice, "/queues/orders", group="mine") <= POLL_UNITS
    assert poll_units(world, alice, "/queues/orders", group="another") <= POLL_UNITS


def test_so_does_one_of_a_subscription() -> None:
    world, alice = cloud()
    alice.put("/topics/news")
    path = "/topics/news/subscriptions/some"
    alice.put(path, {"protocol": "pull"})

    assert poll_units(world, alice, path) <= POLL_UNITS


def delay_seconds(world: World, alice: Client, age_seconds: float, monkeypatch: Any) -> float:
    """How long after it was sent a message ends a wait that is `age_seconds` old by then."""
    due_ms = world.clock.now_ms() + round(1000 * age_seconds)
    with monkeypatch.context() as patched:
        after(world, patched, age_seconds, lambda: alice.send("orders", "x"))
        held: list[Any] = []
        while not held:
            held = alice.receive("orders", wait_seconds=20)
    alice.post("/queues/orders/messages/delete", {"receipts": [held[0]["receipt"]]})
    return (world.clock.now_ms() - due_ms) / 1000


@pytest.mark.few(1)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("partitions", [1, 4])
def test_a_message_ends_a_wait_within_200_ms_however_long_it_has_lasted(
    partitions: int, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    alice = world.client("alice", admin=True)
    alice.put("/queues/orders", {"partitions": partitions, "ordered": ordered})
    send = alice.send
    if ordered:
        groups = iter(range(1_000))
        monkeypatch.setattr(
            alice, "send", lambda queue, body: send(queue, body, group=str(next(groups)))
        )
    # Spread evenly over three rounds of looks, and out of step with them.
    delays = [
        delay_seconds(world, alice, age_seconds + 3 * ROUND_SECONDS * number / 17, monkeypatch)
        for age_seconds in (1, 5, 18)
        for number in range(17)
    ]
    assert median(delays) <= 0.2
    assert max(delays) <= 0.5


def test_a_wait_of_any_length_looks_at_every_partition() -> None:
    world = World(seed=3)
    alice = world.client("alice", admin=True)
    alice.put("/queues/orders", {"partitions": 255})
    for _ in range(5):
        alice.send("orders", "x")

        assert len(alice.receive("orders", wait_seconds=0.001)) == 1


def test_a_message_due_at_the_end_of_the_wait_is_answered() -> None:
    world = World()
    alice = world.client("alice", admin=True)
    for number in range(10):
        alice.put(f"/queues/orders{number}")
        alice.send(f"orders{number}", "x", delay_seconds=1)

        assert len(alice.receive(f"orders{number}", wait_seconds=1)) == 1


@pytest.fixture(scope="module", params=[1, 4])
def is_backlogged(request: pytest.FixtureRequest) -> tuple[World, Client]:
    """An ordered queue most of whose groups are held."""
    world = World()
    alice = world.client("alice", admin=True)
    alice.put("/queues/orders", {"ordered": True, "partitions": request.param})
    send_to_groups(alice, 1_000, "x" * 50)
    hold_all(alice, 1_000)
    return world, alice


class TestHeldGroups:
    @pytest.mark.few(1)
    def test_a_look_costs_at_most_10_units_however_many_groups_are_held(
        self, is_backlogged: tuple[World, Client]
    ) -> None:
        world, alice = is_backlogged
        for _ in range(10):
            before = units(world)
            assert alice.receive("orders") == []
            assert units(world) - before <= 10

    def test_a_wait_finds_the_only_free_group(self, is_backlogged: tuple[World, Client]) -> None:
        world, alice = is_backlogged
        for number in range(5):
            alice.send("orders", "free", group=f"free{number}")
            before, began_ms = units(world), world.clock.now_ms()

            (message,) = alice.receive("orders", wait_seconds=20)

            assert message["body"] == "free"
            seconds = (world.clock.now_ms() - began_ms) / 1000
            assert units(world) - before <= 20 + 20 * seconds

    @pytest.mark.few(1)
    @pytest.mark.parametrize("partitions", [1, 4, 16])
    @pytest.mark.parametrize("kind", ["ordered", "fair"])
    @pytest.mark.parametrize("count", [100, 1_000])
    def test_a_poll_costs_at_most_150_units_with_any_number_of_them(
        self, kind: str, partitions: int, count: int
    ) -> None:
        world, alice = cloud()
        alice.put("/queues/orders", {kind: True, "partitions": partitions})
        send_to_groups(alice, count, "x" * 900)
        hold_all(alice, count)
        world.clock.pass_seconds(10)

        for _ in range(3):
            assert poll_units(world, alice, "/queues/orders") <= POLL_UNITS

    def test_so_does_one_of_a_subscription(self) -> None:
        world, alice = cloud()
        alice.put("/topics/news")
        path = "/topics/news/subscriptions/some"
        alice.put(path, {"protocol": "pull", "ordered": True})
        for number in range(100):
            published = {"messages": [{"body": "x" * 900, "group": str(number)}]}
            assert alice.post("/topics/news/messages", published).status == 201
        world.settle()
        hold_all(alice, 100, path)

        for _ in range(3):
            assert poll_units(world, alice, path) <= POLL_UNITS
