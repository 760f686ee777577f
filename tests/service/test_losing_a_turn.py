"""Messages given back get a later key: they starve no others, and no others starve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, to_ms, usage
from tests.service.crashes import before_transactions
from tests.service.faults import Throttled
from tests.service.test_costs import parcels
from tests.service.test_receiving import attempt

from cirrusmq.base.limits import MOVES_PER_SECOND
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import World


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    """A queue of one partition, so that its order can be told."""
    return make_queue(partitions=1, visibility_timeout_seconds=600)


def give_back(queue: TestQueue, message: Message, how: str) -> None:
    if how == "give-back":
        queue.give_back(message)
    else:
        assert len(queue.hold(message, 0)["changed"]) == 1


@pytest.mark.parametrize("how", ["give-back", "visibility"])
def test_a_message_given_back_again_and_again_starves_nobody(
    world: World, queue: TestQueue, how: str
) -> None:
    queue.send("poison")
    for number in range(20):
        queue.send(f"{number}")
    received = set()
    for _ in range(60):
        world.clock.pass_seconds(2)
        (message,) = queue.receive(1)
        received.add(message["body"])
        if message["body"] == "poison":
            give_back(queue, message, how)
        else:
            queue.delete(message)

    assert len(received) == 21


@pytest.mark.parametrize("how", ["give-back", "visibility"])
@pytest.mark.parametrize("held_seconds", [0, 0.9, 1, 5])
def test_it_is_active_at_once_and_its_receipt_has_ended(
    world: World, queue: TestQueue, how: str, held_seconds: float
) -> None:
    queue.send("x")
    (held,) = queue.receive()
    world.clock.pass_seconds(held_seconds)

    give_back(queue, held, how)

    for verb in ("delete", "give-back", "dead-letter"):
        assert queue.act(verb, held)["failed"][0]["code"] == "ReceiptExpired"
    assert queue.hold(held, 5)["failed"][0]["code"] == "ReceiptExpired"
    assert queue.hold(held, 0)["failed"][0]["code"] == "ReceiptExpired"
    assert queue.counts() == {"active": 1}
    assert len(queue.peek()) == 1
    (again,) = queue.receive()
    same = ("id", "body", "sent_at", "expires_at", "first_received_at")
    assert {name: again[name] for name in same} == {name: held[name] for name in same}
    assert again["receive_count"] == 2
    queue.delete(again)
    assert queue.counts() == {}


def test_a_failure_costs_four_write_units_however_many_messages_fail_together(
    world: World, queue: TestQueue
) -> None:
    queue.send(*"abcdefghijklmnop")
    held = queue.receive()
    world.clock.pass_seconds(1)

    assert world.write_units(lambda: queue.give_back(*held)) == 4

    again = queue.receive()
    assert sorted(message["body"] for message in again) == list("abcdefghijklmnop")
    world.clock.pass_seconds(5)
    assert world.write_units(lambda: queue.give_back(*again)) == 4


def test_a_fresh_message_is_given_back_in_place(world: World, queue: TestQueue) -> None:
    queue.send("x")
    held = queue.receive()
    world.clock.pass_seconds(0.9)

    assert world.write_units(lambda: queue.give_back(*held)) == 1


def test_when_everything_fails_most_is_given_back_in_place(world: World, queue: TestQueue) -> None:
    for number in range(3 * MOVES_PER_SECOND):
        queue.send(f"{number}")
    held = queue.receive_all()
    world.clock.pass_seconds(2)

    units = world.write_units(lambda: [queue.give_back(message) for message in held])

    assert units == MOVES_PER_SECOND * 4 + 2 * MOVES_PER_SECOND
    assert len(queue.receive_all()) == 3 * MOVES_PER_SECOND


def test_a_throttled_move_is_given_back_in_place(world: World, queue: TestQueue) -> None:
    queue.send("x")
    (held,) = queue.receive()
    world.clock.pass_seconds(2)
    Throttled(world, lambda operation, _: operation == "TransactWriteItems")

    queue.give_back(held)

    assert len(queue.receive()) == 1


def test_a_give_back_with_a_lost_answer_is_told_as_done(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("x")
    (held,) = queue.receive()
    world.clock.pass_seconds(2)
    execute = world.engine.execute

    def lose(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = execute(operation, request)
        if operation == "TransactWriteItems":
            raise EngineError("InternalServerError", "the answer is lost", status=500)
        return answer

    monkeypatch.setattr(world.engine, "execute", lose)

    (given,) = queue.give_back(held)

    assert to_ms(given["visible_at"]) == world.clock.now_ms()
    assert [message["receive_count"] for message in queue.receive_all()] == [2]


def test_a_neighbour_deleted_meanwhile_does_not_matter(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("a", "b", "c")
    a, b, c = sorted(queue.receive(), key=lambda message: str(message["body"]))
    world.clock.pass_seconds(200)  # so old that its parcel could vanish
    queue.delete(c)
    before_transactions(world, monkeypatch, lambda: queue.delete(b))

    queue.give_back(a)

    assert queue.bodies() == ["a"]
    world.settle()
    assert len(parcels(world)) == 1


def test_messages_of_one_send_with_waits_of_their_own_go_each_to_its_time(
    world: World, make_queue: MakeQueue
) -> None:
    make_queue("dead")
    queue = make_queue(
        partitions=1,
        retry={"policy": "custom", "waits": [10], "jitter": 0.9},
        dead_letter={"queue": "dead", "max_receives": 9},
    )
    queue.send(*"abcd")
    held = queue.receive()
    world.clock.pass_seconds(2)

    given = queue.give_back(*held)

    due = {each["receipt"]: to_ms(each["visible_at"]) for each in given}
    assert len(set(due.values())) > 1
    for message in sorted(held, key=lambda each: due[each["receipt"]]):
        world.clock.pass_seconds((due[message["receipt"]] - world.clock.now_ms() - 1) / 1000)
        assert message["id"] not in {each["id"] for each in queue.receive()}
        world.clock.pass_seconds(0.001)
        assert message["id"] in {each["id"] for each in queue.receive()}


def test_in_a_lagging_queue_it_loses_its_turn_but_not_the_day(
    world: World, queue: TestQueue
) -> None:
    queue.send("first")
    world.clock.pass_seconds(2)
    queue.send("second")
    world.clock.pass_seconds(7_200)
    queue.send("last")
    (held,) = queue.receive(1)
    assert held["body"] == "first"
    world.clock.pass_seconds(1)

    queue.give_back(held)

    received = [queue.receive(1)[0]["body"] for _ in range(3)]
    assert received == ["second", "first", "last"]


def test_a_delay_is_no_lag(world: World, queue: TestQueue) -> None:
    queue.send("delayed", delay_seconds=7_200)
    world.clock.pass_seconds(7_200)
    (held,) = queue.receive()
    world.clock.pass_seconds(10)
    queue.send("next")
    world.clock.pass_seconds(0.1)

    queue.give_back(held)

    assert [queue.receive(1)[0]["body"] for _ in range(2)] == ["next", "delayed"]


@pytest.mark.parametrize("seconds", [0, 5, 100])
def test_nobody_counts_a_moved_message_twice(world: World, queue: TestQueue, seconds: int) -> None:
    queue.send(*"abcd")
    for _ in range(3):
        held = queue.receive()
        world.clock.pass_seconds(200)
        queue.give_back(*held[:3], delay_seconds=seconds)
        queue.give_back(*held[3:], delay_seconds=seconds)
        world.clock.pass_seconds(seconds)
    world.settle()
    assert usage(world) == {"queue:orders sent": 4, "queue:orders received": 12}
    assert queue.counts() == {"active": 4}

    queue.delete(*queue.receive_all())
    world.settle()

    assert usage(world)["queue:orders deleted"] == 4
    assert parcels(world) == []


def test_an_ordered_queue_gives_back_in_place(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(ordered=True)
    queue.send("1", group="g")
    queue.send("2", group="g")
    (held,) = queue.receive(1)
    world.clock.pass_seconds(5)

    assert world.write_units(lambda: queue.hold(held, 0)) == 1

    assert [message["body"] for message in queue.receive()] == ["1", "2"]


class TestTombstones:
    def test_a_send_repeated_in_the_last_moment_finds_the_moved_message(
        self, world: World, queue: TestQueue
    ) -> None:
        token = attempt(world)
        queue.try_send([{"body": "x"}], attempt=token)
        (held,) = queue.receive()
        world.clock.pass_seconds(2)
        queue.give_back(held)
        world.clock.pass_seconds(117.9)
        queue.receive_all()

        assert queue.try_send([{"body": "x"}], attempt=token).status == 201

        world.clock.pass_seconds(600)
        assert len(queue.receive_all()) == 1

    def test_it_outlives_the_messages_it_was_sent_with(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        dead_letter = {"queue": "dead", "max_receives": 9}
        queue = make_queue(message_retention_seconds=60, dead_letter=dead_letter)
        token = attempt(world)
        queue.try_send([{"body": "a"}, {"body": "b"}], attempt=token)
        (held, _) = queue.receive()
        queue.act("dead-letter", held)
        world.clock.pass_seconds(110)
        world.engine.remove_expired()

        assert queue.try_send([{"body": "a"}, {"body": "b"}], attempt=token).status == 201

        assert queue.receive() == []
        assert len(dead.receive()) == 1

    def test_it_goes_when_no_attempt_can_be_so_old(self, world: World, queue: TestQueue) -> None:
        queue.send("x")
        (held,) = queue.receive()
        world.clock.pass_seconds(2)
        queue.give_back(held)
        assert len(parcels(world)) == 2
        world.clock.pass_seconds(157)
        queue.receive()
        world.engine.remove_expired()
        assert len(parcels(world)) == 2

        world.clock.pass_seconds(3)
        world.engine.remove_expired()

        assert len(parcels(world)) == 1
        world.settle()
        assert usage(world) == {"queue:orders sent": 1, "queue:orders received": 2}

    def test_a_moved_message_leaves_none_behind(self, world: World, queue: TestQueue) -> None:
        queue.send("x")
        for _ in range(5):
            world.clock.pass_seconds(2)
            queue.give_back(*queue.receive())

        assert len(parcels(world)) == 2


class TestByAge:
    @pytest.fixture
    def aging(self, make_queue: MakeQueue, dead: TestQueue) -> TestQueue:
        return make_queue(
            partitions=1,
            visibility_timeout_seconds=3_600,
            dead_letter={"queue": "dead", "max_age_seconds": 300},
        )

    @pytest.mark.parametrize("seconds", [0, 5, 3_600])
    def test_a_too_old_message_goes_to_the_dead_letters(
        self, world: World, aging: TestQueue, dead: TestQueue, seconds: int
    ) -> None:
        aging.send("a", "b")
        held = aging.receive()
        world.clock.pass_seconds(301)

        aging.give_back(*held, delay_seconds=seconds)

        assert (aging.counts(), dead.counts()) == ({}, {"active": 2})
        (letter, _) = dead.receive_all()
        assert letter["dead_letter"]["reason"] == "max_age"

    def test_a_move_leaves_a_note_of_when_the_message_is_too_old(
        self, world: World, aging: TestQueue
    ) -> None:
        aging.send("a")
        sent_ms = world.clock.now_ms()
        (held,) = aging.receive()
        world.clock.pass_seconds(5)

        assert world.write_units(lambda: aging.give_back(held, delay_seconds=100)) == 6

        (moved,) = (p for p in parcels(world) if p["v"]["L"][0]["N"] != "-2")
        (note,) = (item for item in world.items() if item["pk"]["S"].startswith("A#"))
        assert note["pk"]["S"][1:] == moved["pk"]["S"][1:]
        assert note["sk"]["S"] == f"{sent_ms + 300_000:013d}#{moved['sk']['S']}"
        assert note["expires_at"] == moved["expires_at"]
