"""Looking a message up by its id: its state, its body, and the bound of the search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, to_ms
from tests.service.test_repeated_sends import attempt
from tests.service.topics import Schedules, TestSubscription, TestTopic

from cirrusmq_local.testing import Client, Reply, Subscriber, World

UNITS = 50


def ask(queue: TestQueue, message_id: str, **query: object) -> Reply:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return queue.client.get(f"{queue.path}/messages/{message_id}", text)


def find(queue: TestQueue, message_id: str, **query: object) -> dict[str, Any]:
    reply = ask(queue, message_id, **query)
    assert reply.status == 200, reply.text
    return dict(reply.json)


def read_units(world: World, call: Callable[[], Reply]) -> tuple[Reply, float]:
    world.engine.reset_capacity()
    reply = call()
    by_table = world.engine.capacity()["by_table"]
    return reply, float(by_table.get(world.tables.messages, {"read_units": 0})["read_units"])


class TestStates:
    @pytest.mark.parametrize("ordered", [False, True])
    def test_a_messages_state_follows_its_life(
        self, world: World, make_queue: MakeQueue, ordered: bool
    ) -> None:
        queue = make_queue("orders", ordered=ordered, delay_seconds=10)
        more = {"group": "g"} if ordered else {}
        (sent,) = queue.send("hello", tags=["t"], attributes={"a": "b"}, **more)
        found = find(queue, sent["id"])
        assert found == {
            "id": sent["id"],
            "state": "delayed",
            "sent_at": sent["sent_at"],
            "receive_count": 0,
            "visible_at": found["visible_at"],
            "expires_at": found["expires_at"],
            "bytes": 8,
        }
        assert to_ms(found["visible_at"]) == to_ms(sent["sent_at"]) + 10_000
        world.clock.pass_seconds(10)
        assert find(queue, sent["id"])["state"] == "active"
        (held,) = queue.receive()
        found = find(queue, sent["id"])
        assert (found["state"], found["receive_count"]) == ("inactive", 1)
        assert found["first_received_at"] == held["first_received_at"]
        assert found["visible_at"] == held["visible_at"]
        world.clock.pass_seconds(5)
        queue.act("give-back", held, delay_seconds=60)
        assert find(queue, sent["id"])["state"] == "inactive"
        world.clock.pass_seconds(60)
        assert find(queue, sent["id"])["state"] == "active"
        (held,) = queue.receive()
        queue.act("delete", held)
        assert ask(queue, sent["id"]).code == "MessageNotFound"

    @pytest.mark.parametrize("size", [1, 3_000, 60_000])
    def test_its_body_is_answered_on_request(self, queue: TestQueue, size: int) -> None:
        _, sent = queue.client.send("orders", "other", "x" * size, tags=["t"])
        assert "message" not in find(queue, sent["id"], body="false")
        message = find(queue, sent["id"], body="true")["message"]
        assert (message["body"], message["tags"], message["id"]) == ("x" * size, ["t"], sent["id"])

    def test_a_dead_letter_is_found_with_its_reason(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
        (sent,) = queue.send("x")
        world.clock.pass_seconds(100)
        (held,) = queue.receive()
        queue.act("dead-letter", held, reason="odd")
        assert find(dead, sent["id"])["dead_letter"]["reason"] == "odd"
        assert ask(queue, sent["id"]).code == "MessageNotFound"

    @pytest.mark.parametrize("partitions", [1, 4])
    def test_one_moved_before_the_time_in_its_id_is_found(
        self, world: World, dead: TestQueue, make_queue: MakeQueue, partitions: int
    ) -> None:
        """Its client's clock is ahead: it has come back while its id is still of the future."""
        queue = make_queue(
            "orders", partitions=partitions, dead_letter={"queue": "dead", "max_receives": 5}
        )
        for entropy in range(8):
            token = attempt(world, 1.9, entropy)
            (sent,) = queue.try_send([{"body": "x"}], attempt=token).json["messages"]
            (held,) = queue.receive()
            queue.act("dead-letter", held)
            dead.client.post(f"{dead.path}/redrive", {"ids": [sent["id"]]})
            world.settle()
            assert find(queue, sent["id"])["state"] == "active"
            queue.delete(*queue.receive())

    def test_each_receiver_has_a_state_of_its_own(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        assert alice.put("/queues/orders/receivers/audit", {}).status == 201
        world.clock.pass_seconds(5)
        (sent,) = queue.send("x")
        world.settle()
        queue.receive()
        assert find(queue, sent["id"])["state"] == "inactive"
        assert find(queue, sent["id"], receiver="audit")["state"] == "active"
        assert find(queue, sent["id"], receiver="audit", body="true")["message"]["body"] == "x"
        assert ask(queue, sent["id"], receiver="none").code == "ReceiverNotFound"

    def test_an_expired_or_purged_message_is_not_found(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", message_retention_seconds=60)
        (old,) = queue.send("x")
        world.clock.pass_seconds(60)
        assert ask(queue, old["id"]).code == "MessageNotFound"
        (purged,) = queue.send("x")
        queue.client.post(f"{queue.path}/purge")
        assert ask(queue, purged["id"]).code == "MessageNotFound"

    def test_earlier_messages_of_a_grown_queue_are_found(self, make_queue: MakeQueue) -> None:
        queue = make_queue("orders", partitions=2)
        ids = [queue.send("x")[0]["id"] for _ in range(10)]
        assert queue.patch(partitions=7).status == 200
        assert [find(queue, each)["state"] for each in ids] == ["active"] * 10


class TestBounds:
    def test_an_unmoved_message_is_found_behind_any_backlog(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", partitions=1)
        sent = [each for _ in range(40) for each in queue.client.send("orders", *["x" * 60] * 16)]
        for place in (0, 320, 639):
            reply, units = read_units(world, partial(ask, queue, sent[place]["id"]))
            assert reply.status == 200
            assert units <= 1

    @pytest.mark.long
    def test_no_look_up_reads_more_than_fifty_units(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", partitions=1)
        first = {"body": "first", "delay_seconds": 1}  # an id has one delay
        lost = {"body": "lost", "delay_seconds": 500}
        late = {"body": "late", "delay_seconds": 600}
        _, lost, late = queue.try_send([first, lost, late]).json["messages"]
        for _ in range(700):
            queue.send("x" * 400, delay_seconds=400)
        for _ in range(700):
            queue.send("x" * 400, delay_seconds=599)
        reply, units = read_units(world, lambda: ask(queue, lost["id"], body="true"))
        assert reply.code == "MessageNotFound"
        assert "50 read units" in reply.json["detail"]
        assert 40 < units <= UNITS
        reply, units = read_units(world, lambda: ask(queue, late["id"], body="true"))
        assert reply.status == 200
        assert units <= UNITS
        reply, units = read_units(world, lambda: ask(queue, "Msg-" + "0" * 27))
        assert reply.code == "MessageNotFound"
        assert units <= UNITS

    def test_a_group_bounds_the_search_in_an_ordered_queue(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", partitions=1, ordered=True)
        ids = {}
        for number in range(600):
            (sent,) = queue.send("x" * 400, group=str(number))
            ids[str(number)] = sent["id"]
        for group in ("0", "300", "599"):
            reply, units = read_units(world, partial(ask, queue, ids[group], group=group))
            assert reply.status == 200
            assert units <= 1
            reply, units = read_units(world, partial(ask, queue, ids[group]))
            assert units <= UNITS


class TestRefusals:
    def test_an_id_is_looked_up_as_it_is_written(self, queue: TestQueue) -> None:
        (sent,) = queue.send("x")
        for wrong in (sent["id"].lower(), sent["id"][:-1] + "G"):
            assert ask(queue, wrong).code == "MessageNotFound"


class TestTopics:
    @pytest.mark.parametrize("size", [1, 3_000, 60_000])
    def test_a_trace_has_the_body_on_request(self, topic: TestTopic, size: int) -> None:
        topic.subscribe("group")
        _, sent = topic.publish("other", "x" * size)
        path = f"{topic.path}/messages/{sent['id']}"
        assert "message" not in topic.client.get(path).json
        message = topic.client.get(path, "body=true").json["message"]
        assert (message["id"], message["body"]) == (sent["id"], "x" * size)

    def test_a_groups_and_a_urls_oldest_message_has_an_age(
        self,
        topic: TestTopic,
        group: TestSubscription,
        subscriber: Subscriber,
        schedules: Schedules,
    ) -> None:
        web = topic.subscribe("web", "http", retry={"policy": "custom", "waits": [9_000]})
        log = topic.subscribe("log", mode="broadcasting")
        for each in (group, web):
            assert each.show()["oldest_active_age_seconds"] == 0
        assert "oldest_active_age_seconds" not in log.show()
        subscriber.down()
        topic.publish("x")
        schedules.pass_seconds(100)
        topic.publish("y")
        schedules.pass_seconds(200)
        for each in (group, web):
            assert 299 <= each.show()["oldest_active_age_seconds"] <= 301
