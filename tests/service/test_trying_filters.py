"""A filter that is tried on messages before a subscription has it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.topics import TestTopic

from cirrusmq_local.testing import Client, Reply

REFUSED: list[Any] = [
    {"sql": "amount >"},
    {"sql": 5},
    {"tags": ["x" * 17]},
    {"tags": ["a"] * 11},
    {"tags": ["a"], "tag_expression": "a"},
    {"binding_keys": ["a"]},
    {"colour": "red"},
    {},
    "tags",
    5,
]


def try_filter(topic: TestTopic, filter: Any, *messages: dict[str, Any], **more: Any) -> Reply:
    body = {"messages": list(messages), "filter": filter, **more}
    return topic.client.post(f"{topic.path}/match", body)


def tried(topic: TestTopic, filter: Any, *messages: dict[str, Any], **more: Any) -> Any:
    reply = try_filter(topic, filter, *messages, **more)
    assert reply.status == 200, reply.text
    return reply.json["messages"]


def test_each_message_passes_or_is_told_why_not(topic: TestTopic) -> None:
    topic.subscribe("all")
    messages = [
        {"body": "1", "tags": ["paid"], "attributes": {"amount": "5"}},
        {"body": "2", "tags": ["paid"], "attributes": {"amount": "1"}},
        {"body": "3", "attributes": {"amount": "5"}},
    ]
    assert tried(topic, {"tags": ["paid"], "sql": "amount > 2"}, *messages) == [
        {"passes": True},
        {"passes": False, "why_not": "sql is FALSE"},
        {"passes": False, "why_not": "it has no tags"},
    ]
    assert tried(topic, None, *messages) == [{"passes": True}] * 3
    topic.client.world.settle()
    assert topic.log()["messages"] == []


def test_a_topic_of_routing_keys_takes_binding_keys(alice: Client) -> None:
    topic = TestTopic(alice, filter="routing_key")
    filter = {"binding_keys": ["orders.*.paid"]}
    paid, none = tried(topic, filter, {"body": "x", "routing_key": "orders.cn.paid"}, {"body": "x"})
    assert paid == {"passes": True}
    assert none == {"passes": False, "why_not": "it has no routing key"}


@pytest.mark.parametrize("filter", REFUSED)
def test_a_filter_is_refused_as_a_subscription_with_it_is(topic: TestTopic, filter: Any) -> None:
    subscribed = topic.try_subscribe("new", protocol="pull", filter=filter)
    tried = try_filter(topic, filter, {"body": "x"})
    for reply in (subscribed, tried):
        assert reply.status == 400
        del reply.json["request_id"]
    assert tried.json == subscribed.json


def test_without_atomic_a_refused_message_fails_alone(topic: TestTopic) -> None:
    large = {"body": "x" * 65_537}
    passed, refused = tried(topic, None, {"body": "x"}, large, atomic=False)
    assert passed == {"passes": True}
    assert refused["error"]["code"] == "MessageTooLarge"


def test_a_trial_reads_no_subscription(topic: TestTopic) -> None:
    for number in range(20):
        topic.subscribe(f"group-{number}")
    world, messages = topic.client.world, {"messages": [{"body": "x"}]}

    def units(body: dict[str, Any]) -> tuple[float, float]:
        world.clock.pass_seconds(10)  # no cache knows anything
        return world.units(lambda: topic.client.post(f"{topic.path}/match", body))

    written, read = units(messages | {"filter": {"tags": ["a"]}})
    assert written == 0
    assert read < units(messages)[1]
