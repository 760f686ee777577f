"""A queue or receiver that is paused: nobody receives, sends go on, and nothing grows too old."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep
from tests.service.test_receiving import after
from tests.service.topics import TestTopic

from cirrusmq.model.pauses import MAX_PAUSES
from cirrusmq_local.testing import World

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ordered": {"ordered": True},
    "fair": {"fair": True},
}


def pause(queue: TestQueue, paused: bool = True) -> None:
    assert queue.patch(paused=paused).status == 200


def answer(queue: TestQueue, **fields: Any) -> dict[str, Any]:
    reply = queue.client.post(f"{queue.path}/messages/receive", {"wait_seconds": 0, **fields})
    assert reply.status == 200, reply.text
    shown: dict[str, Any] = reply.json
    return shown


class TestReceiving:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_paused_queue_gives_nothing_and_says_so(
        self, make_queue: MakeQueue, kind: str
    ) -> None:
        queue = make_queue(**KINDS[kind])
        queue.send("before", group="a")
        pause(queue)
        queue.send("meanwhile", group="b")

        assert answer(queue) == {"messages": [], "paused": True}
        assert queue.show()["paused"] is True
        assert queue.counts()["active"] == 2
        pause(queue, False)
        assert queue.bodies() == ["before", "meanwhile"]
        assert "paused" not in answer(queue)

    def test_a_wait_ends_with_the_pause(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue.send("x")
        pause(queue)
        after(world, monkeypatch, 0, lambda: pause(queue, False))
        assert [each["body"] for each in answer(queue, wait_seconds=10)["messages"]] == ["x"]

    def test_held_messages_are_settled(self, queue: TestQueue) -> None:
        queue.send("1", "2", "3")
        one, two, three = queue.receive()
        pause(queue)

        queue.delete(one)
        queue.give_back(two)
        queue.hold(three, 600)

        assert queue.counts() == {"active": 1, "inactive": 1}
        assert answer(queue, max=16)["paused"] is True

    def test_peeks_and_look_ups_see_waiting_messages(self, queue: TestQueue) -> None:
        (sent,) = queue.send("x")
        pause(queue)
        assert [each["body"] for each in queue.peek()] == ["x"]
        assert queue.client.get(f"{queue.path}/messages/{sent['id']}").json["state"] == "active"

    def test_a_queue_may_be_made_paused(self, make_queue: MakeQueue) -> None:
        queue = make_queue(paused=True)
        queue.send("x")
        assert answer(queue)["paused"] is True

    def test_a_pause_costs_a_look_nothing(self, world: World, queue: TestQueue) -> None:
        queue.send("x")
        pause(queue)
        answer(queue)
        assert world.units(lambda: answer(queue)) == (0, 0)

    def test_topics_go_on_delivering_to_it(self, queue: TestQueue, topic: TestTopic) -> None:
        topic.subscribe("to-queue", protocol="queue", endpoint=queue.name)
        pause(queue)
        topic.publish("copy")
        assert answer(queue)["messages"] == []
        pause(queue, False)
        assert queue.bodies() == ["copy"]


class TestReceivers:
    def change(self, queue: TestQueue, **fields: Any) -> dict[str, Any]:
        reply = queue.client.patch(f"{queue.path}/receivers/audit", fields)
        assert reply.status == 200, reply.text
        shown: dict[str, Any] = reply.json
        return shown

    def test_each_is_paused_by_itself(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("audit")
        assert self.change(queue, paused=True)["paused"] is True
        queue.send("x")
        world.settle()

        assert answer(queue, receiver="audit") == {"messages": [], "paused": True}
        assert queue.bodies() == ["x"]
        pause(queue)
        self.change(queue, paused=False)
        assert queue.bodies(receiver="audit") == ["x"]

    def test_a_change_is_shown_with_its_time(self, world: World, queue: TestQueue) -> None:
        made = queue.add_receiver("audit")
        world.clock.pass_seconds(5)
        changed = self.change(queue, paused=True)
        shown = queue.client.get(f"{queue.path}/receivers/audit").json
        assert made["modified_at"] < changed["modified_at"] == shown["modified_at"]
        assert self.change(queue)["modified_at"] == changed["modified_at"]


class TestAges:
    """`max_age_seconds` does not count the time of a pause; the retention does."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_pause_makes_no_dead_letters(
        self, world: World, make_queue: MakeQueue, kind: str
    ) -> None:
        limit = {"queue": "dead", "max_age_seconds": 600}
        dead = make_queue("dead", ordered=kind == "ordered")
        queue = make_queue(dead_letter=limit, **KINDS[kind])
        queue.send("old", group="a")
        world.clock.pass_seconds(400)
        pause(queue)
        for _ in range(3):
            sweep(world, after_seconds=1_000)
        pause(queue, False)
        sweep(world, after_seconds=100)

        assert (dead.counts(), queue.counts()) == ({}, {"active": 1})
        sweep(world, after_seconds=200)
        assert [each["dead_letter"]["reason"] for each in dead.receive()] == ["max_age"]
        assert queue.receive() == []

    def test_a_receiver_is_as_a_queue(self, world: World, make_queue: MakeQueue) -> None:
        make_queue("dead")
        queue = make_queue(dead_letter={"queue": "dead", "max_age_seconds": 600})
        queue.add_receiver("audit")
        queue.client.patch(f"{queue.path}/receivers/audit", {"paused": True})
        queue.send("x")
        world.settle()
        queue.delete(*queue.receive())
        sweep(world, after_seconds=5_000)

        queue.client.patch(f"{queue.path}/receivers/audit", {"paused": False})
        assert queue.bodies(receiver="audit") == ["x"]

    def test_a_message_expires_in_a_paused_queue(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(message_retention_seconds=60)
        queue.send("x")
        pause(queue)
        world.clock.pass_seconds(61)
        pause(queue, False)
        assert queue.bodies() == []

    def test_many_pauses_are_kept_within_a_bound(self, world: World, make_queue: MakeQueue) -> None:
        make_queue("dead")
        queue = make_queue(dead_letter={"queue": "dead", "max_age_seconds": 600})
        queue.send("x")
        for _ in range(MAX_PAUSES + 10):
            pause(queue)
            world.clock.pass_seconds(60)
            pause(queue, False)
            world.clock.pass_seconds(10)
        assert queue.bodies() == ["x"]


class TestFunctions:
    def test_none_is_called_until_the_queue_is_resumed(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        called: list[str] = []
        world.handle = lambda event: called.extend(each["body"] for each in event["Records"])
        queue = make_queue(invoke={"function": "handler"})
        pause(queue)
        queue.send("x")
        world.settle()
        sweep(world)
        assert called == []

        pause(queue, False)
        sweep(world, after_seconds=60)
        assert called == ["x"]
