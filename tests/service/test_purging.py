"""Purging: nothing sent before the call is ever returned again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, usage
from tests.service.crashes import crash, run_in_small_steps
from tests.service.test_repeated_sends import attempt

from cirrusmq.storage.counters import read_kept
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


class TestRepeatedSends:
    """A send repeated with its attempt has the key of the first one, which a purge removes."""

    @pytest.mark.parametrize("size", [1, 5_000])
    @pytest.mark.parametrize("delay", [0, 100])
    def test_repeated_after_the_answer_it_is_sent_after_the_purge(
        self, world: World, queue: TestQueue, size: int, delay: int
    ) -> None:
        message = [{"body": "x" * size, "delay_seconds": delay}]
        token = attempt(world)
        first = queue.try_send(message, attempt=token)
        world.clock.pass_seconds(1)
        queue.start("purge")

        again = queue.try_send(message, attempt=token)

        assert again.json["messages"][0]["id"] == first.json["messages"][0]["id"]
        assert again.json["messages"][0]["sent_at"] > first.json["messages"][0]["sent_at"]
        world.settle()
        world.clock.pass_seconds(delay)
        assert queue.bodies() == ["x" * size]

    def test_nothing_of_the_first_one_is_left_in_it(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(rewind_seconds=3_600)
        token = attempt(world)
        messages = [{"body": "a"}, {"body": "b"}, {"body": "c"}]
        queue.try_send(messages, attempt=token)
        held = queue.receive()
        queue.delete(held[0])
        queue.give_back(held[1], delay_seconds=100)
        queue.start("purge")

        queue.try_send(messages, attempt=token)

        assert queue.act("delete", held[2])["failed"][0]["code"] == "ReceiptExpired"
        assert queue.counts() == {"active": 3}
        world.settle()
        received = queue.receive()
        assert sorted(each["body"] for each in received) == ["a", "b", "c"]
        assert {each["receive_count"] for each in received} == {1}

    def test_it_is_not_deleted_by_a_purge_that_read_the_first_one(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = attempt(world)
        queue.try_send([{"body": "x"}], attempt=token)
        queue.start("purge")
        execute = world.engine.execute
        sent: list[int] = []

        def send_before_the_removal(operation: str, request: Any) -> dict[str, Any]:
            if operation in ("DeleteItem", "BatchWriteItem") and not sent:
                sent.append(queue.try_send([{"body": "x"}], attempt=token).status)
            return execute(operation, request)

        monkeypatch.setattr(world.engine, "execute", send_before_the_removal)
        world.settle()

        assert sent == [201]
        assert queue.bodies() == ["x"]

    @pytest.mark.parametrize("purge_first", [True, False])
    @pytest.mark.parametrize("fanned_out", [True, False])
    def test_receivers_get_it_as_well(
        self, world: World, queue: TestQueue, purge_first: bool, fanned_out: bool
    ) -> None:
        queue.add_receiver("copy")
        world.clock.pass_seconds(1)
        token = attempt(world)
        queue.try_send([{"body": "x"}], attempt=token)
        if fanned_out:
            world.settle()
        queue.start("purge")
        if purge_first:
            world.settle()

        assert queue.try_send([{"body": "x"}], attempt=token).status == 201

        world.settle()
        assert queue.bodies() == ["x"]
        assert queue.bodies(receiver="copy") == ["x"]

    def test_the_first_ones_delay_does_not_hide_it(self, world: World, queue: TestQueue) -> None:
        token = attempt(world)
        queue.try_send([{"body": "x"}], attempt=token)
        queue.patch(delay_seconds=5)
        queue.start("purge")

        queue.try_send([{"body": "x"}], attempt=token)

        world.settle()
        world.clock.pass_seconds(5)
        assert queue.bodies() == ["x"]

    def test_a_deduplicated_message_stays_sent_once_and_the_others_are_sent_anew(
        self, world: World, queue: TestQueue
    ) -> None:
        token = attempt(world)
        messages = [{"body": "once", "deduplication_id": "1"}, {"body": "again"}]
        first = queue.try_send(messages, attempt=token)
        world.clock.pass_seconds(1)
        queue.start("purge")

        again = queue.try_send(messages, attempt=token)
        third = queue.try_send(messages, attempt=token)

        assert [each["id"] for each in again.json["messages"]] == [
            each["id"] for each in first.json["messages"]
        ]
        assert third.json == again.json
        world.settle()
        assert queue.bodies() == ["again"]

    def test_it_is_counted_as_sent_and_the_first_one_as_deleted(
        self, world: World, queue: TestQueue
    ) -> None:
        token = attempt(world)
        queue.try_send([{"body": "x"}], attempt=token)
        world.settle()
        queue.start("purge")
        queue.try_send([{"body": "x"}], attempt=token)
        world.settle()

        assert usage(world) == {"queue:orders sent": 2, "queue:orders deleted": 1}
        assert read_kept(world.core, queue.show()["id"]).messages == 1
