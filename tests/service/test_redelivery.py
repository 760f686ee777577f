"""Messages of a topic that are delivered to one subscription once more, by their ids."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import TestQueue, sweep
from tests.service.topics import Schedules, TestSubscription, TestTopic

from cirrusmq.queues import operations
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import Client, Reply, World

ONE_RETRY = {"policy": "custom", "waits": [3]}


def ask(subscription: TestSubscription, *ids: str) -> Reply:
    return subscription.client.post(f"{subscription.path}/redeliver", {"ids": list(ids)})


def redeliver(subscription: TestSubscription, *ids: str) -> dict[str, Any]:
    """Have it done; the operation as it ended."""
    reply = ask(subscription, *ids)
    assert reply.status == 202, reply.text
    subscription.client.world.settle()
    shown = subscription.client.get(f"/operations/{reply.json['operation']}")
    found: dict[str, Any] = shown.json
    return found


def bodies(world: World) -> list[str]:
    return [body.decode() for _, _, body in world.posts]


def test_a_message_taken_by_a_url_is_posted_to_it_alone_once_more(
    world: World, topic: TestTopic
) -> None:
    web = topic.subscribe("web", "http", content_format="simplified")
    topic.subscribe("other", "http", content_format="simplified", endpoint="https://b.example/")
    first, second = topic.publish("one", "two", attributes={"a": "b"})
    assert len(world.posts) == 4
    world.posts.clear()
    world.clock.pass_seconds(60)

    ended = redeliver(web, first["id"])

    assert (ended["state"], ended["kind"], ended["done"]) == ("succeeded", "replay", 1)
    assert (ended["topic"], ended["subscription"]) == ("news", "web")
    assert bodies(world) == ["one"]
    assert first["id"] in str(world.posts[0][1])
    assert topic.trace(first["id"])["web"] == {"state": "delivered", "attempts": 1}
    assert topic.trace(second["id"])["other"] == {"state": "delivered", "attempts": 1}


def test_one_failing_again_is_retried_anew_and_then_dead(
    world: World, topic: TestTopic, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http", retry=ONE_RETRY, content_format="simplified")
    (message,) = topic.publish("one")
    world.endpoint = lambda url: "status 503"
    redeliver(web, message["id"])

    traced = topic.trace(message["id"])["web"]
    assert (traced["state"], traced["attempts"], traced["last_error"]) == (
        "retrying", 1, "status 503",
    )  # fmt: skip
    assert ask(web, message["id"]).code == "Conflict"
    schedules.pass_seconds(30)
    assert topic.trace(message["id"])["web"]["state"] == "dead"
    world.endpoint = lambda url: None
    redeliver(web, message["id"])
    assert topic.trace(message["id"])["web"]["state"] == "delivered"


def test_a_group_receives_it_once_more_with_all_its_fields(topic: TestTopic) -> None:
    group = topic.subscribe("all")
    (message,) = topic.publish("one", tags=["t"], attributes={"a": "b"})
    group.delete(*group.receive())
    assert topic.trace(message["id"])["all"]["state"] == "delivered"

    redeliver(group, message["id"])

    assert topic.trace(message["id"])["all"]["state"] == "pending"
    (again,) = group.receive()
    assert (again["id"], again["body"], again["tags"], again["attributes"]) == (
        message["id"], "one", ["t"], {"a": "b"},
    )  # fmt: skip
    assert again["receive_count"] == 1
    group.delete(again)
    assert topic.trace(message["id"])["all"]["state"] == "delivered"
    assert group.receive() == []


def test_an_ordered_group_gets_it_at_its_end(topic: TestTopic) -> None:
    group = topic.subscribe("all", ordered=True)
    (first,) = topic.publish("1", group="g")
    group.delete(*group.receive())
    topic.publish("2", group="g")
    redeliver(group, first["id"])
    topic.publish("3", group="g")
    assert group.consume() == ["2", "1", "3"]


def test_a_large_message_is_delivered_again_from_its_object(topic: TestTopic) -> None:
    topic.client.patch("/topics/news", {"max_message_bytes": 1_048_576})
    group = topic.subscribe("all")
    (message,) = topic.publish("x" * 300_000)
    group.delete(*group.receive())
    redeliver(group, message["id"])
    (again,) = group.receive()
    assert len(again["body"]) == 300_000


def test_a_function_gets_it_once_more(world: World, alice: Client) -> None:
    admin = world.client("alice", admin=True)
    topic = TestTopic(admin)
    group = topic.subscribe("all", invoke={"function": "handler"})
    seen: list[str] = []

    def handle(event: dict[str, Any]) -> dict[str, Any]:
        seen.extend(each["body"] for each in event["Records"])
        return {"batchItemFailures": []}

    world.handle = handle
    (message,) = topic.publish("one")
    redeliver(group, message["id"])
    assert seen == ["one", "one"]


def test_a_dead_letter_may_be_delivered_again_and_stays_in_its_queue(
    world: World, topic: TestTopic
) -> None:
    topic.client.put("/queues/dead")
    group = topic.subscribe("all", dead_letter_queue="dead")
    (message,) = topic.publish("one")
    group.act("dead-letter", *group.receive())
    world.settle()
    assert topic.trace(message["id"])["all"]["state"] == "dead"
    redeliver(group, message["id"])
    assert [each["body"] for each in group.receive()] == ["one"]
    assert TestQueue(topic.client, "dead").counts() == {"active": 1}


def test_several_are_put_in_one_operation_and_each_once(topic: TestTopic) -> None:
    group = topic.subscribe("all")
    published = topic.publish(*map(str, range(10)))
    group.delete(*group.receive())
    ids = [each["id"] for each in published]
    ended = redeliver(group, *ids, ids[0])
    assert ended["done"] == 10
    assert sorted(each["body"] for each in group.receive()) == list(map(str, range(10)))


def test_a_run_with_stops_or_lost_answers_puts_none_twice(
    world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = topic.subscribe("all")
    published = topic.publish(*"abcdef")
    group.delete(*group.receive())
    execute, tried = world.engine.execute, [0]

    def lose(operation: str, request: Any) -> Any:
        if operation != "TransactWriteItems" or "#again" not in str(request):
            return execute(operation, request)
        tried[0] += 1
        if tried[0] % 3 == 0:
            raise EngineError("InternalServerError", "not done")
        answer = execute(operation, request)
        if tried[0] % 3 == 1:
            raise EngineError("InternalServerError", "lost")
        return answer

    monkeypatch.setattr(world.engine, "execute", lose)
    started = ask(group, *(each["id"] for each in published)).json["operation"]
    world.settle()
    for _ in range(20):
        sweep(world, after_seconds=61)
    shown = world.client("alice").get(f"/operations/{started}").json
    assert (shown["state"], shown["done"]) == ("succeeded", 6)
    assert sorted(each["body"] for each in group.receive()) == list("abcdef")
    assert tried[0] > 6


def test_the_operation_tells_of_messages_gone_meanwhile(
    world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = topic.subscribe("all")
    (message,) = topic.publish("one")
    group.delete(*group.receive())
    monkeypatch.setattr(operations, "resume", lambda *_: None)
    started = ask(group, message["id"]).json["operation"]
    monkeypatch.undo()
    sweep(world, after_seconds=90_000)
    shown = world.client("alice").get(f"/operations/{started}").json
    assert (shown["state"], shown["done"]) == ("succeeded", 0)
    assert shown["detail"] == "1 messages are gone from the topic's log"
    assert group.receive() == []


def test_a_group_rewound_since_is_traced_from_there(topic: TestTopic) -> None:
    group = topic.subscribe("all")
    begun = topic.client.get("/health").json["time"]
    (message,) = topic.publish("one")
    group.delete(*group.receive())
    redeliver(group, message["id"])
    group.delete(*group.receive())
    assert topic.trace(message["id"])["all"]["state"] == "delivered"
    assert group.run("rewind", to=begun)["state"] == "succeeded"
    assert topic.trace(message["id"])["all"]["state"] == "pending"
    group.delete(*group.receive())
    redeliver(group, message["id"])
    assert topic.trace(message["id"])["all"]["state"] == "pending"


def test_a_message_costs_eight_write_units_and_a_call_fifteen(
    world: World, topic: TestTopic
) -> None:
    group = topic.subscribe("all")
    ids = [topic.publish(str(number))[0]["id"] for number in range(11)]
    group.consume()
    redeliver(group, ids[0])  # it is noted that messages come alone, once in a quarter of an hour
    group.delete(*group.receive())
    world.settle()

    one = world.write_units(lambda: redeliver(group, ids[0]))
    group.delete(*group.receive())
    world.settle()
    eleven = world.write_units(lambda: redeliver(group, *ids))

    assert (eleven - one) / 10 == 8
    assert one - 8 == 15


class TestRefusals:
    def test_one_on_its_way(self, topic: TestTopic) -> None:
        group = topic.subscribe("all")
        (message,) = topic.publish("one")
        reply = ask(group, message["id"])
        assert (reply.status, reply.code) == (409, "Conflict")
        assert "pending" in reply.json["detail"]

    def test_one_left_out_by_the_filter_and_an_unknown_one(self, topic: TestTopic) -> None:
        group = topic.subscribe("some", filter={"tags": ["paid"]})
        topic.subscribe("all")
        (message,) = topic.publish("one")
        assert ask(group, message["id"]).code == "MessageNotFound"
        assert ask(group, f"{message['id'][:-1]}1").code == "MessageNotFound"

    def test_a_day_later(self, world: World, topic: TestTopic) -> None:
        group = topic.subscribe("all")
        (message,) = topic.publish("one")
        group.delete(*group.receive())
        world.clock.pass_seconds(86_401)
        assert ask(group, message["id"]).code == "MessageNotFound"
