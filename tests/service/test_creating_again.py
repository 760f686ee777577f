"""A PUT of what exists: the attributes that it gives are compared, and with `exact` all."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.testing.world import Client, World

QUEUE, TOPIC = "/queues/orders", "/topics/news"
RECEIVER, GROUP = f"{QUEUE}/receivers/copy", f"{TOPIC}/subscriptions/group"
URL = f"{TOPIC}/subscriptions/url"
HOOK = {"protocol": "http", "endpoint": "https://example.com/hook"}
PULL = {"protocol": "pull"}
SLOW = {"policy": "unordered", "max_retries": 3}


@pytest.fixture
def alice(world: World) -> Client:
    client = world.client("alice")
    for path in (QUEUE, TOPIC, "/queues/dead"):
        assert client.put(path).status == 201
    return client


@pytest.mark.parametrize(
    ("path", "first", "changed"),
    [
        (QUEUE, {}, {"delay_seconds": 5}),
        (QUEUE, {}, {"dead_letter": {"queue": "dead", "max_receives": 5}, "labels": {"a": "b"}}),
        (TOPIC, {}, {"description": "what happens", "max_message_bytes": 2_048}),
        (GROUP, PULL, {"filter": {"tags": ["a"]}, "retry": SLOW}),
        (GROUP, PULL, {"dead_letter_queue": "dead"}),
        (URL, HOOK, {"max_in_flight": 3, "rate": 10, "content_format": "simplified"}),
    ],
)
def test_an_attribute_not_given_is_not_compared(
    alice: Client, path: str, first: dict[str, Any], changed: dict[str, Any]
) -> None:
    alice.put(path, first)
    after = alice.patch(path, changed)
    assert after.status == 200

    again = alice.put(path, first)

    assert (again.status, again.json) == (200, after.json)


@pytest.mark.parametrize(
    ("path", "first", "others"),
    [
        ("/topics/other", {}, [{"max_message_bytes": 2_048}, {"description": "d"}]),
        (
            "/queues/other",
            {"delay_seconds": 5, "fair": True},
            [{"delay_seconds": 0}, {"fair": False}],
        ),
        ("/queues/other", {"partitions": 8}, [{"partitions": 4}]),
        ("/queues/other", {"labels": {"a": "b"}}, [{"labels": {}}, {"labels": {"a": "c"}}]),
        (
            "/queues/other",
            {"dead_letter": {"queue": "dead", "max_receives": 5}},
            [{"dead_letter": None}, {"dead_letter": {"queue": "dead", "max_receives": 6}}],
        ),
        ("/topics/other", {"filter": "routing_key"}, [{"filter": "tags"}]),
        (RECEIVER, {"start": "earliest"}, [{"start": "latest"}]),
        (RECEIVER, {"filter": {"tags": ["a"]}}, [{"filter": None}, {"filter": {"tags": ["b"]}}]),
        (GROUP, PULL | {"ordered": True}, [PULL | {"ordered": False}, HOOK]),
        (
            GROUP,
            PULL | {"filter": {"tags": ["a"]}, "retry": SLOW},
            [
                PULL | {"filter": None},
                PULL | {"filter": {"tags": ["b"]}},
                PULL | {"retry": {"policy": "unordered"}},
                PULL | {"mode": "broadcasting"},
            ],
        ),
        (GROUP, PULL | {"start": "earliest"}, [PULL | {"start": "latest"}]),
        (URL, HOOK | {"rate": 10}, [HOOK | {"rate": None}, HOOK | {"endpoint": "https://a.b/c"}]),
    ],
)
def test_a_given_attribute_is_compared_also_with_a_default(
    world: World, alice: Client, path: str, first: dict[str, Any], others: list[dict[str, Any]]
) -> None:
    made = alice.put(path, first)
    assert made.status == 201
    world.clock.pass_seconds(5)

    for other in others:
        reply = alice.put(path, other)
        assert (reply.status, reply.code) == (409, "AlreadyExists"), other
    again = alice.put(path, first)
    assert (again.status, again.json | {"secret": ""}) == (200, made.json | {"secret": ""})


@pytest.mark.parametrize(
    ("path", "whole", "part"),
    [
        ("/queues/other", {"delay_seconds": 5, "labels": {"a": "b"}}, {"delay_seconds": 5}),
        ("/topics/other", {"description": "d", "filter": "routing_key"}, {"filter": "routing_key"}),
        (RECEIVER, {"start": "earliest", "filter": {"tags": ["a"]}}, {"start": "earliest"}),
        (GROUP, PULL | {"filter": {"tags": ["a"]}}, PULL),
        (URL, HOOK | {"rate": 10}, HOOK),
    ],
)
def test_with_exact_an_attribute_not_given_must_be_at_its_default(
    alice: Client, path: str, whole: dict[str, Any], part: dict[str, Any]
) -> None:
    assert alice.put(path, whole, exact="true").status == 201

    assert alice.put(path, part, exact="false").status == 200
    assert alice.put(path, whole, exact="true").status == 200
    reply = alice.put(path, part, exact="true")
    assert (reply.status, reply.code) == (409, "AlreadyExists")


@pytest.mark.parametrize("path", [QUEUE, TOPIC, RECEIVER, GROUP])
def test_a_name_in_another_case_exists_already(alice: Client, path: str) -> None:
    given = PULL if path == GROUP else {}
    alice.put(path, given)
    parent, _, name = path.rpartition("/")
    other = f"{parent}/{name.capitalize()}"

    reply = alice.put(other, given)

    assert (reply.status, reply.code) == (409, "AlreadyExists")
    assert alice.get(other).status == 404
    assert alice.get(path).json["name"] == name


@pytest.mark.parametrize("path", [QUEUE, TOPIC, RECEIVER, GROUP])
def test_exact_is_true_or_false(alice: Client, path: str) -> None:
    reply = alice.put(path, PULL if path == GROUP else {}, exact="yes")

    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "exact")


def test_impossible_attributes_are_refused_also_if_there_is_a_queue(alice: Client) -> None:
    alice.patch(QUEUE, {"message_retention_seconds": 1_000_000})

    reply = alice.put(QUEUE, {"delay_seconds": 600_000, "message_retention_seconds": 500_000})

    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "delay_seconds")


def test_a_dead_letter_queue_made_by_the_service_is_no_difference(
    world: World, alice: Client
) -> None:
    alice.put(GROUP, PULL)
    alice.post(f"{TOPIC}/messages", {"messages": [{"body": "a"}]})
    world.settle()
    received = alice.post(f"{GROUP}/messages/receive", {"wait_seconds": 0}).json["messages"]
    receipts = [message["receipt"] for message in received]
    assert alice.post(f"{GROUP}/messages/dead-letter", {"receipts": receipts}).status == 200
    world.settle()
    assert alice.get(GROUP).json["dead_letter_queue"]

    for body in (PULL, PULL | {"dead_letter_queue": None}):
        assert alice.put(GROUP, body).status == 200
        assert alice.put(GROUP, body, exact="true").status == 200
