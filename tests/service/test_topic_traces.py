"""A publisher's view of a message: its trace, and the counts of topics and subscriptions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, to_ms
from tests.service.topics import Schedules, TestSubscription, TestTopic, failing_url, log_bodies

from cirrusmq.base import limits
from cirrusmq.storage import queries
from cirrusmq.storage.parcels import ParcelPage
from cirrusmq_local.testing import Client, Subscriber, World

DAY = 86_400
PENDING = {"state": "pending", "attempts": 0}


def counts(subscription: TestSubscription) -> dict[str, int]:
    shown: dict[str, int] = subscription.show()["counts"]
    assert shown.keys() == {"active", "inactive", "delayed"}
    return {name: count for name, count in shown.items() if count}


def dead(subscription: TestSubscription, attempts: int) -> dict[str, Any]:
    queue = f"dlq-{subscription.show()['id']}"
    return {"state": "dead", "attempts": attempts, "dead_letter_queue": queue}


def give_back(topic: TestTopic, subscription: TestSubscription) -> int:
    """Redrive a subscription's dead letters; how many they were."""
    path = f"/queues/dlq-{subscription.show()['id']}/redrive"
    started = topic.client.post(path, {}).json["operation"]
    topic.client.world.settle()
    done: int = topic.client.get(f"/operations/{started}").json["done"]
    return done


class TestPull:
    def test_a_message_is_pending_until_it_is_deleted(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        (sent,) = topic.publish("one")
        assert topic.trace(sent["id"]) == {"group": PENDING}
        (received,) = group.receive()
        assert topic.trace(sent["id"]) == {"group": {"state": "pending", "attempts": 1}}
        group.delete(received)

        assert topic.trace(sent["id"])["group"]["state"] == "delivered"

    def test_one_beyond_a_traces_reads_is_not_called_delivered(
        self, world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was put off behind a backlog of more parcels than are read, here of four."""
        monkeypatch.setattr(limits, "COUNT_EXACT_MESSAGES", 4)
        read_page = queries.read_page

        def small(*given: Any, **named: Any) -> ParcelPage:
            core, pk, after, until, _ = given
            return read_page(core, pk, after, until, 2, **named)

        monkeypatch.setattr(queries, "read_page", small)
        group = topic.subscribe("group")
        (sent,) = topic.publish("one")
        group.give_back(*group.receive(), delay_seconds=3_600)
        for number in range(120):
            topic.publish(f"behind {number}")
        world.clock.pass_seconds(1)

        assert topic.trace(sent["id"])["group"]["state"] == "pending"

    def test_of_a_batch_each_message_has_its_own_trace(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        sent = topic.publish(*"abc")
        received = {message["body"]: message for message in group.receive()}
        group.delete(received["b"])

        states = [topic.trace(each["id"])["group"]["state"] for each in sent]
        assert states == ["pending", "delivered", "pending"]

    @pytest.mark.parametrize("count", [1, 2])
    @pytest.mark.parametrize("minutes", [0, 3])
    def test_one_waiting_long_for_a_retry_is_pending(
        self, world: World, topic: TestTopic, count: int, minutes: int
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "custom", "waits": [600, 600]})
        (sent, *_) = topic.publish(*"ab"[:count])
        world.clock.pass_seconds(60 * minutes)
        group.give_back(*group.receive())
        assert topic.trace(sent["id"]) == {"group": {"state": "pending", "attempts": 1}}
        world.clock.pass_seconds(600)
        group.give_back(*group.receive())
        assert topic.trace(sent["id"]) == {"group": {"state": "pending", "attempts": 2}}
        world.clock.pass_seconds(600)
        group.delete(*group.receive())

        assert topic.trace(sent["id"])["group"]["state"] == "delivered"

    @pytest.mark.parametrize("count", [1, 2])
    @pytest.mark.parametrize("wait_seconds", [1, 600])
    def test_one_with_used_up_retries_is_dead(
        self, world: World, topic: TestTopic, count: int, wait_seconds: int
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "custom", "waits": [wait_seconds]})
        (sent, *_) = topic.publish(*"ab"[:count])
        for _ in range(2):
            assert len(group.receive()) == count
            world.clock.pass_seconds(30 + wait_seconds)
        assert group.receive() == []
        world.settle()

        assert topic.trace(sent["id"]) == {"group": dead(group, 2)}
        assert counts(group) == {}

    def test_one_given_up_by_its_consumer_is_dead(self, world: World, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        (sent,) = topic.publish("one")
        world.clock.pass_seconds(300)
        group.act("dead-letter", *group.receive())

        assert topic.trace(sent["id"]) == {"group": dead(group, 1)}

    @pytest.mark.parametrize("ordered", [False, True])
    @pytest.mark.parametrize("count", [1, 3])
    def test_one_given_back_is_followed(
        self, world: World, topic: TestTopic, ordered: bool, count: int
    ) -> None:
        group = topic.subscribe("group", ordered=ordered)
        sent = topic.publish(*(f"{n}" for n in range(count)), group="g")[-1]
        for again in range(2):
            world.clock.pass_seconds(300)
            held = group.receive_all()
            group.act("dead-letter", *held)
            assert topic.trace(sent["id"])["group"]["state"] == "dead"
            assert give_back(topic, group) == len(held) == count
            assert topic.trace(sent["id"])["group"] == PENDING, again
        (*_, last) = group.receive_all()
        assert topic.trace(sent["id"])["group"] == {"state": "pending", "attempts": 1}
        group.delete(last)

        # Nothing is left of it but what says that it was given up.
        assert topic.trace(sent["id"])["group"]["state"] == "dead"

    def test_ordered_messages_are_traced_too(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", ordered=True)
        sent = topic.publish("a", "b", group="g") + topic.publish("c")
        assert [topic.trace(each["id"])["group"] for each in sent] == [PENDING] * 3
        group.delete(*[m for m in group.receive_all() if m["body"] in ("a", "c")])

        states = [topic.trace(each["id"])["group"]["state"] for each in sent]
        assert states == ["delivered", "pending", "delivered"]


class TestOthers:
    def test_a_message_for_a_queue_is_delivered_when_it_lies_there(
        self, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("inbox")
        topic.subscribe("box", "queue", endpoint="inbox")
        (sent,) = topic.try_publish([{"body": "one"}]).json["messages"]
        assert topic.trace(sent["id"]) == {"box": PENDING}
        assert queue.receive() == []
        topic.client.world.settle()

        assert topic.trace(sent["id"]) == {"box": {"state": "delivered", "attempts": 0}}
        assert [message["id"] for message in queue.receive()] == [sent["id"]]

    def test_http_shows_attempts_and_their_end(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http")
        (sent,) = topic.try_publish([{"body": "one"}]).json["messages"]
        assert topic.trace(sent["id"]) == {"web": PENDING}
        subscriber.down()
        topic.client.world.settle()
        assert topic.trace(sent["id"])["web"]["state"] == "retrying"
        subscriber.up()
        schedules.run_out()

        assert topic.trace(sent["id"]) == {"web": {"state": "delivered", "attempts": 2}}

    def test_a_message_given_back_to_a_url_is_followed(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(topic, subscriber, retry={"policy": "custom", "waits": [5]})
        (sent,) = topic.publish("one")
        schedules.run_out()
        assert topic.trace(sent["id"])["web"] == dead(web, 2)
        subscriber.up()

        assert give_back(topic, web) == 1
        schedules.run_out()

        assert topic.trace(sent["id"])["web"] == {"state": "delivered", "attempts": 1}

    def test_an_unreached_url_is_pending_however_late_a_message_is(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http")
        (sent,) = topic.try_publish([{"body": "one"}]).json["messages"]
        for seconds in (6, DAY // 2):
            world.clock.pass_seconds(seconds)
            assert topic.trace(sent["id"]) == {"web": PENDING}
        world.settle()
        assert topic.trace(sent["id"]) == {"web": {"state": "delivered", "attempts": 1}}

        world.clock.pass_seconds(DAY // 2 - 7)
        world.engine.remove_expired()
        assert topic.trace(sent["id"]) == {"web": {"state": "delivered", "attempts": 1}}

    def test_a_message_blocked_behind_a_probe_is_pending(
        self, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        failing_url(topic, subscriber, "probe")
        (sent,) = topic.publish("behind")

        assert topic.trace(sent["id"]) == {"web": PENDING}

    def test_only_matching_subscriptions_are_traced_by_name(self, topic: TestTopic) -> None:
        topic.subscribe("zebra", filter={"tags": ["a"]})
        topic.subscribe("ape", filter={"tags": ["a"]})
        topic.subscribe("other", filter={"tags": ["b"]})
        (sent,) = topic.publish("one", tags=["a"])

        reply = topic.client.get(f"{topic.path}/messages/{sent['id']}").json
        assert reply.keys() == {"id", "sent_at", "deliveries"}
        assert reply["sent_at"] == sent["sent_at"]
        assert [each["subscription"] for each in reply["deliveries"]] == ["ape", "zebra"]

    def test_a_trace_and_the_log_outlive_a_queues_shorter_retention(
        self, world: World, make_queue: MakeQueue, topic: TestTopic
    ) -> None:
        make_queue("orders", message_retention_seconds=60)
        topic.subscribe("orders", "queue", endpoint="orders")
        (sent,) = topic.publish("x")
        world.clock.pass_seconds(DAY - 1)
        world.engine.remove_expired()

        assert topic.trace(sent["id"])["orders"]["state"] == "delivered"
        assert log_bodies(topic.log()) == ["x"]

    def test_a_trace_works_to_the_messages_expiry(self, world: World, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        (sent,) = topic.publish("one")
        group.delete(*group.receive())
        world.clock.pass_seconds(DAY - 0.001)
        assert topic.trace(sent["id"])["group"]["state"] == "delivered"
        world.clock.pass_seconds(0.001)

        reply = topic.client.get(f"{topic.path}/messages/{sent['id']}")
        assert (reply.status, reply.code) == (404, "MessageNotFound")

    @pytest.mark.parametrize(
        "message_id",
        ["x", "Msg-", "Msg-01M7Q5CQG0WSP6HVWFBYQ6GT8A0", "Msg-" + "Z" * 27, "Msg-" + "8" * 27],
    )
    def test_an_unknown_message_is_not_found(self, topic: TestTopic, message_id: str) -> None:
        topic.subscribe("group")
        topic.publish("one")

        assert topic.client.get(f"{topic.path}/messages/{message_id}").code == "MessageNotFound"

    def test_a_message_of_another_place_in_the_send_is_not_found(self, topic: TestTopic) -> None:
        topic.subscribe("group")
        (sent,) = topic.publish("one")

        assert topic.client.get(f"{topic.path}/messages/{sent['id'][:-1]}1").code == (
            "MessageNotFound"
        )


class TestCounts:
    def test_a_pull_subscription_counts_as_a_queue_does(
        self, world: World, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", retry={"policy": "custom", "waits": [5, 600]})
        assert counts(group) == {}
        topic.publish(*"abcd")
        assert counts(group) == {"active": 4}
        first, second, third, _ = group.receive(visibility_timeout_seconds=10)
        assert counts(group) == {"inactive": 4}
        group.delete(first)
        group.hold(second, 0)
        assert counts(group) == {"active": 1, "inactive": 2}
        group.give_back(third)
        assert counts(group) == {"active": 1, "inactive": 2}
        world.clock.pass_seconds(15)
        assert counts(group) == {"active": 3}

    def test_broadcasting_has_no_counts(self, topic: TestTopic) -> None:
        subscription = topic.subscribe("all", mode="broadcasting")
        topic.publish("x")

        shown = subscription.show()
        assert "counts" not in shown
        assert shown["state"] == "delivering"

    def test_a_topic_counts_messages_untaken_by_some_matching_subscription(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        one, two = topic.subscribe("one"), topic.subscribe("two", filter={"tags": ["a"]})
        topic.subscribe("web", "http")
        topic.subscribe("eyes", mode="broadcasting")
        assert topic.active() == 0
        subscriber.down("c")
        topic.publish("a", tags=["a"])
        topic.publish("b")
        topic.publish("c")
        assert topic.active() == 3
        one.delete(*one.receive_all())
        assert topic.active() == 2
        two.delete(*two.receive_all())
        assert topic.active() == 1
        subscriber.up()
        schedules.run_out()
        assert topic.active() == 0

    def test_counts_end_with_the_messages_life(self, world: World, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        (sent,) = topic.publish("one")
        world.clock.pass_seconds(DAY - 1)
        assert counts(group) == {"active": 1}
        (received,) = group.receive()
        assert to_ms(received["expires_at"]) == to_ms(sent["sent_at"]) + DAY * 1000
        world.clock.pass_seconds(1)
        assert counts(group) == {}
        assert group.receive() == []
        assert topic.active() == 0


def test_matched_0_leaves_nothing(world: World, alice: Client, topic: TestTopic, now: Any) -> None:
    topic.subscribe("only-a", filter={"tags": ["a"]})
    before = world.items()
    (sent,) = topic.try_publish([{"body": "x", "tags": ["b"]}]).json["messages"]

    assert sent == {"id": sent["id"], "matched": 0, "sent_at": now()}
    assert world.items() == before
    reply = alice.get(f"/topics/news/messages/{sent['id']}")
    assert (reply.status, reply.code) == (404, "MessageNotFound")
    assert topic.active() == 0
