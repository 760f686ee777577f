"""Delayed publishing: queues, groups, URLs and readers of the log get a message when it is due."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import TestQueue, to_ms
from tests.service.topic_crashes import Crashes
from tests.service.topics import Schedules, TestSubscription, TestTopic, log_bodies

from cirrusmq.base import ulid
from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, Subscriber, World

DAY = 86_400
POLICIES: list[dict[str, Any]] = [{"policy": "exponential_decay"}, {"policy": "unordered"}]


def refusal(topic: TestTopic, **fields: Any) -> tuple[str | None, Any, Any]:
    reply = topic.try_publish([{"body": "x", **fields}])
    assert reply.status == 400
    return reply.code, reply.json["parameter"], reply.json["detail"]


class TestContract:
    def test_a_time_is_within_a_day_and_a_past_one_is_at_once(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        now_ms = world.clock.now_ms()
        late = format_time(now_ms + DAY * 1_000)
        code, parameter, _ = refusal(topic, deliver_at=late)
        assert (code, parameter) == ("InvalidParameter", "messages[0].deliver_at")
        topic.publish("at once", deliver_at=format_time(now_ms - 5_000))
        topic.publish("at once", deliver_at=(now_ms - 5_000) / 1_000)
        assert [each["body"] for each in group.receive_all()] == ["at once", "at once"]

    def test_ordered_subscriptions_get_none_later(self, alice: Client, topic: TestTopic) -> None:
        alice.put("/queues/ordered", {"ordered": True})
        kinds: dict[str, dict[str, Any]] = {
            "group": {"protocol": "pull", "ordered": True},
            "queue": {"protocol": "queue", "endpoint": "ordered"},
            "web": {"protocol": "http", "retry": {"policy": "backoff"}},
        }
        for name, fields in kinds.items():
            made = topic.subscribe(name, **fields, filter={"tags": [name]})
            code, parameter, detail = refusal(topic, delay_seconds=5, tags=[name])
            assert (code, parameter) == ("InvalidParameter", "messages[0].delay_seconds")
            assert f"subscription {name} gets its messages in order" in detail
            topic.publish("x", tags=["other"], delay_seconds=5)
            alice.delete(made.path)

    def test_a_queue_must_keep_it_for_so_long(self, alice: Client, topic: TestTopic) -> None:
        alice.put("/queues/short", {"message_retention_seconds": 60})
        topic.subscribe("short", "queue", endpoint="short")
        assert "below the retention" in refusal(topic, delay_seconds=60)[2]
        topic.publish("x", delay_seconds=59)

    def test_without_atomic_a_refused_message_fails_alone(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", ordered=True)
        messages: list[dict[str, Any]] = [{"body": "later", "delay_seconds": 5}, {"body": "now"}]
        reply = topic.try_publish(messages, atomic=False)
        assert reply.status == 200
        assert reply.json["messages"][0]["error"]["parameter"] == "messages[0].delay_seconds"
        topic.client.world.settle()
        assert [each["body"] for each in group.receive()] == ["now"]


class TestOnTime:
    @pytest.mark.parametrize("rewindable", [False, True])
    def test_in_groups_and_queues(
        self, world: World, alice: Client, topic: TestTopic, rewindable: bool
    ) -> None:
        attributes = {"delay_seconds": 1} | ({"rewind_seconds": 3_600} if rewindable else {})
        alice.put("/queues/inbox", attributes)
        inbox, group = TestQueue(alice, "inbox"), topic.subscribe("group")
        topic.subscribe("copy", "queue", endpoint="inbox")
        begun_ms = world.clock.now_ms()
        messages: list[dict[str, Any]] = [
            {"body": "100", "delay_seconds": 100},
            {"body": "10", "delay_seconds": 10},
            {"body": "at 50", "deliver_at": format_time(begun_ms + 50_000)},
            {"body": "now"},
        ]
        assert topic.try_publish(messages).status == 201
        world.settle()
        found: dict[str, list[tuple[int, str]]] = {"group": [], "inbox": []}
        for second in range(110):
            for name, source in (("group", group), ("inbox", inbox)):
                for each in source.receive():
                    found[name].append((second, each["body"]))
                    assert to_ms(each["sent_at"]) == begun_ms
                    source.delete(each)
            world.clock.pass_seconds(1)
        due = [(10, "10"), (50, "at 50"), (100, "100")]
        assert found["group"] == [(0, "now"), *due]
        assert found["inbox"] == [(1, "now"), *due]

    @pytest.mark.parametrize("retry", POLICIES)
    def test_at_urls(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        retry: dict[str, Any],
    ) -> None:
        web = topic.subscribe("web", "http", retry=retry)
        begun_ms = world.clock.now_ms()
        seconds = (300, 5, 60, 1, 5, 86_000, 200)
        for number, each in enumerate(seconds):
            topic.try_publish([{"body": f"{number}", "delay_seconds": each}, {"body": "now"}])
            world.settle()
        assert web.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 7}
        schedules.pass_seconds(30)
        assert web.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 4}
        assert web.show()["state"] == "delivering"
        schedules.pass_seconds(DAY)
        for number, each in enumerate(seconds):
            (at_ms,) = subscriber.times(str(number))
            assert each <= (at_ms - begun_ms) / 1_000 <= each + 0.1
        assert len(subscriber.times("now")) == 7
        assert schedules.running == []

    @pytest.mark.few(1)
    @pytest.mark.parametrize("retry", POLICIES)
    def test_at_a_failing_and_busy_url_it_is_on_time(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        retry: dict[str, Any],
    ) -> None:
        topic.subscribe("web", "http", retry=retry)
        topic.publish("later", delay_seconds=120)
        begun_ms = world.clock.now_ms()
        subscriber.down("bad")
        for number in range(40):
            topic.publish("bad" if number == 3 else f"{number}")
            if number == 10:
                subscriber.up()
            schedules.pass_seconds(5)
        (at_ms,) = subscriber.times("later")
        assert 120 <= (at_ms - begun_ms) / 1_000 <= 120.1
        assert len({each.text for each in subscriber.taken}) == 41

    def test_its_retries_follow_its_first_post(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http", retry={"policy": "custom", "waits": [10, 20]})
        subscriber.down()
        topic.publish("later", delay_seconds=100)
        schedules.pass_seconds(200)
        assert subscriber.waits("later") == [10, 20]

    def test_after_a_pause(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http")
        topic.client.post(f"{web.path}/pause")
        topic.publish("later", delay_seconds=100)
        schedules.pass_seconds(10)
        topic.client.post(f"{web.path}/resume")
        schedules.pass_seconds(80)
        assert subscriber.bodies() == []
        schedules.pass_seconds(20)
        assert subscriber.bodies() == ["later"]

    def test_readers_of_the_log_see_it_then_and_once(self, world: World, topic: TestTopic) -> None:
        reader = topic.subscribe("reader", mode="broadcasting")
        messages: list[dict[str, Any]] = [
            {"body": "later", "delay_seconds": 100},
            {"body": "now"},
            {"body": "soon", "delay_seconds": 10},
        ]
        topic.try_publish(messages)
        world.settle()
        seen: list[tuple[int, str]] = []
        page = reader.log()
        for second in range(120):
            page = reader.log(after=page["cursor"]) if second else page
            seen += [(second, body) for body in log_bodies(page)]
            world.clock.pass_seconds(1)
        assert [body for _, body in seen] == ["now", "soon", "later"]
        assert [10 <= second <= 14 for second, body in seen if body == "soon"] == [True]
        assert [100 <= second <= 104 for second, body in seen if body == "later"] == [True]
        assert log_bodies(reader.log()) == ["now", "soon", "later"]

    def test_readers_see_one_due_at_the_time_of_its_attempt(
        self, world: World, topic: TestTopic
    ) -> None:
        """The publisher's clock is ahead by the delay, and its record has the key of that time."""
        reader = topic.subscribe("reader", mode="broadcasting")
        ahead = ulid.encode(world.clock.now_ms() + 1_000, b"0123456789")
        messages: list[dict[str, Any]] = [{"body": "now"}, {"body": "soon", "delay_seconds": 1}]
        for _ in range(2):
            assert topic.try_publish(messages, attempt=ahead).status == 201
            world.settle()
        world.clock.pass_seconds(10)
        assert sorted(log_bodies(reader.log())) == ["now", "soon"]

    def test_a_life_counts_from_publishing(
        self,
        world: World,
        topic: TestTopic,
        group: TestSubscription,
        subscriber: Subscriber,
        schedules: Schedules,
    ) -> None:
        topic.publish("later", delay_seconds=DAY - 100)
        world.clock.pass_seconds(DAY - 50)
        (message,) = group.receive(visibility_timeout_seconds=1)
        assert to_ms(message["expires_at"]) - to_ms(message["sent_at"]) == DAY * 1_000
        world.clock.pass_seconds(60)
        assert group.receive() == []


class TestFailures:
    @pytest.mark.few(4)
    @pytest.mark.parametrize("at", range(14))
    def test_a_crash_anywhere_costs_two_minutes_at_most(self, alice: Client, at: int) -> None:
        world = alice.world
        subscriber, topic = world.subscriber(), TestTopic(alice)
        topic.subscribe("web", "http")
        Crashes(world, "push", at)
        schedules = Schedules(world, sweeps=True)
        begun_ms = world.clock.now_ms()
        topic.publish("later", delay_seconds=30)
        schedules.pass_seconds(400)
        times = subscriber.times("later")
        assert 30 <= (times[0] - begun_ms) / 1_000 <= 30 + 120
        assert len(times) <= 2

    def test_a_publish_during_anothers_post_is_not_forgotten(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http")
        begun_ms = world.clock.now_ms()

        def answer(delivery: Any) -> int:
            if delivery.text == "first":
                topic.publish("later", delay_seconds=20)
            return 204

        subscriber.answer = answer
        topic.publish("first")
        schedules.pass_seconds(60)
        (at_ms,) = subscriber.times("later")
        assert 20 <= (at_ms - begun_ms) / 1_000 <= 20.1


class TestUnits:
    def test_a_group_pays_a_pointer_and_others_nothing(
        self, world: World, topic: TestTopic
    ) -> None:
        topic.subscribe("group")
        topic.publish("warm")
        at_once = world.write_units(lambda: topic.publish("x"))
        assert world.write_units(lambda: topic.publish("x", delay_seconds=5)) == at_once + 1
