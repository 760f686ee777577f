"""Queues with priorities: nothing is received while something of a higher one could be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, bodies, sweep
from tests.service.test_receiving import attempt
from tests.service.topics import TestTopic

from cirrusmq_local.testing import World


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", priorities=16)


def send(queue: TestQueue, *priorities: int | None, **fields: Any) -> list[Message]:
    """A message of each priority, in calls of their own, with the priority as its body."""
    sent = []
    for priority in priorities:
        given = {} if priority is None else {"priority": priority}
        sent += queue.send(f"{priority or 1}", **given, **fields)
        queue.client.world.clock.pass_seconds(0.002)
    return sent


class TestOrder:
    def test_the_highest_come_first_and_in_order_of_sending(self, queue: TestQueue) -> None:
        send(queue, 1, 16, 7, None, 16, 9)

        received = [*queue.receive(1), *queue.receive(2), *queue.receive()]

        assert bodies(received) == ["16", "16", "9", "7", "1", "1"]
        assert [each.get("priority") for each in received] == [16, 16, 9, 7, None, None]
        assert received[0]["attributes"] == {}

    def test_a_later_higher_one_overtakes_a_backlog(self, queue: TestQueue) -> None:
        for _ in range(30):
            queue.send(*["low"] * 16, priority=2)
        assert bodies(queue.receive(4)) == ["low"] * 4
        send(queue, 3)
        assert bodies(queue.receive(4))[0] == "3"

    def test_an_answer_ends_at_a_level_with_more(self, queue: TestQueue) -> None:
        for number in range(40):
            queue.send(f"9.{number}", priority=9)
        send(queue, 1)
        seen = []
        while found := queue.receive(16):
            seen += bodies(found)
            assert not ("1" in seen and len(seen) < 41)
        assert len(seen) == 41

    def test_a_delayed_one_comes_first_when_it_is_due(self, world: World, queue: TestQueue) -> None:
        send(queue, 16, delay_seconds=10)
        send(queue, 1, 1)
        assert bodies(queue.receive(1)) == ["1"]
        world.clock.pass_seconds(10)
        assert bodies(queue.receive(1)) == ["16"]

    def test_one_with_an_expired_lease_comes_first_again(
        self, world: World, queue: TestQueue
    ) -> None:
        send(queue, 16, 1, 1)
        (held,) = queue.receive(1, visibility_timeout_seconds=5)
        assert bodies(queue.receive(1)) == ["1"]
        world.clock.pass_seconds(5)
        assert bodies(queue.receive(1)) == ["16"]
        assert held["receive_count"] == 1

    def test_a_message_given_back_keeps_its_priority(self, world: World, queue: TestQueue) -> None:
        send(queue, 16, 1)
        queue.give_back(*queue.receive(1), delay_seconds=5)
        world.clock.pass_seconds(6)
        assert bodies(queue.receive()) == ["16", "1"]

    def test_held_levels_do_not_hide_those_below(self, queue: TestQueue) -> None:
        for priority in range(16, 1, -1):
            for _ in range(12):
                queue.send("held", priority=priority)
        while queue.receive():
            pass
        send(queue, 1)
        assert bodies(queue.receive(1)) == ["1"]


class TestContract:
    def test_counts_are_by_priority(self, queue: TestQueue) -> None:
        send(queue, 16, 3, 3, None)
        queue.receive(1)
        counts = queue.show()["counts"]
        assert (counts["active"], counts["inactive"]) == (3, 1)
        assert counts["active_by_priority"] == {"3": 2, "1": 1}


class TestWithOthers:
    def test_a_repeated_send_stores_nothing_twice(self, world: World, queue: TestQueue) -> None:
        messages = [{"body": "a", "priority": 9}, {"body": "b"}]
        mine = attempt(world)
        first = queue.try_send(messages, attempt=mine).json["messages"]
        world.clock.pass_seconds(5)
        again = queue.try_send(messages, attempt=mine).json["messages"]
        assert first == again
        assert bodies(queue.receive_all()) == ["a", "b"]

    @pytest.mark.few(2)
    @pytest.mark.parametrize("priority", [1, 9, 16])
    def test_look_ups_and_cancellations_find_it_by_its_id(
        self, queue: TestQueue, priority: int
    ) -> None:
        for _ in range(400):
            queue.send("x" * 700, priority=9)
        (sent,) = send(queue, priority)
        path = f"{queue.path}/messages/{sent['id']}"

        found = queue.client.get(path, "body=true").json
        assert found["message"].get("priority", 1) == priority
        moved = queue.client.patch(path, {"delay_seconds": 60})
        assert (moved.status, moved.json["state"]) == (200, "delayed")
        assert queue.client.delete(path).status == 204
        assert queue.client.get(path).code == "MessageNotFound"

    def test_a_look_up_reads_the_levels_with_messages(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        """By the meter's count; those of a moment ago are found behind them."""
        queue = make_queue("many", priorities=32)
        (first,), (last,) = send(queue, 9), send(queue, 32)
        world.run_stream("meter")
        (late,) = send(queue, 20)

        def units(sent: Message) -> float:
            path = f"{queue.path}/messages/{sent['id']}"
            world.engine.reset_capacity()
            assert queue.client.get(path).status == 200
            tables = world.engine.capacity()["by_table"]
            return float(sum(each["read_units"] for each in tables.values()))

        assert [units(first), units(last)] == [2.5, 2.5]
        assert units(late) == 0.5 + 2 + 1 + 30
        path = f"{queue.path}/messages/{last['id']}"
        assert queue.client.patch(path, {"delay_seconds": 60}).status == 200
        assert queue.client.delete(path).status == 204

    def test_dead_letters_keep_it_and_bring_it_back(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(priorities=8, dead_letter={"queue": "dead", "max_receives": 5})
        send(queue, 7)
        queue.act("dead-letter", *queue.receive(), reason="bad")
        (letter,) = dead.peek()
        assert letter["priority"] == 7
        send(queue, 6)
        assert queue.client.post("/queues/dead/redrive", {}).status == 202
        world.settle()
        assert bodies(queue.receive()) == ["7", "6"]

    def test_a_receiver_from_the_beginning_too(self, world: World, queue: TestQueue) -> None:
        send(queue, 1, 16, 7)
        queue.add_receiver("audit", start="earliest")
        sweep(world, after_seconds=60)
        assert bodies(queue.receive(receiver="audit")) == ["16", "7", "1"]

    def test_copies_of_a_topic_have_the_lowest(self, queue: TestQueue, topic: TestTopic) -> None:
        topic.subscribe("to-queue", protocol="queue", endpoint=queue.name)
        topic.publish("copy")
        send(queue, 2)
        assert bodies(queue.receive()) == ["2", "copy"]

    def test_rewound_messages_have_their_place(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(priorities=4, rewind_seconds=3_600)
        start = world.clock.now_ms()
        send(queue, 1, 4, 2)
        queue.delete(*queue.receive())
        world.clock.pass_seconds(2)
        assert queue.run("rewind", to=start // 1000)["state"] == "succeeded"
        assert bodies(queue.receive()) == ["4", "2", "1"]

    def test_a_purge_leaves_nothing(self, queue: TestQueue) -> None:
        send(queue, 16, 1)
        queue.run("purge")
        assert queue.receive() == []

    def test_old_messages_are_given_up_on_every_level(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        queue = make_queue(priorities=4, dead_letter={"queue": "dead", "max_age_seconds": 300})
        send(queue, 4, 1)
        sweep(world, after_seconds=302)
        assert (len(dead.receive()), queue.counts()) == (2, {})

    def test_a_function_gets_the_highest_first(self, world: World, make_queue: MakeQueue) -> None:
        got: list[str] = []
        world.handle = lambda event: got.extend(each["body"] for each in event["Records"])
        queue = make_queue(priorities=4, invoke={"function": "handler", "batch": 1})
        queue.patch(paused=True)
        send(queue, 1, 4, 2)
        queue.patch(paused=False)
        sweep(world)
        assert got == ["4", "2", "1"]


class TestCosts:
    def test_a_message_costs_as_much_as_a_plain_one(self, world: World, queue: TestQueue) -> None:
        def life() -> None:
            queue.send("x" * 100, priority=9)
            queue.delete(*queue.receive(1))

        life()
        assert world.units(life) == (3, 0.5)

    def test_empty_levels_cost_nothing(self, world: World, queue: TestQueue) -> None:
        queue.receive()
        assert world.units(queue.receive) == (0, 0.5)

    def test_a_level_in_flight_costs_half_a_unit(self, world: World, queue: TestQueue) -> None:
        for priority in range(16, 8, -1):
            for _ in range(3):
                queue.send("held" * 100, priority=priority)
        while queue.receive():
            pass
        send(queue, 1)
        queue.receive(1)
        assert world.units(queue.receive)[1] <= 8 * 0.5 + 0.5
