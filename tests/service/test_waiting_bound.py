"""A bound of the receives of an account that wait at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from cirrusmq.base.errors import Unavailable
from cirrusmq.receiving.poll_limit import waiting
from cirrusmq_local.testing import Client, World

WAIT_SECONDS = 20


@pytest.fixture
def world() -> World:
    made = World()
    made.client("alice").put("/queues/orders", {})
    bound = replace(made.core.settings, account_waiting_receives=2)
    made.core = replace(made.core, settings=bound)
    return made


def wait(client: Client, seconds: float = WAIT_SECONDS) -> tuple[float, int]:
    """A long poll: how many seconds it took, and how many messages it got."""
    begun_ms = client.world.clock.now_ms()
    received = client.receive("orders", wait_seconds=seconds)
    return (client.world.clock.now_ms() - begun_ms) / 1000, len(received)


def amid(world: World, happen: Callable[[], object]) -> None:
    """Let something happen at the first pause of the next wait."""
    sleep = world.clock.sleep

    def sleep_once(seconds: float) -> None:
        world.clock.sleep = sleep  # type: ignore[method-assign]
        happen()
        sleep(seconds)

    world.clock.sleep = sleep_once  # type: ignore[method-assign]


def counting_writes(world: World, call: Callable[[], object]) -> list[str]:
    """The expressions of the updates, by a call, of what counts the receives that wait."""
    noted = []
    execute = world.engine.execute

    def note(operation: str, request: Any) -> Any:
        if operation == "UpdateItem" and request["Key"]["sk"] == {"S": "waiting"}:
            noted.append(request["UpdateExpression"])
        return execute(operation, request)

    world.engine.execute = note  # type: ignore[method-assign]
    call()
    world.engine.execute = execute  # type: ignore[method-assign]
    return noted


def waits_beside(world: World, client: Client, others: int) -> list[tuple[float, int]]:
    """So many long polls begin while each one before still waits; in the order they end."""
    ended: list[tuple[float, int]] = []

    def begin(left: int) -> None:
        if left:
            amid(world, lambda: begin(left - 1))
        ended.append(wait(client))

    begin(others)
    return ended


def test_above_the_bound_the_answer_comes_at_once(world: World, alice: Client) -> None:
    third, second, first = waits_beside(world, alice, 2)
    assert third == (0, 0)
    assert second[0] == pytest.approx(WAIT_SECONDS, abs=1)
    assert first[0] >= WAIT_SECONDS


def test_a_present_message_is_answered_beside_all_waits(world: World, alice: Client) -> None:
    got: list[tuple[float, int]] = []

    def send_and_receive() -> None:
        alice.send("orders", "x")
        got.append(wait(alice))

    def begin_second() -> None:
        amid(world, send_and_receive)
        wait(alice)

    amid(world, begin_second)
    wait(alice)
    assert got == [(0, 1)]


def test_another_account_waits_by_itself(world: World, alice: Client) -> None:
    bob = world.client("bob")
    bob.put("/queues/orders", {})
    got: list[tuple[float, int]] = []

    def begin_second() -> None:
        amid(world, lambda: got.append(wait(bob)))
        wait(alice)

    amid(world, begin_second)
    wait(alice)
    assert got[0][0] >= WAIT_SECONDS


def test_a_wait_ended_by_a_message_makes_room(world: World, alice: Client) -> None:
    def begin_two() -> None:
        amid(world, lambda: alice.send("orders", "x"))
        assert wait(alice)[1] == 1
        assert wait(alice)[0] >= WAIT_SECONDS

    amid(world, begin_two)
    wait(alice)


def test_a_crashed_receive_counts_to_its_end_and_no_longer(world: World, alice: Client) -> None:
    until_ms = world.clock.now_ms() + WAIT_SECONDS * 1000
    crashed = [waiting(world.core, "alice", until_ms) for _ in range(2)]
    assert [each.__enter__() for each in crashed] == [True, True]
    assert wait(alice) == (0, 0)
    world.clock.pass_seconds(WAIT_SECONDS + 1)
    assert wait(alice)[0] >= WAIT_SECONDS


def test_a_wait_costs_one_write_two_if_a_message_ends_it_and_a_short_one_none(
    world: World, alice: Client
) -> None:
    assert len(counting_writes(world, lambda: wait(alice))) == 1
    assert counting_writes(world, lambda: wait(alice, 1)) == []
    amid(world, lambda: alice.send("orders", "x"))
    assert len(counting_writes(world, lambda: wait(alice))) == 2
    unbound = replace(world.core.settings, account_waiting_receives=0)
    world.core = replace(world.core, settings=unbound)
    assert counting_writes(world, lambda: wait(alice)) == []


def test_the_item_stays_within_one_unit(world: World, alice: Client) -> None:
    for _ in range(100):
        wait(alice, 2)
    (item,) = (each for each in world.items("usage") if each["sk"]["S"] == "waiting")
    assert len(item) < 40


def test_a_failed_count_turns_nobody_away(
    world: World, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise Unavailable

    monkeypatch.setattr(world.core.store, "write", fail)
    assert all(seconds >= WAIT_SECONDS for seconds, _ in waits_beside(world, alice, 2))
