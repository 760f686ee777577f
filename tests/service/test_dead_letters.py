"""Dead letters by count, by age, by retries and by the consumer's word."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue

from cirrusmq_local.testing import World


def by_count(limit: int = 1) -> dict[str, Any]:
    return {"queue": "dead", "max_receives": limit}


def by_age(seconds: int = 300) -> dict[str, Any]:
    return {"queue": "dead", "max_age_seconds": seconds}


@pytest.mark.parametrize("limit", [1, 3])
def test_a_receive_beyond_max_receives_moves_the_message(
    world: World, dead: TestQueue, make_queue: MakeQueue, limit: int
) -> None:
    queue = make_queue(dead_letter=by_count(limit))
    queue.send("x")
    for count in range(1, limit + 1):
        (message,) = queue.receive()
        assert message["receive_count"] == count
        world.clock.pass_seconds(30)
        assert dead.receive() == []

    assert queue.receive() == []
    world.settle()

    assert (queue.counts(), dead.counts()) == ({}, {"active": 1})


@pytest.mark.parametrize("size", [3, 60_000])
def test_a_dead_letter_keeps_its_fields_and_tells_its_origin(
    world: World, dead: TestQueue, make_queue: MakeQueue, size: int
) -> None:
    queue = make_queue(dead_letter=by_count())
    (sent,) = queue.send("x" * size, attributes={"a": "1"}, tags=["t"], group="g")
    queue.receive()
    world.clock.pass_seconds(50)
    queue.receive()
    world.settle()
    world.clock.pass_seconds(10)

    (letter,) = dead.receive()

    assert letter["id"] == sent["id"]
    assert letter["body"] == "x" * size
    assert (letter["attributes"], letter["tags"], letter["group"]) == ({"a": "1"}, ["t"], "g")
    assert letter["receive_count"] == 1
    assert letter["sent_at"] == "2026-11-18T11:07:30.000Z"  # its life starts anew
    assert letter["expires_at"] == "2026-11-22T11:07:30.000Z"
    assert letter["dead_letter"] == {
        "source_queue": "orders",
        "receive_count": 1,
        "dead_at": "2026-11-18T11:07:30.000Z",
        "reason": "max_receives",
    }


def test_its_body_outlives_its_source(world: World, dead: TestQueue, make_queue: MakeQueue) -> None:
    queue = make_queue(dead_letter=by_count(), message_retention_seconds=60)
    queue.send("x" * 60_000)
    queue.act("dead-letter", *queue.receive())
    queue.client.delete(queue.path)
    world.clock.pass_seconds(3_600)
    world.engine.remove_expired()

    assert len(dead.bodies()[0]) == 60_000


def test_of_several_messages_of_a_send_each_has_its_own_count(
    world: World, dead: TestQueue, make_queue: MakeQueue
) -> None:
    queue = make_queue(dead_letter=by_count(2))
    queue.send("a", "b", "c")
    queue.receive(1)
    world.clock.pass_seconds(30)
    queue.receive(2)
    world.clock.pass_seconds(30)

    left = queue.receive_all()
    world.settle()

    assert sorted(message["receive_count"] for message in left) == [1, 2]
    assert len(dead.receive_all()) == 1


class TestByTheConsumer:
    @pytest.mark.parametrize("reason", [None, "", "broken: é", "r" * 256])
    def test_the_reason_is_the_consumers_text(
        self, dead: TestQueue, make_queue: MakeQueue, reason: str | None
    ) -> None:
        queue = make_queue(dead_letter=by_count())
        queue.send("x")
        (held,) = queue.receive()
        fields = {} if reason is None else {"reason": reason}

        answer = queue.act("dead-letter", held, **fields)

        assert answer == {"deleted": [held["receipt"]], "failed": []}
        (letter,) = dead.receive()
        expected = "consumer" if reason is None else reason
        assert letter["dead_letter"]["reason"] == expected
        assert queue.act("delete", held)["failed"][0]["code"] == "ReceiptExpired"

    def test_without_a_dead_letter_queue_nothing_moves(self, queue: TestQueue) -> None:
        queue.send("x")
        (held,) = queue.receive()

        answer = queue.act("dead-letter", held)

        assert answer["deleted"] == []
        assert answer["failed"][0]["receipt"] == held["receipt"]
        assert answer["failed"][0]["code"] == "NoDeadLetterQueue"
        queue.delete(held)

    def test_a_stale_receipt_is_told_before_a_missing_queue(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("x")
        (held,) = queue.receive()
        world.clock.pass_seconds(30)
        queue.receive()

        assert queue.act("dead-letter", held)["failed"][0]["code"] == "ReceiptExpired"


class TestByAge:
    @pytest.fixture
    def ageing(self, dead: TestQueue, make_queue: MakeQueue) -> TestQueue:
        """A queue whose messages are too old after 300 seconds."""
        return make_queue(dead_letter=by_age())

    def test_an_older_message_moves_at_a_receive(
        self, world: World, dead: TestQueue, ageing: TestQueue
    ) -> None:
        ageing.send("x")
        world.clock.pass_seconds(300)
        (held,) = ageing.receive()  # not older yet
        ageing.give_back(held)
        world.clock.pass_seconds(0.001)

        assert ageing.receive() == []
        world.settle()

        (letter,) = dead.receive()
        assert letter["dead_letter"]["reason"] == "max_age"
        assert letter["dead_letter"]["receive_count"] == 1

    def test_the_sweep_moves_it_without_receives(
        self, world: World, dead: TestQueue, ageing: TestQueue
    ) -> None:
        ageing.send("x", "y")
        world.clock.pass_seconds(300)
        world.run("sweep")
        assert dead.counts() == {}

        world.clock.pass_seconds(0.001)
        world.run("sweep")

        assert (ageing.counts(), dead.counts()) == ({}, {"active": 2})

    def test_a_held_message_stays(self, world: World, dead: TestQueue, ageing: TestQueue) -> None:
        ageing.send("x")
        (held,) = ageing.receive(visibility_timeout_seconds=1_000)
        world.clock.pass_seconds(999)
        world.run("sweep")
        ageing.receive()
        assert dead.counts() == {}
        assert len(ageing.hold(held, 10)["changed"]) == 1
        world.clock.pass_seconds(10)

        world.run("sweep")

        assert dead.counts() == {"active": 1}

    @pytest.mark.parametrize("seconds", [30, 3_600])
    def test_waiting_for_a_retry_is_not_being_held(
        self, world: World, dead: TestQueue, ageing: TestQueue, seconds: int
    ) -> None:
        ageing.send("x")
        world.clock.pass_seconds(290)
        ageing.give_back(*ageing.receive(), delay_seconds=seconds)
        world.clock.pass_seconds(11)

        world.run("sweep")

        assert (ageing.counts(), dead.counts()) == ({}, {"active": 1})

    def test_a_retrys_wait_is_not_being_held(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        retry = {"policy": "custom", "waits": [3_600]}
        queue = make_queue(dead_letter=by_age(), retry=retry)
        queue.send("x")
        world.clock.pass_seconds(280)
        queue.receive(visibility_timeout_seconds=10)
        for _ in range(5):
            world.clock.pass_seconds(5)
            queue.receive()
            world.run("sweep")

        assert dead.counts() == {"active": 1}

    def test_a_message_waiting_before_an_age_is_set_is_swept(
        self, world: World, dead: TestQueue, queue: TestQueue
    ) -> None:
        queue.send("x")
        queue.give_back(*queue.receive(), delay_seconds=43_200)
        queue.patch(dead_letter=by_age())
        world.clock.pass_seconds(301)

        world.run("sweep")

        assert dead.counts() == {"active": 1}

    def test_a_delayed_message_is_exempt_until_its_delay_is_over(
        self, world: World, dead: TestQueue, ageing: TestQueue
    ) -> None:
        ageing.send("x", delay_seconds=1_000)
        world.clock.pass_seconds(999)
        world.run("sweep")
        assert dead.counts() == {}
        world.clock.pass_seconds(1)

        assert ageing.receive() == []
        world.settle()
        assert dead.counts() == {"active": 1}

    def test_a_queue_without_an_age_is_not_swept(
        self, world: World, dead: TestQueue, ageing: TestQueue
    ) -> None:
        ageing.patch(dead_letter=by_count())
        ageing.send("x")
        world.clock.pass_seconds(3_000)
        world.run("sweep")

        assert dead.counts() == {}

    def test_an_expired_message_is_no_dead_letter(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(dead_letter=by_age(), message_retention_seconds=400)
        queue.send("x")
        world.clock.pass_seconds(400)
        world.run("sweep")
        queue.receive()

        assert dead.counts() == {}

    def test_a_purged_message_is_no_dead_letter(
        self, world: World, dead: TestQueue, ageing: TestQueue
    ) -> None:
        ageing.send("x")
        ageing.start("purge")  # its steps have not run yet
        world.clock.pass_seconds(301)
        world.run("sweep")
        ageing.receive()

        assert dead.counts() == {}


class TestTheDeadLetterQueue:
    @pytest.mark.parametrize(
        ("member", "low", "high"), [("max_receives", 1, 1000), ("max_age_seconds", 300, 43_200)]
    )
    def test_its_bounds_have_two_edges(
        self, dead: TestQueue, queue: TestQueue, member: str, low: int, high: int
    ) -> None:
        for value in (low, high):
            dead_letter = {"queue": "dead", member: value}
            assert queue.patch(dead_letter=dead_letter).json["dead_letter"] == dead_letter
        for value in (low - 1, high + 1):
            reply = queue.patch(dead_letter={"queue": "dead", member: value})
            assert (reply.code, reply.json["parameter"]) == (
                "InvalidParameter",
                f"dead_letter.{member}",
            )
