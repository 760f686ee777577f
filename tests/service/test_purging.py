"""Purging: nothing sent before the call is ever returned again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, usage
from tests.service.crashes import before_each_call, before_transactions, crash, run_in_small_steps
from tests.service.test_repeated_sends import attempt

from cirrusmq.runtime.core import Core
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


def test_a_send_after_the_answer_stays(world: World, full: TestQueue) -> None:
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


def test_it_goes_on_after_running_out_of_time(world: World, full: TestQueue) -> None:
    full.start("purge")

    assert run_in_small_steps(world) > 8

    assert {item["pk"]["S"][0] for item in world.items()} <= {"L"}


@pytest.mark.few(8)
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

    def test_it_is_not_deleted_by_a_purge_of_the_first_one(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = attempt(world)
        queue.try_send([{"body": "x"}], attempt=token)
        queue.start("purge")
        sent: list[int] = []

        def send_before_the_removal(operation: str, _: object) -> None:
            if operation in ("DeleteItem", "BatchWriteItem") and not sent:
                sent.append(queue.try_send([{"body": "x"}], attempt=token).status)

        before_each_call(world, monkeypatch, send_before_the_removal)
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


class TestDeduplicatedSends:
    """A deduplication id of a purged message is free, but for repetitions of its own send."""

    @pytest.mark.parametrize("attributes", [{}, {"ordered": True}, {"fair": True}])
    @pytest.mark.parametrize("settled", [True, False])
    def test_sent_after_the_purge_it_is_a_new_message(
        self,
        world: World,
        make_queue: MakeQueue,
        attributes: dict[str, Any],
        *,
        settled: bool,
    ) -> None:
        queue = make_queue(**attributes)
        fields = {"deduplication_id": "k", **({"group": "g"} if attributes else {})}
        (first,) = queue.send("first", **fields)
        queue.start("purge")
        if settled:
            world.settle()

        (second,) = queue.send("second", **fields)
        third = queue.send("third", **fields)

        assert second["id"] != first["id"]
        assert third == [second]
        world.settle()
        assert queue.bodies() == ["second"]

    def test_receivers_get_it_as_well(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("copy")
        queue.send("first", deduplication_id="k")
        world.settle()
        queue.start("purge")

        queue.send("second", deduplication_id="k")

        world.settle()
        assert queue.bodies() == queue.bodies(receiver="copy") == ["second"]

    def test_a_batch_has_duplicates_of_sends_after_the_purge_alone(
        self, world: World, queue: TestQueue
    ) -> None:
        def messages(*keys: str) -> list[dict[str, Any]]:
            return [{"body": key, "deduplication_id": key} for key in keys]

        queue.try_send([*messages("before", "both")])
        queue.start("purge")
        (kept,) = queue.send("both", deduplication_id="both")

        sent = queue.try_send([*messages("before", "both", "new"), {"body": "plain"}])

        assert sent.json["messages"][1] == kept
        world.settle()
        assert queue.bodies() == ["before", "both", "new", "plain"]

    def test_a_repetition_is_answered_with_the_purged_message_met_by_the_first(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The purge is of a time between that message and the attempt, which has not seen it."""
        queue.send("met", deduplication_id="k")
        world.clock.pass_seconds(1)
        floor_ms = world.clock.now_ms()
        world.clock.pass_seconds(1)
        token = attempt(world)
        messages = [{"body": each, "deduplication_id": each} for each in ("k", "l")]
        first = queue.try_send(messages, attempt=token)
        with monkeypatch.context() as patch:
            patch.setattr(Core, "floor_ms", lambda _: floor_ms)
            queue.start("purge")

        again = queue.try_send(messages, attempt=token)

        assert again.json == first.json
        world.settle()
        assert queue.bodies() == ["l"]

    def test_a_repeated_attempt_of_before_is_no_new_message(
        self, world: World, queue: TestQueue
    ) -> None:
        token = attempt(world)
        message = [{"body": "x", "deduplication_id": "k"}]
        first = queue.try_send(message, attempt=token)
        queue.start("purge")
        world.settle()

        again = queue.try_send(message, attempt=token)

        assert (again.status, again.json) == (201, first.json)
        assert queue.receive() == []

    def test_nor_is_it_one_beside_a_later_send(self, world: World, queue: TestQueue) -> None:
        token = attempt(world)
        message = [{"body": "x", "deduplication_id": "k"}]
        queue.try_send(message, attempt=token)
        queue.start("purge")
        (new,) = queue.send("new", deduplication_id="k")

        again = queue.try_send(message, attempt=token)

        assert again.json["messages"] == [new]
        assert queue.bodies() == ["new"]

    def test_an_attempt_of_after_is_repeated_as_ever(self, world: World, queue: TestQueue) -> None:
        queue.send("first", deduplication_id="k")
        queue.start("purge")
        token = attempt(world)
        messages = [{"body": "second", "deduplication_id": "k"}, {"body": "plain"}]

        replies = [queue.try_send(messages, attempt=token) for _ in range(3)]

        assert replies[1].json == replies[2].json == replies[0].json
        assert queue.bodies() == ["plain", "second"]

    def test_a_rewind_brings_back_sends_after_the_purge_alone(
        self, make_queue: MakeQueue, now: Callable[..., str]
    ) -> None:
        queue = make_queue(rewind_seconds=3_600)
        start = now(-60)
        for body in ("first", "second"):
            queue.send(body, deduplication_id="k")
            queue.delete(*queue.receive())
            if body == "first":
                queue.run("purge")

        assert queue.run("rewind", to=start)["done"] == 1
        assert queue.bodies() == ["second"]

    def test_two_at_once_after_the_purge_store_one_message(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue.send("first", deduplication_id="k")
        queue.start("purge")
        others: list[dict[str, Any]] = []
        before_transactions(
            world,
            monkeypatch,
            lambda: others.extend(queue.send("other", deduplication_id="k")),
            1,
        )

        sent = queue.send("second", deduplication_id="k")

        assert sent == others
        assert queue.bodies() == ["other"]
