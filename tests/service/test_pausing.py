"""Hands on a subscription: pausing, resuming, retrying now; and who would get a message."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import TestQueue
from tests.service.test_receiving import after
from tests.service.topics import Schedules, TestSubscription, TestTopic, failing_url

from cirrusmq.push import poster_lease
from cirrusmq_local.testing import Client, Subscriber, World

RETRIES: list[dict[str, Any]] = [
    {"policy": "exponential_decay"},
    {"policy": "custom", "waits": [3_600] * 4},
    {"policy": "backoff"},
]


def call(subscription: TestSubscription, what: str) -> dict[str, Any]:
    reply = subscription.client.post(f"{subscription.path}/{what}")
    assert reply.status in (200, 204), reply.text
    return dict(reply.json) if reply.status == 200 else {}


class TestPausing:
    @pytest.mark.parametrize("retry", RETRIES)
    def test_arrivals_wait_and_come_in_their_order_when_it_is_resumed(
        self,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        retry: dict[str, Any],
    ) -> None:
        web = topic.subscribe("web", "http", retry=retry, ordered=False)
        assert call(web, "pause")["paused"] is True
        topic.publish("first")
        topic.publish("second")
        schedules.pass_seconds(7_200)
        assert not subscriber.deliveries
        shown = web.show()
        assert (shown["state"], shown["paused"], shown["counts"]["active"]) == ("paused", True, 2)
        assert call(web, "resume")["paused"] is False
        schedules.pass_seconds(1)
        assert [each.text for each in subscriber.taken] == ["first", "second"]
        assert (web.show()["state"], web.show()["paused"]) == ("delivering", False)

    @pytest.mark.parametrize("retry", RETRIES)
    def test_a_schedule_ends_while_it_is_paused_and_begins_again(
        self,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        retry: dict[str, Any],
    ) -> None:
        web = failing_url(topic, subscriber, "sick", retry=retry)
        schedules.pass_seconds(5)
        attempts = len(subscriber.deliveries)
        call(web, "pause")
        schedules.pass_seconds(4_000)
        assert not schedules.running
        assert len(subscriber.deliveries) == attempts
        subscriber.up()
        call(web, "resume")
        schedules.pass_seconds(2)
        assert [each.text for each in subscriber.taken] == ["sick"]

    def test_resuming_does_not_shorten_a_wait(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        for retry in RETRIES[:2]:
            web = topic.subscribe(retry["policy"], "http", retry=retry)
        subscriber.down()
        topic.publish("sick")
        schedules.pass_seconds(600)
        for retry in RETRIES[:2]:
            web = TestSubscription(topic.client, topic.name, retry["policy"], {})
            before = web.show()["next_attempt_at"]
            call(web, "pause")
            call(web, "resume")
            schedules.pass_seconds(0.5)
            assert web.show()["next_attempt_at"] == before

    def test_an_execution_waking_at_the_end_of_a_pause_is_replaced(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(
            topic, subscriber, "sick", retry={"policy": "custom", "waits": [5, 3, 600]}
        )
        schedules.pass_seconds(3)
        call(web, "pause")
        schedules.pass_seconds(3)  # the execution wakes, and ends
        assert not schedules.running
        call(web, "resume")
        schedules.pass_seconds(4)
        assert subscriber.waits("sick") == [6, 3]

    def test_a_busy_poster_stops_within_ten_seconds(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http", retry={"policy": "http_unordered"}, max_in_flight=1)
        call(web, "pause")
        for number in range(40):
            topic.publish(str(number))
        paused_at: list[int] = []

        def answer(_: Any) -> int:
            world.clock.pass_seconds(1)
            if len(subscriber.deliveries) == 5:
                call(web, "pause")
                paused_at.append(world.clock.now_ms())
            return 204

        subscriber.answer = answer
        call(web, "resume")
        world.settle()
        assert 5 <= len(subscriber.deliveries) <= 5 + poster_lease_seconds()
        before = len(subscriber.deliveries)
        schedules.pass_seconds(100)
        assert len(subscriber.deliveries) == before
        call(web, "resume")
        schedules.pass_seconds(100)
        assert len({each.text for each in subscriber.taken}) == len(subscriber.taken) == 40

    def test_no_lease_begins_on_a_state_read_before_the_pause(
        self,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        web = topic.subscribe("web", "http")
        acquire = poster_lease.acquire

        def late(*given: Any, **more: Any) -> Any:
            monkeypatch.setattr(poster_lease, "acquire", acquire)
            call(web, "pause")
            return acquire(*given, **more)

        monkeypatch.setattr(poster_lease, "acquire", late)
        topic.publish("hello")
        schedules.pass_seconds(5)
        assert not subscriber.deliveries

    def test_the_sweep_finds_waiting_messages_if_the_worker_of_a_resume_is_lost(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        schedules = Schedules(world, sweeps=True)
        web = failing_url(topic, subscriber, "sick")
        schedules.pass_seconds(40)
        call(web, "pause")
        schedules.pass_seconds(700)  # the sweep leaves it alone
        attempts = len(subscriber.deliveries)
        subscriber.up()
        call(web, "resume")
        world.invoked.clear()
        schedules.pass_seconds(120)
        assert len(subscriber.deliveries) == attempts + 1

    def test_a_group_receives_nothing_and_settles_its_held_messages(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        topic.publish("held")
        (held,) = group.receive()
        call(group, "pause")
        topic.publish("waits")
        assert group.receive(wait_seconds=2) == []
        assert group.show()["state"] == "paused"
        assert group.show()["counts"] == {"active": 1, "inactive": 1, "delayed": 0}
        reply = group.client.post(f"{group.path}/messages/delete", {"receipts": [held["receipt"]]})
        assert reply.json["failed"] == []
        call(group, "resume")
        assert [each["body"] for each in group.receive()] == ["waits"]

    def test_a_waiting_poll_gets_the_messages_when_it_is_resumed(
        self, world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        group = topic.subscribe("group")
        call(group, "pause")
        topic.publish("waits")
        after(world, monkeypatch, 0, lambda: call(group, "resume"))
        assert [each["body"] for each in group.receive(wait_seconds=5)] == ["waits"]

    def test_a_function_is_called_with_waiting_messages_when_its_group_is_resumed(
        self, world: World, topic: TestTopic
    ) -> None:
        called: list[str] = []

        def handle(event: dict[str, Any]) -> dict[str, Any]:
            called.extend(record["body"] for record in event["Records"])
            return {"batchItemFailures": []}

        world.handle = handle
        group = topic.subscribe("group", invoke={"function": "handler"})
        schedules = Schedules(world, sweeps=True)
        call(group, "pause")
        topic.publish("waits")
        schedules.pass_seconds(600)
        assert called == []
        call(group, "resume")
        world.settle()
        assert called == ["waits"]

    def test_subscriptions_without_own_messages_show_no_pause(
        self, alice: Client, topic: TestTopic
    ) -> None:
        alice.put("/queues/work")
        topic.subscribe("queue", "queue", endpoint="work")
        topic.subscribe("log", mode="broadcasting")
        for name in ("queue", "log"):
            assert "paused" not in alice.get(f"{topic.path}/subscriptions/{name}").json

    def test_a_repeated_put_neither_ends_a_pause_nor_is_refused(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        call(group, "pause")
        assert topic.try_subscribe("group", protocol="pull").status == 200
        assert group.show()["paused"] is True


def poster_lease_seconds() -> int:
    from cirrusmq.push.lease_session import RENEW_MS

    return RENEW_MS // 1000 + 1


class TestRetryingNow:
    @pytest.mark.parametrize("retry", RETRIES)
    def test_a_backlog_is_posted_at_once(
        self,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        retry: dict[str, Any],
    ) -> None:
        web = failing_url(topic, subscriber, retry=retry)
        for number in range(5):
            topic.publish(str(number))
        schedules.pass_seconds(5)
        subscriber.up()
        before = len(subscriber.deliveries)
        call(web, "retry")
        schedules.pass_seconds(0.5)
        assert sorted(each.text for each in subscriber.deliveries[before:]) == list("01234")
        assert web.show()["state"] == "delivering"
        assert web.show()["counts"]["active"] == topic.active() == 0
        schedules.run_out()
        assert len(subscriber.deliveries) == before + 5

    def test_each_is_posted_once_and_then_waits_as_its_policy_says(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        retry = {"policy": "custom", "waits": [600, 20, 60, 60]}
        web = failing_url(topic, subscriber, "a", retry=retry)
        topic.publish("b")
        schedules.pass_seconds(10)
        call(web, "retry")
        schedules.pass_seconds(0.5)
        for text in "ab":
            assert len(subscriber.times(text)) == 2
        assert web.show()["counts"]["active"] == 2
        schedules.pass_seconds(30)
        for text in "ab":
            assert subscriber.waits(text)[1:] == [20]
        schedules.pass_seconds(60)
        for text in "ab":
            assert subscriber.waits(text)[1:] == [20, 60]

    def test_a_busy_poster_is_told(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http", retry={"policy": "custom", "waits": [900] * 3})
        subscriber.down("sick")
        topic.publish("sick")
        schedules.pass_seconds(1)

        def answer(delivery: Any) -> int:
            if delivery.text == "well":
                call(web, "retry")
                world.settle()
            return 204

        subscriber.answer = answer
        topic.publish("well")
        schedules.pass_seconds(1)
        assert [each.text for each in subscriber.deliveries] == ["sick", "well", "sick"]
        assert web.show()["state"] == "delivering"

    def test_a_poster_without_time_leaves_it_to_the_next_one(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        retry = {"policy": "custom", "waits": [900] * 3}
        web = failing_url(topic, subscriber, "sick", retry=retry, max_in_flight=1)
        schedules.pass_seconds(1)
        call(web, "pause")
        for number in range(40):
            topic.publish(str(number))
        begun_ms = world.clock.now_ms()
        asked: list[int] = []

        def answer(_: Any) -> int:
            world.clock.pass_seconds(4)
            if world.clock.now_ms() >= begun_ms + 103_000 and not asked:
                asked.append(len(subscriber.deliveries))
                call(web, "retry")
                world.settle()
            return 204

        subscriber.answer = answer
        call(web, "resume")
        world.settle()
        assert asked[0] < 40
        assert len(subscriber.times("sick")) == 2
        assert len(subscriber.taken) == 41

    @pytest.mark.long
    def test_more_marks_than_a_page_are_all_taken(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(topic, subscriber, retry={"policy": "custom", "waits": [900] * 3})
        for number in range(200):
            topic.publish(str(number))
        schedules.pass_seconds(1)
        assert len(subscriber.deliveries) == 200
        call(web, "retry")
        schedules.pass_seconds(1)
        assert len(subscriber.deliveries) == 400
        assert web.show()["counts"]["active"] == 200
        subscriber.up()
        call(web, "retry")
        schedules.pass_seconds(1)
        assert len(subscriber.taken) == 200
        assert web.show()["counts"]["active"] == 0

    def test_a_paused_url_has_no_schedule(self, alice: Client, topic: TestTopic) -> None:
        web = topic.subscribe("web", "http")
        call(web, "pause")
        assert alice.post(f"{web.path}/retry").json["detail"] == (
            "subscription: is paused: resume it first"
        )


class TestMatching:
    def match(self, topic: TestTopic, *messages: dict[str, Any], **more: Any) -> Any:
        reply = topic.client.post(f"{topic.path}/match", {"messages": list(messages), **more})
        assert reply.status == 200, reply.text
        return reply.json["messages"]

    def test_it_tells_matching_subscriptions_and_publishes_nothing(
        self, alice: Client, topic: TestTopic
    ) -> None:
        work: TestQueue = TestQueue(alice, "work")
        alice.put("/queues/work")
        all_ = topic.subscribe("all")
        topic.subscribe("drinks", "queue", endpoint="work", filter={"tags": ["drink"]})
        topic.subscribe("cheap", filter={"sql": "price < 10"})
        call(all_, "pause")
        body = {"body": "x", "tags": ["drink"]}
        drink, cheap = self.match(topic, body, {"body": "y", "attributes": {"price": "9"}})
        assert drink["subscriptions"] == [
            {"name": "all", "protocol": "pull", "paused": True},
            {"name": "drinks", "protocol": "queue", "paused": False},
        ]
        assert [each["name"] for each in cheap["subscriptions"]] == ["all", "cheap"]
        alice.world.settle()
        assert topic.log()["messages"] == []
        assert topic.active() == 0
        assert work.receive_all() == []

    def test_without_atomic_a_refused_message_fails_alone(self, topic: TestTopic) -> None:
        topic.subscribe("all")
        large = {"body": "x" * 65_537}

        few, none = self.match(topic, {"body": "x"}, large, atomic=False)
        assert [each["name"] for each in few["subscriptions"]] == ["all"]
        assert none["error"]["code"] == "MessageTooLarge"
