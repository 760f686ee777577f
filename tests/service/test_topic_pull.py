"""Pull subscriptions: groups of consumers, order, broadcasting, and the calls of a queue."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from tests.service.conftest import TestQueue, to_ms
from tests.service.topics import OBSTACLES, TestSubscription, TestTopic, log_bodies, put_in_the_way

from cirrusmq_local.testing import Client, World

DAY = 86_400
UNORDERED_WAITS = [10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200]


class TestClustering:
    def test_each_message_goes_to_one_consumer_of_each_group(self, topic: TestTopic) -> None:
        one, two = topic.subscribe("one"), topic.subscribe("two")
        bodies = [str(number) for number in range(40)]
        for body in bodies:
            topic.publish(body)
        consumers: list[list[str]] = [[], [], []]
        for turn in range(120):
            consumers[turn % 3] += [message["body"] for message in one.receive(1)]

        assert sorted(chain.from_iterable(consumers)) == sorted(bodies)
        assert all(len(held) > 5 for held in consumers)
        assert two.bodies() == sorted(bodies)

    def test_a_message_is_shown_as_a_queue_shows_it(self, topic: TestTopic, now: Any) -> None:
        group = topic.subscribe("group")
        (sent,) = topic.publish("x", tags=["t"])
        (received,) = group.receive()

        assert received.pop("receipt")
        assert received == {
            "id": sent["id"],
            "body": "x",
            "attributes": {},
            "tags": ["t"],
            "sender": "alice",
            "receive_count": 1,
            "sent_at": sent["sent_at"],
            "first_received_at": now(),
            "visible_at": now(30),
            "expires_at": now(DAY - 0.0),
        }

    def test_delete_visibility_give_back_and_peek_work_as_for_a_queue(
        self, world: World, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "custom", "waits": [5] * 9})
        topic.publish("x")
        (peeked,) = group.peek()
        assert (peeked["body"], "receipt" in peeked) == ("x", False)
        (first,) = group.receive(visibility_timeout_seconds=100)
        assert group.peek() == []
        group.hold(first, 1_000)
        world.clock.pass_seconds(900)
        assert group.receive() == []
        group.give_back(first, delay_seconds=20)
        world.clock.pass_seconds(19)
        assert group.receive() == []
        world.clock.pass_seconds(1.1)
        (second,) = group.receive()
        assert (second["receive_count"], second["id"]) == (2, first["id"])
        assert group.act("delete", first)["failed"][0]["code"] == "ReceiptExpired"
        group.delete(second)
        world.clock.pass_seconds(60)
        assert group.receive() == []


class TestRetry:
    def test_unordered_is_the_default_policy_and_ends_in_a_queue_of_its_own(
        self, world: World, alice: Client, topic: TestTopic, group: TestSubscription
    ) -> None:
        (sent,) = topic.publish("sick")
        delivered = []
        for wait in [*UNORDERED_WAITS, 7200]:
            (held,) = group.receive(visibility_timeout_seconds=1)
            delivered.append(held["receive_count"])
            assert held["id"] == sent["id"]
            world.clock.pass_seconds(1 + wait - 0.5)
            assert group.receive() == []
            world.clock.pass_seconds(0.6)
        assert delivered == list(range(1, 18))
        assert group.receive() == []
        queues = [queue["name"] for queue in alice.get("/queues").json["queues"]]
        assert f"dlq-{group.id}" not in queues  # a receive makes none
        world.settle()

        (dead,) = TestQueue(alice, f"dlq-{group.id}").receive_all()
        assert (dead["id"], dead["body"]) == (sent["id"], "sick")
        assert dead["dead_letter"]["reason"] == "retries"
        assert dead["dead_letter"]["receive_count"] == 17
        assert dead["dead_letter"]["subscription"] == "group"
        assert group.show()["dead_letter_queue"] == f"dlq-{group.id}"

    def test_a_group_gives_up_by_itself_into_its_own_queue(
        self, alice: Client, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("x")
        assert group.act("dead-letter", *group.receive(), reason="no good")["failed"] == []

        (dead,) = TestQueue(alice, f"dlq-{group.id}").receive_all()
        assert dead["dead_letter"]["reason"] == "no good"
        shown = group.show()
        assert shown["dead_letter_queue"] == f"dlq-{group.id}"
        assert alice.delete(f"/queues/dlq-{group.id}").code == "InUse"
        assert topic.try_subscribe("group", protocol="pull").status == 200
        alice.delete(group.path)
        assert alice.delete(f"/queues/dlq-{group.id}").status == 204

    @pytest.mark.parametrize("obstacle", OBSTACLES)
    def test_if_its_own_queue_cannot_be_made_a_message_stays_until_it_can(
        self,
        world: World,
        alice: Client,
        topic: TestTopic,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        obstacle: str,
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "custom", "waits": [1]})
        queue = f"dlq-{group.id}"
        remove = put_in_the_way(alice, queue, obstacle, monkeypatch)
        topic.publish("sick", "well")
        for _ in range(2):
            sick = [each for each in group.receive() if each["body"] == "sick"]
            assert len(sick) == 1
            group.act("give-back", *sick)
            world.clock.pass_seconds(40)

        assert "dead_letter_error" not in group.show()
        assert all(each["body"] != "sick" for each in group.receive())
        world.settle()
        assert queue in caplog.text
        why = group.show()["dead_letter_error"]
        assert why in caplog.text
        world.clock.pass_seconds(40)
        held = group.receive()
        assert sorted(each["body"] for each in held) == ["sick", "well"]
        world.settle()
        assert group.show()["dead_letter_error"] == why
        reply = group.act("dead-letter", *held[:1])
        assert [each["code"] for each in reply["failed"]] == ["NoDeadLetterQueue"]
        remove()
        world.clock.pass_seconds(40)

        for _ in range(2):  # the first one is received, as the queue is not there yet
            group.receive()
            world.settle()
            world.clock.pass_seconds(40)
        assert "dead_letter_error" not in group.show()
        dead = [each["body"] for each in TestQueue(alice, queue).receive_all()]
        assert "sick" in dead
        assert group.show()["dead_letter_queue"] == queue

    def test_a_dropping_policy_has_no_queue_of_its_own(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", retry={"policy": "backoff"})
        topic.publish("x")
        reply = group.act("dead-letter", *group.receive())
        assert [each["code"] for each in reply["failed"]] == ["NoDeadLetterQueue"]

    def test_a_dropping_policy_drops_after_its_last_retry(
        self, world: World, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "backoff"})
        (sent,) = topic.publish("x")
        received = 0
        for _ in range(10):
            received += len(group.receive(visibility_timeout_seconds=1))
            world.settle()
            world.clock.pass_seconds(30)
        assert received == 4
        assert group.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 0}
        assert topic.trace(sent["id"]) == {"group": {"state": "discarded", "attempts": 4}}

    def test_exponential_decay_keeps_it_to_its_expiry_after_177_deliveries(
        self, world: World, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "exponential_decay"})
        (sent,) = topic.publish("x")
        for _ in range(176):
            (held,) = group.receive(visibility_timeout_seconds=1)
            group.hold(held, 0)
            world.clock.pass_seconds(0.1)
        (held,) = group.receive(visibility_timeout_seconds=1)
        assert held["receive_count"] == 177
        for _ in range(5):
            world.clock.pass_seconds(1_000)
            assert group.receive() == []
        assert group.show()["counts"] == {"active": 0, "inactive": 1, "delayed": 0}
        assert topic.trace(sent["id"]) == {"group": {"state": "pending", "attempts": 177}}
        world.clock.pass_seconds(DAY)
        assert group.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 0}

    def test_waits_do_not_block_other_messages(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", retry={"policy": "backoff"})
        topic.publish("sick")
        group.give_back(*group.receive())
        topic.publish("well")
        assert group.bodies() == ["well"]

    def test_the_life_of_a_message_is_never_prolonged_by_retries(
        self, world: World, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "custom", "waits": [43_200] * 9})
        (sent,) = topic.publish("x")
        for _ in range(2):
            (held,) = group.receive(visibility_timeout_seconds=1)
            assert to_ms(held["expires_at"]) == to_ms(sent["sent_at"]) + DAY * 1000
            world.clock.pass_seconds(43_201)
        assert group.receive() == []


class TestOrdered:
    def test_a_groups_messages_come_in_order_and_the_group_waits(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", ordered=True)
        for number in range(12):
            topic.publish(f"{number}", group="ab"[number % 2])
        first = group.receive(1)
        (held,) = first
        own = held["group"]
        others = group.receive_all()
        assert {message["group"] for message in others} == {"ba"[own == "b"]}
        assert [int(m["body"]) for m in others] == sorted(int(m["body"]) for m in others)
        group.delete(held)
        rest = []
        while some := group.receive(1):
            rest += some
            group.delete(*some)
        expected = [n for n in range(12) if "ab"[n % 2] == own]
        assert [int(message["body"]) for message in [held, *rest]] == expected

    def test_a_failing_message_holds_its_group_for_the_interval(
        self, world: World, topic: TestTopic
    ) -> None:
        group = topic.subscribe(
            "group", ordered=True, retry={"policy": "ordered", "interval_seconds": 2}
        )
        topic.publish("1", "2", group="g")
        (one,) = group.receive(1)
        group.give_back(one)
        assert group.receive() == []
        world.clock.pass_seconds(2.1)
        assert [message["body"] for message in group.receive()] == ["1", "2"]

    def test_a_message_without_a_group_is_its_own(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", ordered=True)
        topic.publish(*"abc")
        topic.publish("d")

        assert sorted(message["body"] for _ in range(4) for message in group.receive(1)) == [
            *"abcd"
        ]

    def test_its_dead_letters_may_go_to_an_ordered_queue_also_without_a_group(
        self, alice: Client, topic: TestTopic
    ) -> None:
        alice.put("/queues/dead", {"ordered": True})
        group = topic.subscribe("group", ordered=True, dead_letter_queue="dead")
        topic.publish("x")
        assert group.act("dead-letter", *group.receive())["failed"] == []
        assert [each["body"] for each in TestQueue(alice, "dead").receive_all()] == ["x"]


class TestBroadcasting:
    def test_every_consumer_reads_all_from_its_own_position(
        self, world: World, topic: TestTopic
    ) -> None:
        eyes = topic.subscribe("eyes", mode="broadcasting")
        topic.publish(*"abc")
        world.clock.pass_seconds(3)
        first = eyes.log(limit=2)
        assert log_bodies(first) == ["a", "b"]
        topic.publish("d")
        world.clock.pass_seconds(3)

        assert log_bodies(eyes.log(after=first["cursor"])) == ["c", "d"]
        assert log_bodies(eyes.log()) == ["a", "b", "c", "d"]

    def test_the_filter_lets_through_matching_messages(
        self, world: World, topic: TestTopic
    ) -> None:
        eyes = topic.subscribe("eyes", mode="broadcasting", filter={"tags": ["a"]})
        topic.subscribe("others")
        topic.try_publish([{"body": "1", "tags": ["a"]}, {"body": "2"}])
        topic.publish("3")
        topic.publish("4", tags=["a", "b"])
        world.clock.pass_seconds(3)

        assert log_bodies(eyes.log()) == ["1", "4"]
        assert log_bodies(topic.log()) == ["1", "2", "3", "4"]
        page = eyes.log(limit=1)
        assert log_bodies(eyes.log(limit=1, after=page["cursor"])) == ["4"]

    def test_it_writes_nothing_per_subscription(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("eyes", mode="broadcasting")
        topic.publish("x")
        one = len(world.items())
        for number in range(5):
            topic.subscribe(f"eyes-{number}", mode="broadcasting")
        topic.publish("y")

        assert len(world.items()) == 2 * one

    def test_it_shows_publishes_since_its_creation(self, world: World, topic: TestTopic) -> None:
        from cirrusmq.base import ulid

        topic.subscribe("group")
        topic.publish("before")
        attempt = ulid.encode(world.clock.now_ms(), b"0123456789")
        world.clock.pass_seconds(0.5)
        eyes = topic.subscribe("eyes", mode="broadcasting")
        topic.try_publish([{"body": "after"}], attempt=attempt)
        world.clock.pass_seconds(3)

        assert log_bodies(eyes.log()) == ["after"]
