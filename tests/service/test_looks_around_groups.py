"""Looks that read a part of a source go on where they stopped, until they have seen every group."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest
from tests.service.test_invoking import Handler
from tests.service.topics import Schedules

from cirrusmq.lifecycle.dead_letters import age_limit
from cirrusmq.maintenance.sweep import sweep
from cirrusmq.model.parcel import key_prefix
from cirrusmq.model.source import queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.receiving import rounds
from cirrusmq.sending.making import group_hash
from cirrusmq.storage import lease
from cirrusmq_local.testing import Client, World
from cirrusmq_local.testing.core import FUNCTION

GROUPS = 1_500
LONG = pytest.mark.long
INVOKE = {
    "function": FUNCTION,
    "batch": 10,
    "max_concurrency": 5,
    "timeout_seconds": 5,
}
DEAD: dict[str, Any] = {"queue": "dead", "max_receives": 5, "max_age_seconds": 43_200}
QUERY_SECONDS = 0.005
"""Of the store, in the cloud."""


def by_key(count: int) -> list[str]:
    """Names of groups in the order of their keys, which is the order of a walk."""
    return sorted((f"g{number}" for number in range(count)), key=group_hash)


def send_all(alice: Client, groups: list[str], body: str = "x", together: int = 16) -> None:
    for first in range(0, len(groups), together):
        messages = [{"body": body, "group": group} for group in groups[first : first + together]]
        assert alice.post("/queues/q/messages", {"messages": messages}).status == 201


def make(kind: str, world: World, **attributes: Any) -> Client:
    alice = world.client("alice", admin=True)
    alice.put("/queues/dead")
    grouped = {} if kind == "plain" else {kind: True}
    assert alice.put("/queues/q", {"partitions": 1} | grouped | attributes).status == 201
    return alice


class Failed:
    """A queue whose function failed a message of each of these groups, five minutes ago."""

    def __init__(
        self,
        kind: str,
        groups: list[str],
        timeout_seconds: int = 7_200,
        *,
        together: int = 16,
        sweeps: bool = True,
        **attributes: Any,
    ) -> None:
        self.world = World()
        attributes |= {"visibility_timeout_seconds": timeout_seconds, "invoke": INVOKE}
        self.alice = make(kind, self.world, **attributes)
        self.handler = Handler(self.world)
        self.handler.fails = lambda record: record["body"] == "fails"
        self.schedules = Schedules(self.world, sweeps=sweeps)
        send_all(self.alice, groups, "fails", together)
        self.schedules.pass_seconds(300)

    @property
    def done(self) -> list[str]:
        return [body for body in self.handler.bodies if body != "fails"]


class TestFunctions:
    @pytest.mark.long
    @pytest.mark.parametrize("at", [0.05, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize("kind", ["fair", "ordered"])
    def test_a_new_group_among_1_500_waiting_ones_is_served_within_two_minutes(
        self, kind: str, at: float
    ) -> None:
        groups = by_key(GROUPS)
        new = groups.pop(int(GROUPS * at))
        failed = Failed(kind, groups)
        failed.alice.send("q", "healthy", group=new)

        failed.schedules.pass_seconds(120)

        assert failed.done == ["healthy"]

    @pytest.mark.few(1)
    @pytest.mark.parametrize("kind", ["fair", pytest.param("ordered", marks=LONG), "plain"])
    def test_a_lost_wake_up_behind_failed_messages_is_found_within_two_minutes(
        self, kind: str
    ) -> None:
        groups = by_key(GROUPS)
        new = groups.pop()
        ordered = kind == "ordered"
        failed = Failed(kind, groups if ordered else [new] * 100, together=16 if ordered else 1)
        failed.alice.send("q", "healthy", group=new)
        failed.world.run_stream("fan_out")
        failed.world.run_stream("meter")
        failed.world.invoked.clear()

        failed.schedules.pass_seconds(130)

        assert failed.done == ["healthy"]

    @pytest.mark.long
    @pytest.mark.parametrize("kind", ["fair", "ordered"])
    def test_due_messages_are_served_on_time_though_their_worker_forgot_them(
        self, kind: str
    ) -> None:
        """A worker remembers sixteen due times, and a walk finds the others."""
        failed = Failed(kind, by_key(GROUPS), 600)
        inactive = failed.alice.get("/queues/q").json["counts"]["inactive"]
        failed.handler.bodies.clear()
        failed.handler.fails = lambda record: False

        failed.schedules.pass_seconds(600)

        assert inactive == GROUPS
        assert len(failed.handler.bodies) == GROUPS

    @pytest.mark.long
    def test_looks_for_many_wake_ups_cost_at_most_20_units_a_second(self) -> None:
        """Beside those 20, for each message a few claims of 8 units, and first pages."""
        failed = Failed("ordered", by_key(GROUPS), sweeps=False)
        world = failed.world

        def send_many() -> None:
            for number in range(100):
                failed.alice.send("q", "healthy", group=f"new{number}")
                failed.schedules.pass_seconds(0.1)
            failed.schedules.pass_seconds(20)

        begun_ms = world.clock.now_ms()
        _, read = world.units(send_many)

        seconds = (world.clock.now_ms() - begun_ms) / 1000
        assert failed.done == ["healthy"] * 100
        assert read <= 64 + 20 * seconds + 100 * 50

    @pytest.mark.long
    @pytest.mark.parametrize("partitions", [1, 4, 16])
    def test_idle_looks_end(self, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where nothing is ready and nothing is put, a round a minute is all that is read."""
        monkeypatch.setattr(rounds, "LOOK_UNITS", 16.0)  # several looks for a round
        failed = Failed("ordered", by_key(GROUPS), partitions=partitions)
        failed.schedules.pass_seconds(300)

        _, read = failed.world.units(lambda: failed.schedules.pass_seconds(600))

        round_units = GROUPS / 8
        assert read / 10 <= round_units + 100 + 16 * partitions  # with the first pages of looks


def hold_all(kind: str, world: World, groups: list[str], body: str = "x") -> Client:
    """A queue with a message in each of these groups, all of which are held for long."""
    alice = make(kind, world, visibility_timeout_seconds=43_200)
    send_all(alice, groups, body)
    held = 0
    while some := alice.receive("q", 16, wait_seconds=20):
        held += len(some)
    assert held == len(groups)
    return alice


class TestReceives:
    @pytest.mark.long
    @pytest.mark.parametrize("kind", [pytest.param("fair", marks=LONG), "ordered"])
    @pytest.mark.parametrize("seeds", [[1], pytest.param([0, 2, 3, 4, 5], marks=LONG)])
    def test_short_receives_find_the_one_free_group_within_32_looks(
        self, kind: str, seeds: list[int]
    ) -> None:
        """Of 1,000 groups of 1 KiB; the receives of one environment go on where one was cut."""
        for seed in seeds:
            world = World(seed=seed)
            groups = by_key(1_000)
            free = groups.pop(seed * 160)
            alice = hold_all(kind, world, groups, "x" * 900)
            alice.send("q", "free", group=free)

            looks = next(n for n in range(1, 100) if alice.receive("q", 1))

            assert looks <= 32


class TestFigures:
    @pytest.mark.long
    @pytest.mark.parametrize("kind", ["fair", pytest.param("ordered", marks=LONG), "plain"])
    def test_the_age_alarm_sees_a_message_behind_all_held_ones_until_it_is_gone(
        self, kind: str
    ) -> None:
        world = World()
        groups = by_key(GROUPS)
        last = groups.pop()
        alice = hold_all(kind, world, groups)
        alice.send("q", "waits", group=last)
        world.settle()
        ages = []
        for _ in range(5):
            world.clock.pass_seconds(60)
            ages.append(sweep(world.core, 50_000).oldest_age_ms // 1000)

        assert ages[-1] == pytest.approx(300, abs=2)
        assert ages == sorted(ages)
        (message,) = alice.receive("q", 1, wait_seconds=20)
        alice.post("/queues/q/messages/delete", {"receipts": [message["receipt"]]})
        for _ in range(4):
            world.clock.pass_seconds(60)
            age_ms = sweep(world.core, 50_000).oldest_age_ms

        assert age_ms == 0


class Slow:
    """The store with the time of its answers, and the queries that were made."""

    def __init__(self, world: World) -> None:
        self.queries = 0
        self._world, self._execute = world, world.engine.execute
        world.engine.execute = self  # type: ignore[method-assign]

    def __call__(self, operation: str, request: Mapping[str, Any], *more: Any, **named: Any) -> Any:
        self._world.clock.pass_seconds(QUERY_SECONDS)
        self.queries += operation == "Query"
        return self._execute(operation, request, *more, **named)

    def end(self) -> None:
        self._world.engine.execute = self._execute  # type: ignore[method-assign]


class TestAges:
    GROUPS = 9_000

    @pytest.mark.long
    @pytest.mark.parametrize("kind", ["fair", pytest.param("ordered", marks=LONG)])
    @pytest.mark.parametrize("each", [1, pytest.param(30, marks=LONG)])
    def test_a_sweep_is_bounded_and_goes_on_until_the_last_groups_old_message_is_dead(
        self, kind: str, each: int
    ) -> None:
        count = self.GROUPS // each if kind == "ordered" else self.GROUPS // 3
        world = World()
        alice = make(kind, world, dead_letter=DEAD)
        groups = by_key(count)
        old = [groups[0], groups[-1]]
        send_all(alice, old, "old")
        world.settle()
        world.clock.pass_seconds(DEAD["max_age_seconds"])
        for _ in range(each if kind == "ordered" else 1):
            send_all(alice, groups[1:-1])
        dead: list[str] = []
        for _ in range(10):
            world.settle()
            slow, begun_ms = Slow(world), world.clock.now_ms()
            world.run("sweep")
            world.settle()
            slow.end()
            assert slow.queries <= 1_200
            assert world.clock.now_ms() - begun_ms <= 30_000
            world.clock.pass_seconds(60)
            peeked = alice.post("/queues/dead/messages/peek", {"max": 16}).json["messages"]
            dead = sorted(message["group"] for message in peeked)
            if len(dead) == 2:
                break

        assert dead == sorted(old)


def test_names_of_groups_are_in_the_order_of_their_keys() -> None:
    groups = by_key(100)
    prefixes = [key_prefix(f"{group_hash(group)}#1") for group in groups]

    assert prefixes == sorted(prefixes)


class TestLeases:
    @pytest.mark.long
    def test_the_lease_of_a_partition_is_renewed_while_its_store_is_slow(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.modules[__name__], "QUERY_SECONDS", 0.2)
        monkeypatch.setattr(age_limit, "STEP_PAGES", 100_000)
        world = World()
        alice = make("fair", world, dead_letter=DEAD)
        groups = by_key(600)
        for _ in range(8):
            send_all(alice, groups)
        world.settle()
        for _ in range(3):  # which pass them once
            world.clock.pass_seconds(70)
            world.run("sweep")
            world.settle()
        until_ms, writes = 0, list[int]()
        slow = Slow(world)
        inner = slow.__call__

        def noting(operation: str, request: Mapping[str, Any], *more: Any, **named: Any) -> Any:
            nonlocal until_ms
            values = request.get("ExpressionAttributeValues", {})
            if "held_until_ms = :until" in request.get("UpdateExpression", ""):
                now_ms = world.clock.now_ms()
                assert not until_ms or now_ms < until_ms - 10_000
                until_ms = int(values[":until"]["N"])
                writes.append(now_ms)
            return inner(operation, request, *more, **named)

        monkeypatch.setattr(world.engine, "execute", noting)
        source = alice.get("/queues/q").json["id"]
        world.run("replay", {"aged": {"resource": source, "partition": 0}})

        assert len(writes) >= 3
        (state,) = (each for each in world.items() if each["sk"]["S"] == "~")
        assert not state.keys() & {"holder", "held_until_ms"}

    def test_a_former_holder_neither_renews_nor_frees_the_lease(self) -> None:
        world = World()
        make("fair", world, dead_letter=DEAD)
        queue = get_queue(world.core, "alice", "q")
        source = queue_source(queue, world.core.now_ms())
        first = age_limit.hold(world.core, source, 0)
        assert first is not None
        assert age_limit.hold(world.core, source, 0) is None
        world.clock.pass_seconds(61)  # over, but not by a clock that is two seconds behind
        assert age_limit.hold(world.core, source, 0) is None
        world.clock.pass_seconds(2)
        second = age_limit.hold(world.core, source, 0)
        assert second is not None
        until_ms = age_limit.read_state(world.core, source, 0).held_until_ms

        assert not lease.renew(world.core, first, 60_000)
        lease.release(world.core, first)

        assert age_limit.read_state(world.core, source, 0).held_until_ms == until_ms
        assert lease.renew(world.core, second, 60_000)
        lease.release(world.core, second)
        assert age_limit.hold(world.core, source, 0) is not None
