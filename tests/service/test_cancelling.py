"""Cancelling a message by its id, and changing when it is due, before anybody receives it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, to_ms, usage
from tests.service.test_looking_up import UNITS, ask, find, read_units
from tests.service.test_receiving import attempt

from cirrusmq_local.testing import Reply, World


def cancel(queue: TestQueue, message_id: str, query: str = "") -> Reply:
    return queue.client.call("DELETE", f"{queue.path}/messages/{message_id}", query=query)


def reschedule(queue: TestQueue, message_id: str, query: str = "", **due: Any) -> Reply:
    return queue.client.call("PATCH", f"{queue.path}/messages/{message_id}", due, query=query)


def due_at(queue: TestQueue, message_id: str, **due: Any) -> int:
    """Reschedule a message; when it is due then, in milliseconds since the epoch."""
    reply = reschedule(queue, message_id, **due)
    assert reply.status == 200, reply.text
    shown: dict[str, Any] = reply.json
    assert shown == find(queue, message_id)
    return to_ms(shown["visible_at"])


class TestCancelling:
    @pytest.mark.parametrize("size", [1, 3_000, 60_000])
    @pytest.mark.parametrize("delay", [None, 0, 600])
    def test_a_cancelled_message_is_never_received(
        self, world: World, make_queue: MakeQueue, size: int, delay: int | None
    ) -> None:
        queue = make_queue("orders", delay_seconds=60)
        more = {} if delay is None else {"delay_seconds": delay}
        first, second, third = queue.send("1" * size, "2", "3", **more)
        assert cancel(queue, second["id"]).status == 204
        assert ask(queue, second["id"]).code == "MessageNotFound"
        world.clock.pass_seconds(600)
        assert {each["id"] for each in queue.receive_all()} == {first["id"], third["id"]}
        assert sum(queue.counts().values()) == 2

    def test_a_repeated_cancellation_is_answered_alike(
        self, world: World, queue: TestQueue
    ) -> None:
        (sent,) = queue.send("x")
        world.clock.pass_seconds(3_600)  # longer than any send is repeated
        assert cancel(queue, sent["id"]).status == 204
        for _ in range(3):
            assert queue.receive() == []
            world.clock.pass_seconds(30)
            assert cancel(queue, sent["id"]).status == 204
        world.clock.pass_seconds(60)
        assert queue.receive() == []
        world.settle()  # which removes what is left of it
        assert cancel(queue, sent["id"]).code == "MessageNotFound"
        assert not [each for each in world.items() if each["pk"]["S"].startswith("Q#")]

    def test_a_repeated_send_does_not_bring_it_back(self, world: World, queue: TestQueue) -> None:
        body = {"messages": [{"body": "x", "delay_seconds": 5}], "attempt": attempt(world)}
        (sent,) = queue.client.post(f"{queue.path}/messages", body).json["messages"]
        assert cancel(queue, sent["id"]).status == 204
        world.clock.pass_seconds(100)
        assert queue.receive() == []
        (again,) = queue.client.post(f"{queue.path}/messages", body).json["messages"]
        assert again["id"] == sent["id"]
        world.clock.pass_seconds(10)
        assert queue.receive() == []

    def test_a_received_message_is_its_receivers(self, world: World, queue: TestQueue) -> None:
        (sent,) = queue.send("x")
        assert queue.receive(visibility_timeout_seconds=5)
        for _ in range(2):
            for reply in (
                cancel(queue, sent["id"]),
                reschedule(queue, sent["id"], delay_seconds=9),
            ):
                assert (reply.status, reply.code) == (409, "Conflict")
            world.clock.pass_seconds(6)  # the lease is over
        queue.delete(*queue.receive())
        assert cancel(queue, sent["id"]).code == "MessageNotFound"
        assert reschedule(queue, sent["id"], delay_seconds=9).code == "MessageNotFound"

    def test_a_dead_letter_was_received(self, dead: TestQueue, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
        (sent,) = queue.send("x")
        queue.act("dead-letter", *queue.receive())
        assert cancel(dead, sent["id"]).code == "Conflict"
        assert [each["id"] for each in dead.receive()] == [sent["id"]]

    def test_a_cancelled_message_is_not_rewound(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", rewind_seconds=3_600)
        began = world.clock.now_ms()
        sent = queue.send("1", "2", "3")
        assert cancel(queue, sent[1]["id"]).status == 204
        queue.delete(*queue.receive_all())
        world.clock.pass_seconds(300)
        assert queue.receive() == []
        queue.run("rewind", to=began / 1000)
        assert queue.bodies() == ["1", "3"]

    def test_it_is_billed_as_deleted(self, world: World, queue: TestQueue) -> None:
        one, two = queue.send("1", "2")
        due_at(queue, one["id"], delay_seconds=10)
        due_at(queue, one["id"], delay_seconds=20)
        cancel(queue, one["id"])
        cancel(queue, two["id"])
        world.settle()
        assert usage(world) == {"queue:orders sent": 2, "queue:orders deleted": 2}
        assert queue.counts() == {}

    def test_each_receiver_has_a_message_of_its_own(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("audit")
        world.clock.pass_seconds(5)
        one, two = queue.send("1", "2", delay_seconds=60)
        world.settle()
        assert cancel(queue, one["id"]).status == 204
        assert cancel(queue, two["id"], "receiver=audit").status == 204
        assert reschedule(queue, one["id"], "receiver=audit", delay_seconds=5).status == 200
        assert cancel(queue, two["id"], "receiver=none").code == "ReceiverNotFound"
        world.clock.pass_seconds(5)
        assert queue.bodies(receiver="audit", visibility_timeout_seconds=600) == ["1"]
        world.clock.pass_seconds(60)
        assert queue.bodies() == ["2"]
        assert queue.bodies(receiver="audit") == []


class TestRescheduling:
    @pytest.mark.parametrize("size", [1, 3_000, 60_000])
    @pytest.mark.parametrize("delay", [0, 600])
    def test_a_message_is_due_when_it_was_last_said(
        self, world: World, queue: TestQueue, size: int, delay: int
    ) -> None:
        bodies = [f"{n}" * size for n in range(3)]
        sent = queue.send(*bodies, delay_seconds=delay)
        world.clock.pass_seconds(100)
        for seconds in (30, 5, 900, 900, 10):
            due_ms = due_at(queue, sent[1]["id"], delay_seconds=seconds)
            assert due_ms == world.clock.now_ms() + seconds * 1000
            assert find(queue, sent[1]["id"])["state"] == "delayed"
            assert queue.counts()["delayed"] == (3 if delay else 1)
            assert find(queue, sent[1]["id"], body="true")["message"]["body"] == bodies[1]
        assert bodies[1] not in queue.bodies(visibility_timeout_seconds=3_600)
        world.clock.pass_seconds(10)
        (got,) = queue.receive()
        assert (got["id"], got["body"], got["sent_at"]) == (
            *(sent[1]["id"], bodies[1]),
            sent[1]["sent_at"],
        )
        assert got["expires_at"] == find(queue, sent[0]["id"])["expires_at"]

    def test_a_time_can_be_said_again(self, world: World, queue: TestQueue) -> None:
        (sent,) = queue.send("x", delay_seconds=600)
        at = world.clock.now_ms() / 1000 + 90
        assert due_at(queue, sent["id"], deliver_at=at) == round(at * 1000)
        world.engine.reset_capacity()
        assert due_at(queue, sent["id"], deliver_at=at) == round(at * 1000)
        written = world.engine.capacity()["by_table"][world.tables.messages]["write_units"]
        assert written == 0
        now_ms = world.clock.now_ms()
        assert due_at(queue, sent["id"], deliver_at="2001-01-01T00:00:00Z") == now_ms
        (got,) = queue.receive()
        assert got["id"] == sent["id"]

    def test_its_life_does_not_get_longer(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", message_retention_seconds=600)
        (sent,) = queue.send("x")
        world.clock.pass_seconds(100)
        reply = reschedule(queue, sent["id"], delay_seconds=500)
        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "delay_seconds")
        reply = reschedule(queue, sent["id"], deliver_at="2101-01-01T00:00:00Z")
        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "deliver_at")
        due_at(queue, sent["id"], delay_seconds=499)
        world.clock.pass_seconds(500)
        assert queue.receive() == []
        assert ask(queue, sent["id"]).code == "MessageNotFound"

    def test_a_purge_takes_it_wherever_it_is(self, world: World, queue: TestQueue) -> None:
        one, two = queue.send("1", "2", delay_seconds=60)
        due_at(queue, one["id"], delay_seconds=10)
        queue.client.post(f"{queue.path}/purge")
        for message in (one, two):
            assert cancel(queue, message["id"]).code == "MessageNotFound"
            assert reschedule(queue, message["id"], delay_seconds=0).code == "MessageNotFound"
        world.settle()
        world.clock.pass_seconds(60)
        assert queue.receive() == []

    def test_a_message_put_off_beyond_its_age_becomes_a_dead_letter(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        old = {"queue": "dead", "max_age_seconds": 300}
        queue = make_queue("orders", dead_letter=old)
        (sent,) = queue.send("x")
        due_at(queue, sent["id"], delay_seconds=1_000)
        for _ in range(16):
            world.clock.pass_seconds(60)
            world.run("sweep")
        assert dead.receive() == []
        for _ in range(3):
            world.clock.pass_seconds(60)
            world.run("sweep")
        (got,) = dead.receive()
        assert (got["id"], got["dead_letter"]["reason"]) == (sent["id"], "max_age")

    def test_it_can_be_given_back_and_dead_lettered_later(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
        (sent,) = queue.send("x")
        due_at(queue, sent["id"], delay_seconds=10)
        world.clock.pass_seconds(10)
        queue.give_back(*queue.receive(), delay_seconds=30)
        assert find(queue, sent["id"])["receive_count"] == 1
        world.clock.pass_seconds(30)
        queue.act("dead-letter", *queue.receive())
        assert [each["id"] for each in dead.receive()] == [sent["id"]]


class TestBounds:
    @pytest.mark.long
    def test_one_is_found_by_its_id_in_any_backlog(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", partitions=1)
        rest = ["x" * 400] * 2
        (first,) = queue.send("own", delay_seconds=500)
        for seconds in (400, 500, 600):
            for _ in range(400):
                queue.send(*rest, delay_seconds=seconds)
        reply, units = read_units(world, partial(ask, queue, first["id"]))
        assert (reply.status, units) == (200, 1)
        due_at(queue, first["id"], delay_seconds=501)
        reply, units = read_units(world, partial(ask, queue, first["id"]))
        assert reply.status == 200
        assert units <= 5
        reply, units = read_units(world, partial(cancel, queue, first["id"]))
        assert reply.status == 204
        assert units <= 5
        reply, units = read_units(world, partial(cancel, queue, "Msg-" + "0" * 27))
        assert reply.code == "MessageNotFound"
        assert units <= UNITS

    @pytest.mark.parametrize("repeatable", [False, True])
    def test_the_delay_in_an_id_is_the_first_one_of_its_own(
        self, world: World, make_queue: MakeQueue, repeatable: bool
    ) -> None:
        queue = make_queue("orders", delay_seconds=5)
        messages = [{"body": "1"}, {"body": "2", "delay_seconds": 0}, {"body": "3"}]
        more = {"attempt": attempt(world)} if repeatable else {}
        sent = queue.try_send(messages, **more).json["messages"]
        for message, limit in zip(sent, (2, 1, 2), strict=True):
            reply, units = read_units(world, partial(ask, queue, message["id"]))
            assert reply.status == 200
            assert units <= limit

    def test_their_costs(self, world: World, queue: TestQueue) -> None:
        (sent,) = queue.send("x", delay_seconds=60)

        def units(call: Any) -> tuple[float, float]:
            world.engine.reset_capacity()
            assert call().status in (200, 204)
            used = world.engine.capacity()["by_table"][world.tables.messages]
            return used["write_units"], used["read_units"]

        assert units(partial(reschedule, queue, sent["id"], delay_seconds=5)) == (6, 1)
        assert units(partial(reschedule, queue, sent["id"], delay_seconds=9))[0] == 6
        assert units(partial(cancel, queue, sent["id"]))[0] == 1
