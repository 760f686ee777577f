"""The trace context of W3C: from the headers of a send to the attributes and to posts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_receiving import attempt
from tests.service.topics import Schedules, TestTopic, failing_url

from cirrusmq.base import limits
from cirrusmq_local.testing import Reply, Subscriber, World

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATE = "rojo=00f067aa0ba902b7"
HEADERS = {"traceparent": PARENT, "tracestate": STATE}


def traced(
    target: TestQueue | TestTopic,
    *messages: dict[str, Any],
    headers: dict[str, str] = HEADERS,
    **fields: Any,
) -> Reply:
    """Sends or publishes messages, by a call with a trace context in its headers."""
    body = json.dumps({"messages": messages or [{"body": "x"}], **fields}).encode()
    reply = target.client.raw("POST", f"{target.path}/messages", body, headers=headers)
    assert reply.status == 201, reply.text
    return reply


def test_each_message_gets_the_headers_of_its_send(queue: TestQueue) -> None:
    traced(queue, {"body": "a"}, {"body": "b", "attributes": {"k": "v"}, "group": "g"})

    found = {each["body"]: each["attributes"] for each in queue.receive()}

    assert found == {"a": HEADERS, "b": {"k": "v", **HEADERS}}


def test_a_message_keeps_its_own_context(queue: TestQueue) -> None:
    traced(queue, {"body": "x", "attributes": {"traceparent": OTHER}})

    assert queue.receive()[0]["attributes"] == {"traceparent": OTHER}


@pytest.mark.parametrize(
    "headers", [{"traceparent": PARENT[:-1], "tracestate": STATE}, {"tracestate": STATE}, {}]
)
def test_an_invalid_header_is_ignored(queue: TestQueue, headers: dict[str, str]) -> None:
    traced(queue, headers=headers)

    assert queue.receive()[0]["attributes"] == {}


def test_a_message_with_many_attributes_is_sent_without_it(queue: TestQueue) -> None:
    own = {f"k{number}": "v" for number in range(limits.ATTRIBUTES)}
    traced(queue, {"body": "full", "attributes": own}, {"body": "empty"})

    found = {each["body"]: each["attributes"] for each in queue.receive()}

    assert found == {"full": own, "empty": HEADERS}


def test_messages_of_the_most_bytes_are_sent_without_it(make_queue: MakeQueue) -> None:
    queue = make_queue(max_message_bytes=limits.BATCH_BYTES, invoke={"function": "handler"})

    traced(queue, {"body": "x" * 1_000_000}, {"body": "y" * (limits.BATCH_BYTES - 1_000_000)})


@pytest.mark.parametrize("kind", ["send", "publish"])
def test_a_repeated_attempt_with_another_header_is_the_same_call(
    world: World, queue: TestQueue, topic: TestTopic, kind: str
) -> None:
    group, token = topic.subscribe("group"), attempt(world)
    target, reader = (queue, queue) if kind == "send" else (topic, group)

    first = traced(target, attempt=token)
    second = traced(target, attempt=token, headers={"traceparent": OTHER})

    world.settle()
    assert first.json == second.json
    assert [each["attributes"] for each in reader.receive_all()] == [HEADERS]


def test_the_first_of_a_deduplication_id_keeps_its_context(queue: TestQueue) -> None:
    traced(queue, {"body": "x", "deduplication_id": "d"})
    traced(queue, {"body": "x", "deduplication_id": "d"}, headers={"traceparent": OTHER})

    assert [each["attributes"] for each in queue.receive_all()] == [HEADERS]


def test_a_replacing_message_has_its_own_context(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(delay_seconds=5)
    traced(queue, {"body": "old", "replace": "k"})
    traced(queue, {"body": "new", "replace": "k"}, headers={"traceparent": OTHER})
    world.clock.pass_seconds(6)

    assert [each["attributes"] for each in queue.receive_all()] == [{"traceparent": OTHER}]


def test_retries_dead_letters_and_redrives_keep_it(world: World, make_queue: MakeQueue) -> None:
    dead = make_queue("dead")
    queue = make_queue(dead_letter={"queue": "dead", "max_receives": 2})
    traced(queue)
    seen = []
    for _ in range(2):
        (message,) = queue.receive()
        seen.append(message["attributes"])
        queue.give_back(message, delay_seconds=0)
        world.clock.pass_seconds(2)
    assert queue.receive() == []
    world.settle()
    seen += [each["attributes"] for each in dead.peek()]

    dead.run("redrive")

    assert [*seen, queue.receive()[0]["attributes"]] == [HEADERS] * 4


def test_a_grantee_and_a_sender_by_priority_have_it_too(make_queue: MakeQueue) -> None:
    queue = make_queue(priorities=3, sender="key")
    traced(queue, {"body": "x", "priority": 2})

    (message,) = queue.receive()

    assert (message["attributes"], message["priority"]) == (HEADERS, 2)


@pytest.mark.parametrize("name", ["queue", "group"])
def test_a_topic_hands_it_on(topic: TestTopic, make_queue: MakeQueue, name: str) -> None:
    queue = make_queue()
    source: TestQueue = topic.subscribe("group")
    if name == "queue":
        topic.subscribe("copies", "queue", endpoint="orders")
        source = queue

    traced(topic)
    topic.client.world.settle()

    assert source.receive()[0]["attributes"] == HEADERS


def test_filters_see_plain_attributes(topic: TestTopic) -> None:
    with_it = topic.subscribe("with", filter={"policy": {"traceparent": [{"exists": True}]}})
    without = topic.subscribe("without", filter={"sql": "traceparent IS NULL"})
    body = json.dumps({"messages": [{"body": "x"}]}).encode()

    matched = topic.client.raw("POST", f"{topic.path}/match", body, headers=HEADERS)
    traced(topic)
    topic.client.world.settle()

    (entry,) = matched.json["messages"]
    assert [each["name"] for each in entry["subscriptions"]] == ["with"]
    assert (len(with_it.receive()), len(without.receive())) == (1, 0)


def test_a_half_message_keeps_the_context_of_its_publish(topic: TestTopic) -> None:
    group = topic.subscribe("group")
    handle = traced(topic, transaction={}).json["transaction"]["handle"]

    topic.client.post(f"{topic.path}/half/commit", {"handle": handle})
    topic.client.world.settle()

    assert group.receive()[0]["attributes"] == HEADERS


@pytest.mark.parametrize("content_format", ["json", "simplified"])
def test_each_post_has_the_headers(
    world: World, topic: TestTopic, subscriber: Subscriber, content_format: str
) -> None:
    failing_url(topic, subscriber, content_format=content_format, retry={"policy": "backoff"})
    traced(topic)
    world.settle()
    subscriber.up()
    Schedules(world).run_out()

    first, second = subscriber.deliveries
    for each in (first, second):
        assert {name: each.headers.get(name) for name in HEADERS} == HEADERS
    if content_format == "json":
        assert json.loads(second.body)["msgAttributes"] == HEADERS
    else:
        assert second.headers["x-cmq-attribute-traceparent"] == PARENT


def test_a_post_has_no_header_of_an_invalid_attribute(
    topic: TestTopic, subscriber: Subscriber
) -> None:
    topic.subscribe("web", "http")
    topic.publish("x", attributes={"traceparent": f"{PARENT}\r\nevil: 1", "tracestate": "ü"})
    topic.publish("y", attributes={"traceparent": PARENT, "tracestate": "ü"})

    found = [
        {name for name in each.headers if name in (*HEADERS, "evil")}
        for each in subscriber.deliveries
    ]

    assert found == [set(), {"traceparent"}]


def test_a_functions_record_has_the_attributes(world: World, make_queue: MakeQueue) -> None:
    events: list[dict[str, Any]] = []
    world.handle = lambda event: events.append(event) or {}  # type: ignore[func-returns-value]
    queue = make_queue(invoke={"function": "handler"})

    traced(queue)
    world.settle()

    (record,) = events[0]["Records"]
    assert {
        name: held["stringValue"] for name, held in record["messageAttributes"].items()
    } == HEADERS


@pytest.mark.parametrize("size", [10, 300_000])
def test_the_trace_of_a_message_names_its_trace_id(topic: TestTopic, size: int) -> None:
    topic.client.patch(topic.path, {"max_message_bytes": 1_000_000})
    topic.subscribe("group")
    message = {"body": "x" * size, "attributes": {"traceparent": PARENT}}
    (sent,) = topic.try_publish([message]).json["messages"]
    (plain,) = topic.publish("y")

    shown = topic.client.get(f"{topic.path}/messages/{sent['id']}").json
    other = topic.client.get(f"{topic.path}/messages/{plain['id']}").json

    assert shown["trace_id"] == TRACE
    assert "trace_id" not in other


def test_a_short_message_with_it_costs_no_unit_more(world: World, queue: TestQueue) -> None:
    message = {"body": "x" * 100}
    queue.send("first")

    plain = world.units(lambda: queue.try_send([message]))
    with_it = world.units(lambda: traced(queue, message, headers={"traceparent": PARENT}))

    assert with_it == plain
