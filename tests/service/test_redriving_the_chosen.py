"""Redriving chosen dead letters, and those of a group or a URL back to it alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.crashes import crash
from tests.service.topics import Schedules, TestTopic, failing_url

from cirrusmq.base.limits import TOPIC_LIFE_SECONDS
from cirrusmq_local.testing import Subscriber, World

SIZES = [1, 3_000, 60_000]
SHORT: dict[str, Any] = {"policy": "custom", "waits": [1, 60]}
LASTING: list[dict[str, Any] | None] = [{"policy": "backoff"}, None]
Crashed = Callable[[int, bool], bool]


@pytest.fixture
def crashed(world: World, monkeypatch: pytest.MonkeyPatch) -> Crashed:
    """Runs what was started on a store that breaks; answers whether it broke before the end."""
    return lambda calls, applied: crash(world, monkeypatch, calls, applied=applied)


@pytest.fixture
def queue(dead: TestQueue, make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})


def give_up(queue: TestQueue, *bodies: str, reason: str = "odd") -> dict[str, str]:
    """Send messages and give them up; answers their ids by their bodies."""
    for body in bodies:
        queue.send(body)
    return give_up_all(queue, reason)


def give_up_all(queue: TestQueue, reason: str = "odd") -> dict[str, str]:
    held: list[Message] = queue.receive_all()
    for each in held:
        assert queue.act("dead-letter", each, reason=reason)["failed"] == []
    return {each["body"]: each["id"] for each in held}


class TestById:
    def test_the_named_ones_go_and_the_others_stay(self, dead: TestQueue, queue: TestQueue) -> None:
        ids = give_up(queue, *"abcde")
        operation = dead.run("redrive", ids=[ids["b"], ids["d"], ids["b"]])
        assert (operation["state"], operation["done"]) == ("succeeded", 2)
        assert "detail" not in operation
        assert sorted(queue.bodies()) == ["b", "d"]
        assert sorted(dead.bodies()) == ["a", "c", "e"]

    def test_those_of_one_send_are_told_apart(self, dead: TestQueue, queue: TestQueue) -> None:
        sent = queue.client.send("orders", "a", "b", "c")
        give_up_all(queue)
        assert dead.run("redrive", ids=[sent[1]["id"]])["done"] == 1
        assert queue.bodies() == ["b"]

    def test_a_missing_or_held_one_is_told_of(self, dead: TestQueue, queue: TestQueue) -> None:
        ids = give_up(queue, "a", "b")
        (held,) = dead.receive(1)
        other = next(id for body, id in ids.items() if id != held["id"])
        operation = dead.run("redrive", ids=[other, held["id"], "Msg-" + "0" * 27])
        assert operation["done"] == 1
        assert operation["detail"] == (
            "2 of the ids that were given have no message here that can be had"
        )

    def test_one_of_a_deleted_source_is_told_of_as_such(
        self, dead: TestQueue, queue: TestQueue
    ) -> None:
        ids = give_up(queue, "a")
        queue.client.delete(queue.path)
        operation = dead.run("redrive", ids=[ids["a"]])
        assert operation["detail"] == (
            "messages that stayed, their source being gone: 1 of queue orders"
        )

    def test_at_most_max_messages_of_them_go(self, dead: TestQueue, queue: TestQueue) -> None:
        ids = give_up(queue, *"abcde")
        assert dead.run("redrive", ids=list(ids.values()), max_messages=2)["done"] == 2
        assert len(queue.bodies()) == 2

    def test_any_queues_messages_move_by_their_ids(
        self, make_queue: MakeQueue, queue: TestQueue
    ) -> None:
        there = make_queue("there")
        ids = [queue.send(body)[0]["id"] for body in "abc"]
        assert queue.run("redrive", to="there", ids=ids[:2])["done"] == 2
        assert sorted(there.bodies()) == ["a", "b"]


class TestAnIdTwice:
    """Two receivers of a queue give the same messages up into one dead-letter queue."""

    @pytest.fixture
    def ids(self, world: World, dead: TestQueue, queue: TestQueue) -> dict[str, str]:
        for name in ("r1", "r2"):
            queue.add_receiver(name)
        world.clock.pass_seconds(60)
        ids = {body: queue.send(body)[0]["id"] for body in "xyz"}
        world.settle()
        for name in ("r1", "r2"):
            for held in queue.receive_all(receiver=name):
                assert queue.act("dead-letter", held, reason="odd")["failed"] == []
        return ids

    def left(self, dead: TestQueue) -> list[tuple[str, str]]:
        held = [message for _ in range(8) for message in dead.peek()]
        return sorted({(each["body"], each["dead_letter"]["receiver"]) for each in held})

    def test_all_of_an_id_go(self, dead: TestQueue, queue: TestQueue, ids: dict[str, str]) -> None:
        operation = dead.run("redrive", ids=[ids["x"]])
        assert (operation["state"], operation["done"]) == ("succeeded", 2)
        assert "detail" not in operation
        assert self.left(dead) == [(body, name) for body in "yz" for name in ("r1", "r2")]
        operation = dead.run("redrive", ids=[ids["x"], ids["y"], "Msg-" + "0" * 27])
        assert operation["done"] == 2
        assert operation["detail"] == (
            "2 of the ids that were given have no message here that can be had"
        )
        for name in ("r1", "r2"):
            assert sorted(each["body"] for each in queue.receive_all(receiver=name)) == ["x", "y"]

    def test_one_held_beside_another_is_not_told_as_missing(
        self, dead: TestQueue, ids: dict[str, str]
    ) -> None:
        held = dead.receive(1)[0]
        operation = dead.run("redrive", ids=[held["id"]])
        assert operation["done"] == 1
        assert "detail" not in operation

    def test_max_messages_bounds_messages_and_not_ids(
        self, dead: TestQueue, ids: dict[str, str]
    ) -> None:
        assert dead.run("redrive", ids=[*ids.values()], max_messages=3)["done"] == 3

    @pytest.mark.parametrize("applied", [False, True])
    def test_it_survives_the_failure_of_any_call(
        self, dead: TestQueue, queue: TestQueue, ids: dict[str, str], crashed: Crashed,
        applied: bool,
    ) -> None:  # fmt: skip
        chosen = [ids["x"], ids["y"], "Msg-" + "0" * 27]
        for call in range(60):
            reply = dead.client.post(f"{dead.path}/redrive", {"ids": chosen})
            broke = crashed(call, applied)
            shown = dead.client.get(f"/operations/{reply.json['operation']}").json
            assert (shown["state"], shown["done"]) == ("succeeded", 4)
            assert shown["detail"].startswith("1 of the ids that were given")
            assert self.left(dead) == [("z", "r1"), ("z", "r2")]
            for name in ("r1", "r2"):
                for held in queue.receive_all(receiver=name):
                    queue.act("dead-letter", held, reason="odd")
            if not broke:
                return
        raise AssertionError("60 calls were not enough to come to the end")

    def test_one_look_up_shows_all(self, dead: TestQueue, ids: dict[str, str]) -> None:
        path = f"{dead.path}/messages/{ids['x']}"
        found = dead.client.get(path, "body=true").json
        (other,) = found["others"]
        receivers = [each["dead_letter"]["receiver"] for each in (found, other)]
        assert sorted(receivers) == ["r1", "r2"]
        assert found["message"]["body"] == "x"
        assert other["id"] == ids["x"]
        assert "others" not in other
        held = next(each for _ in range(9) for each in dead.receive() if each["id"] == ids["x"])
        found = dead.client.get(path).json
        assert "inactive" in [each["state"] for each in (found, *found["others"])]
        dead.delete(held)
        assert "others" not in dead.client.get(path).json

    def test_a_cancellation_takes_all_back(
        self, dead: TestQueue, make_queue: MakeQueue, ids: dict[str, str]
    ) -> None:
        there = make_queue("there")
        dead.run("redrive", to="there", ids=[ids["x"]])
        assert there.counts() == {"active": 2}
        path = f"{there.path}/messages/{ids['x']}"
        assert there.client.patch(path, {"delay_seconds": 600}).status == 200
        assert there.counts() == {"delayed": 2}
        for _ in range(2):
            assert there.client.call("DELETE", path).status == 204
            assert there.counts() == {}

    def test_a_cancellation_after_one_was_received_takes_none_back(
        self, dead: TestQueue, make_queue: MakeQueue, ids: dict[str, str]
    ) -> None:
        there = make_queue("there", partitions=1)
        dead.run("redrive", to="there", ids=[ids["x"]])
        assert there.receive(1)
        path = f"{there.path}/messages/{ids['x']}"
        assert there.client.call("DELETE", path).code == "Conflict"
        assert there.counts() == {"active": 1, "inactive": 1}


class TestByNote:
    def test_only_letters_selected_by_notes_go_back(
        self, world: World, dead: TestQueue, queue: TestQueue, make_queue: MakeQueue
    ) -> None:
        other = make_queue("other", dead_letter={"queue": "dead", "max_receives": 5})
        give_up(queue, "a")
        world.clock.pass_seconds(100)
        give_up(queue, "b", reason="worse")
        give_up(other, "c")
        assert (
            dead.run("redrive", dead_letter={"reason": "odd", "source_queue": "other"})["done"] == 1
        )
        assert other.bodies() == ["c"]
        assert dead.run("redrive", dead_letter={"younger_than_seconds": 50})["done"] == 1
        assert dead.run("redrive", dead_letter={"older_than_seconds": 101})["done"] == 0
        assert dead.run("redrive", dead_letter={"older_than_seconds": 100})["done"] == 1
        assert sorted(queue.bodies()) == ["a", "b"]


class TestByReceipt:
    def test_held_ones_go_and_their_receipts_end(self, dead: TestQueue, queue: TestQueue) -> None:
        give_up(queue, *"abc")
        held = dead.receive_all()
        receipts = [each["receipt"] for each in held[:2]]
        operation = dead.run("redrive", receipts=[*receipts, receipts[0], "strange"])
        assert operation["done"] == 2
        assert operation["detail"] == (
            "1 of the receipts that were given have no message here that can be had"
        )
        assert sorted(queue.bodies()) == sorted(each["body"] for each in held[:2])
        assert len(dead.act("delete", *held[:2])["failed"]) == 2
        assert dead.act("delete", *held[2:])["failed"] == []

    def test_a_stale_receipt_moves_nothing(
        self, world: World, dead: TestQueue, queue: TestQueue
    ) -> None:
        give_up(queue, "a")
        (stale,) = dead.receive(visibility_timeout_seconds=1)
        world.clock.pass_seconds(2)
        (held,) = dead.receive()
        assert dead.run("redrive", receipts=[stale["receipt"]])["done"] == 0
        assert dead.act("delete", held)["failed"] == []

    def test_a_receivers_and_a_named_target(
        self, world: World, make_queue: MakeQueue, queue: TestQueue
    ) -> None:
        there = make_queue("there")
        queue.add_receiver("copy")
        queue.send("a")
        world.settle()
        (held,) = queue.receive(receiver="copy")
        assert queue.run("redrive", receipts=[held["receipt"]], to="there")["done"] == 1
        assert there.bodies() == ["a"]
        assert queue.bodies() == ["a"]
        assert queue.receive(receiver="copy") == []

    @pytest.mark.parametrize("applied", [False, True])
    def test_it_survives_the_failure_of_any_call(
        self, dead: TestQueue, queue: TestQueue, crashed: Crashed, applied: bool
    ) -> None:
        for call in range(60):
            give_up(queue, *"ab")
            receipts = [each["receipt"] for each in dead.receive_all()]
            reply = dead.client.post(f"{dead.path}/redrive", {"receipts": receipts})
            broke = crashed(call, applied)
            shown = dead.client.get(f"/operations/{reply.json['operation']}").json
            assert (shown["state"], shown["done"]) == ("succeeded", 2)
            assert "detail" not in shown
            held = queue.receive_all()
            assert sorted(each["body"] for each in held) == ["a", "b"]
            queue.act("delete", *held)
            if not broke:
                return
        raise AssertionError("60 calls were not enough to come to the end")


class TestSubscriptions:
    @pytest.mark.few(10)
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("ordered", [False, True])
    @pytest.mark.parametrize("group", [None, "g"])
    def test_a_groups_dead_letters_go_back_to_it_alone(
        self,
        world: World,
        dead: TestQueue,
        topic: TestTopic,
        size: int,
        ordered: bool,
        group: str | None,
    ) -> None:
        sick = topic.subscribe("sick", dead_letter_queue="dead", ordered=ordered)
        well = topic.subscribe("well")
        fields: dict[str, Any] = {} if group is None else {"group": group}
        (sent, _) = topic.publish("x" * size, "y" * size, **fields)
        assert len(well.receive()) == 2
        give_up_all(sick)
        world.clock.pass_seconds(1_000)
        assert dead.run("redrive")["done"] == 2
        world.settle()
        assert well.show()["counts"]["active"] == 2  # their leases are over
        (again, other) = sorted(sick.receive_all(), key=lambda each: str(each["body"]))
        assert (again["id"], again["body"], other["body"]) == (sent["id"], "x" * size, "y" * size)
        assert (again["receive_count"], "dead_letter" in again) == (1, False)
        assert again.get("group") in (group, None if group is None and not ordered else again["id"])
        assert sick.act("delete", again, other)["failed"] == []
        assert sick.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 0}
        assert topic.log()["messages"][2:] == []
        assert len(topic.log(limit=16)["messages"]) == 2

    def test_they_are_behind_their_groups_waiting_ones(
        self, dead: TestQueue, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", dead_letter_queue="dead", ordered=True)
        topic.publish("first", group="g")
        give_up_all(group)
        topic.publish("second", group="g")
        assert dead.run("redrive")["done"] == 1
        topic.publish("third", group="g")
        assert [each["body"] for each in group.receive_all()] == ["second", "first", "third"]

    def test_their_lives_begin_anew(self, world: World, dead: TestQueue, topic: TestTopic) -> None:
        group = topic.subscribe("group", dead_letter_queue="dead")
        topic.publish("x" * 60_000)
        give_up_all(group)
        world.clock.pass_seconds(TOPIC_LIFE_SECONDS)
        assert dead.run("redrive")["done"] == 1
        world.clock.pass_seconds(TOPIC_LIFE_SECONDS - 1)
        assert [len(each["body"]) for each in group.receive_all()] == [60_000]
        world.clock.pass_seconds(1)
        assert group.receive() == []

    @pytest.mark.few(2)
    @pytest.mark.parametrize(
        ("size", "retry"),
        [
            *((size, SHORT) for size in SIZES),
            *((SIZES[0], retry) for retry in LASTING),
            *(
                pytest.param(size, retry, marks=pytest.mark.long)
                for size in SIZES[1:]
                for retry in LASTING
            ),
        ],
    )
    def test_a_urls_are_posted_to_it_again(
        self,
        dead: TestQueue,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        size: int,
        retry: dict[str, Any] | None,
    ) -> None:
        web = topic.subscribe("web", "http", retry=retry, dead_letter_queue="dead")
        topic.subscribe("other", "http", endpoint="http://127.0.0.1:9/other")
        subscriber.down(path="hook")
        published = topic.publish("x" * size, "y" * size)
        schedules.pass_seconds(86_000 if retry is None else 200)
        schedules.run_out()
        assert dead.counts() == {"active": 2}
        taken = len(subscriber.taken)
        operation = dead.client.post(f"{dead.path}/redrive").json["operation"]
        schedules.pass_seconds(30)
        assert dead.client.get(f"/operations/{operation}").json["done"] == 2
        assert web.show()["counts"]["active"] == topic.active() == 2
        subscriber.up()
        schedules.run_out()
        again = subscriber.taken[taken:]
        assert sorted(each.message_id for each in again) == sorted(e["id"] for e in published)
        assert {each.path for each in again} == {"hook"}
        assert sorted(len(each.text) for each in again) == [size, size]
        assert web.show()["counts"]["active"] == topic.active() == 0

    def test_the_sweep_posts_messages_given_back_but_not_told(
        self,
        world: World,
        dead: TestQueue,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
    ) -> None:
        retry = {"policy": "custom", "waits": [1]}
        failing_url(topic, subscriber, "x", retry=retry, dead_letter_queue="dead")
        schedules.pass_seconds(200)
        subscriber.up()
        dead.client.post(f"{dead.path}/redrive")
        world.run(*world.invoked.popleft())
        assert [role for role, _ in world.invoked] == ["push"]
        world.invoked.clear()
        Schedules(world, sweeps=True).pass_seconds(180)
        assert [each.text for each in subscriber.taken] == ["x"]

    def test_one_subscriptions_are_chosen_among_others(
        self, dead: TestQueue, topic: TestTopic
    ) -> None:
        one, two = (topic.subscribe(name, dead_letter_queue="dead") for name in ("one", "two"))
        topic.publish("x")
        for each in (one, two):
            give_up_all(each)
        wanted = {"source_queue": "news", "subscription": "two"}
        assert dead.run("redrive", dead_letter=wanted)["done"] == 1
        assert (one.receive_all(), len(two.receive_all())) == ([], 1)

    def test_a_broadcasting_subscription_lets_them_stay(
        self, dead: TestQueue, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", dead_letter_queue="dead")
        topic.publish("x")
        give_up_all(group)
        topic.client.delete(group.path)
        topic.subscribe("group", mode="broadcasting")
        operation = dead.run("redrive")
        assert (operation["done"], dead.counts()) == (0, {"active": 1})
        assert "1 of subscription group of topic news" in operation["detail"]
