"""Batches of the stream: notices, time, failures, subscriptions that are not known yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep
from tests.service.faults import Throttled, log_records, publish_apart, puts_into
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.fanout.stream_batch import TOGETHER, deliver_records
from cirrusmq.subscriptions.subscriptions import cached_subscriptions
from cirrusmq_lambda.streams import read_entry
from cirrusmq_local.testing import Subscriber, World

COUNT = 3 * TOGETHER


def publish(topic: TestTopic, count: int = COUNT) -> list[dict[str, Any]]:
    """Publish in calls of their own, without fan-out; answers the records."""
    return publish_apart(topic, *(f"{number:02d}" for number in range(count)))


def pushes(world: World) -> list[str]:
    """Names of the subscriptions that push is told of."""
    told = [event["deliver"]["subscription"] for role, event in world.invoked if role == "push"]
    return sorted(told)


def parking(operation: str, request: Mapping[str, Any]) -> bool:
    """Writes of shares that are put aside."""
    key = (request.get("Item") or request.get("Key") or {}).get("pk", {}).get("S", "")
    return str(key).startswith("P#") and operation in ("PutItem", "UpdateItem")


class TestNotices:
    def test_a_subscription_is_told_once_of_a_batch(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        for name in ("one", "two"):
            topic.subscribe(name, "http", endpoint=f"http://127.0.0.1:9/{name}")
        world.run("fan_out", {"Records": publish(topic)})
        assert pushes(world) == ["one", "two"]
        world.settle()
        assert len(subscriber.bodies("one")) == len(subscriber.bodies("two")) == COUNT

    def test_it_is_told_of_done_work_also_if_the_batch_stops(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http")
        group = topic.subscribe("group", filter={"tags": ["late"]})
        publish(topic)
        assert topic.try_publish([{"body": "late", "tags": ["late"]}]).status == 201
        records = log_records(world)
        refuse = puts_into(group.id)
        Throttled(world, lambda *call: refuse(*call) or parking(*call))
        failures = world.run("fan_out", {"Records": records})["batchItemFailures"]
        assert failures == [{"itemIdentifier": records[-1]["dynamodb"]["SequenceNumber"]}]
        assert pushes(world) == ["web"]

    def test_one_not_told_is_found_by_the_sweep(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        topic.subscribe("web", "http")
        records = publish(topic, 1)

        def refuse(*_: Any) -> None:
            raise ConnectionError

        monkeypatch.setattr("cirrusmq.fanout.push_triggers.delivery_items.notify", refuse)
        assert world.run("fan_out", {"Records": records}) == {"batchItemFailures": []}
        monkeypatch.undo()
        sweep(world)
        assert subscriber.bodies() == ["00"]


class TestStopping:
    def test_a_store_taking_nothing_stops_the_batch_at_the_first(
        self, world: World, topic: TestTopic
    ) -> None:
        topic.subscribe("group")
        records = publish(topic)
        fault = Throttled(world, lambda operation, _: operation in ("PutItem", "UpdateItem"))
        failures = world.run("fan_out", {"Records": records})["batchItemFailures"]
        assert failures == [{"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]}]
        assert fault.refused < 10  # nothing behind it is tried
        assert not world.invoked

    def test_it_stops_before_its_time_is_over_and_tells_its_progress(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        entries = [read_entry(record) for record in publish(topic)]
        execute = world.engine.execute

        def slow(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            world.clock.pass_seconds(1)
            return execute(operation, request)

        world.engine.execute = slow  # type: ignore[method-assign]
        began_ms = world.clock.now_ms()
        done, errors = deliver_records(world.core, entries, 20_000)
        assert world.clock.now_ms() - began_ms <= 22_000
        world.engine.execute = execute  # type: ignore[method-assign]
        assert TOGETHER <= done < COUNT
        assert errors == []
        assert len(group.receive_all()) >= done

    def test_a_throttled_subscription_holds_up_nobody_else_of_the_shard(
        self, world: World, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        throttled, inbox = topic.subscribe("throttled"), make_queue("inbox")
        topic.subscribe("box", "queue", endpoint="inbox")
        records = publish(topic)
        Throttled(world, puts_into(throttled.id))
        assert world.run("fan_out", {"Records": records}) == {"batchItemFailures": []}
        assert len(inbox.receive_all()) == COUNT
        drainers = [event for role, event in world.invoked if role == "replay"]
        assert json.loads(json.dumps(drainers)) == [{"parked": throttled.id}]


class TestNews:
    """A subscription that publish knows and another function's cache does not, yet."""

    @pytest.fixture
    def stale(self, world: World, topic: TestTopic) -> list[dict[str, Any]]:
        """A record for a subscription that was created when the caches had been filled."""
        topic.subscribe("before")
        topic_id = topic.show()["id"]
        before = list(cached_subscriptions(world.core, topic_id))
        topic.subscribe("news")
        records = publish(topic, 1)
        world.core.cache.drop((f"T#{topic_id}", "subscription#"))
        world.core.cache.get((f"T#{topic_id}", "subscription#"), lambda: before)
        assert [each.name for each in cached_subscriptions(world.core, topic_id)] == ["before"]
        return records

    def test_it_gets_the_message(
        self, world: World, topic: TestTopic, stale: list[dict[str, Any]]
    ) -> None:
        world.run("fan_out", {"Records": stale})
        for name in ("before", "news"):
            path = f"/topics/news/subscriptions/{name}/messages/receive"
            held = topic.client.post(path, {"wait_seconds": 0.2}).json["messages"]
            assert [message["body"] for message in held] == ["00"]

    def test_the_trace_has_it(self, topic: TestTopic, stale: list[dict[str, Any]]) -> None:
        send_id = stale[0]["dynamodb"]["Keys"]["sk"]["S"].partition("#")[2]
        states = {name: each["state"] for name, each in topic.trace(f"Msg-{send_id}0").items()}
        assert states == {"before": "pending", "news": "pending"}

    def test_a_deleted_subscription_costs_one_look_a_second(
        self, world: World, topic: TestTopic
    ) -> None:
        topic.subscribe("stays")
        topic.subscribe("goes")
        records = publish(topic)
        assert topic.client.delete("/topics/news/subscriptions/goes").status == 204
        queries = 0
        execute = world.engine.execute

        def count(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            nonlocal queries
            queries += operation == "Query"
            return execute(operation, request)

        world.engine.execute = count  # type: ignore[method-assign]
        assert world.run("fan_out", {"Records": records}) == {"batchItemFailures": []}
        assert queries <= 2


def test_a_changed_queue_gets_later_publishes_by_its_new_attributes(
    cloud: World,
) -> None:
    """With caches of their own for each function: the change waits for their second to end."""
    alice = cloud.client("alice")
    topic = TestTopic(alice)
    assert alice.put("/queues/inbox").status == 201
    topic.subscribe("box", "queue", endpoint="inbox")
    topic.publish("at once")
    assert alice.patch("/queues/inbox", {"delay_seconds": 60}).status == 200
    topic.publish("delayed")
    assert alice.get("/queues/inbox").json["counts"]["delayed"] == 1


class TestCopiesThatMoved:
    """A batch comes again an hour later: the copies it made before were moved, and cleaned up."""

    LATER_SECONDS = 3_600

    def send_a_copy(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("audit")
        world.clock.pass_seconds(2)
        queue.send("x")
        world.settle()

    def test_a_given_back_copy_is_there_once(self, world: World, queue: TestQueue) -> None:
        self.send_a_copy(world, queue)
        (copy,) = queue.receive(receiver="audit")
        world.clock.pass_seconds(10)
        queue.give_back(copy, delay_seconds=2 * self.LATER_SECONDS - 10)

        assert self.bodies_after_the_repetition(world, queue) == ["x"]

    def test_a_dead_letter_does_not_come_back(
        self, world: World, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 1})
        self.send_a_copy(world, queue)
        queue.receive(receiver="audit", visibility_timeout_seconds=1)
        world.clock.pass_seconds(2)
        queue.receive(receiver="audit")
        world.settle()

        assert self.bodies_after_the_repetition(world, queue) == []
        assert dead.bodies() == ["x"]

    def bodies_after_the_repetition(self, world: World, queue: TestQueue) -> list[str]:
        world.clock.pass_seconds(self.LATER_SECONDS)
        queue.receive(wait_seconds=0, receiver="audit")
        world.settle()
        world.run("fan_out", {"Records": log_records(world)})
        world.clock.pass_seconds(self.LATER_SECONDS)
        return queue.bodies(receiver="audit")
