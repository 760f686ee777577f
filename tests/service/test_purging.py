"""Purging: nothing sent before the call is ever returned again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.crashes import crash, run_in_small_steps

from cirrusmq_local.testing import World


@pytest.fixture
def full(world: World, make_queue: MakeQueue) -> TestQueue:
    """A queue with messages in every state, and a receiver."""
    queue = make_queue("orders", rewind_seconds=3_600)
    queue.add_receiver("copy")
    queue.send("deleted")
    queue.delete(*queue.receive())
    queue.send("waiting")
    queue.give_back(*queue.receive(), delay_seconds=100)
    queue.send("half deleted", "held")
    held = queue.receive()
    queue.delete(held[0])
    queue.send("delayed", delay_seconds=200)
    queue.send("active", "large" * 1_000)
    world.settle()
    return queue


def test_everything_sent_before_is_gone_whatever_its_state(
    world: World, full: TestQueue, now: Callable[..., str]
) -> None:
    start = now(-60)
    held = full.receive(1)

    full.start("purge")

    for _ in range(2):  # before its steps have run, and after
        assert full.receive() == full.receive(receiver="copy") == full.peek() == []
        assert full.counts() == {}
        assert full.act("delete", *held)["failed"][0]["code"] == "ReceiptExpired"
        world.settle()
    world.clock.pass_seconds(300)
    assert full.receive() == full.receive(receiver="copy") == []
    assert full.run("rewind", to=start)["done"] == 0
    left = {item["pk"]["S"][0] for item in world.items()}
    assert left <= {"L"}


def test_what_is_sent_after_the_answer_stays(world: World, full: TestQueue) -> None:
    full.start("purge")
    full.send("new")
    world.settle()

    assert full.bodies() == ["new"]
    assert full.bodies(receiver="copy") == ["new"]


def test_it_is_an_operation_with_progress(full: TestQueue) -> None:
    operation = full.run("purge")

    assert (operation["kind"], operation["state"]) == ("purge", "succeeded")
    # default: waiting, held, delayed, active, large; half deleted is rewindable, deleted archived;
    # copy: all seven.
    assert operation["done"] >= 12


def test_an_empty_body_is_all_it_takes(queue: TestQueue) -> None:
    assert queue.client.post(f"{queue.path}/purge").status == 202
    assert queue.client.post(f"{queue.path}/purge", {}).status == 202
    reply = queue.client.post(f"{queue.path}/purge", {"all": True})
    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "all")


def test_it_goes_on_where_it_ran_out_of_time(world: World, full: TestQueue) -> None:
    full.start("purge")

    assert run_in_small_steps(world) > 8

    assert {item["pk"]["S"][0] for item in world.items()} <= {"L"}


@pytest.mark.parametrize("calls", range(2, 30, 3))
def test_it_survives_the_failure_of_any_call(
    world: World, full: TestQueue, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    operation = full.start("purge")

    assert crash(world, monkeypatch, calls)

    assert full.client.get(f"/operations/{operation}").json["state"] == "succeeded"
    assert {item["pk"]["S"][0] for item in world.items()} <= {"L"}


def test_a_new_receiver_gets_nothing_from_before(world: World, full: TestQueue) -> None:
    full.run("purge")
    full.send("new")
    full.add_receiver("late", start="earliest")
    world.settle()

    assert full.bodies(receiver="late") == ["new"]
