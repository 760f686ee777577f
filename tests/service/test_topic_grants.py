"""Grants on topics: what another account may do, and what it is told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.topics import URL, TestSubscription, TestTopic

from cirrusmq_local.testing import Client, World

NEWS = "/topics/alice:news"


def grant(topic: TestTopic, permission: str, account: str = "bob") -> None:
    reply = topic.client.put(f"{topic.path}/grants/{account}", {"permission": permission})
    assert (reply.status, reply.json) == (200, {"account": account, "permission": permission})


def test_a_publisher_reaches_the_owners_subscriptions(
    world: World, topic: TestTopic, group: TestSubscription, bob: Client
) -> None:
    grant(topic, "publish")

    reply = bob.post(f"{NEWS}/messages", {"messages": [{"body": "from bob"}]})
    world.settle()

    assert (reply.status, reply.json["messages"][0]["matched"]) == (201, 1)
    assert [message["body"] for message in group.receive()] == ["from bob"]


def test_a_subscriber_consumes_its_subscription(topic: TestTopic, bob: Client) -> None:
    topic.subscribe("owners")
    grant(topic, "subscribe")
    path = f"{NEWS}/subscriptions/bobs"
    made = bob.put(path, {"protocol": "pull", "filter": {"tags": ["a"]}})
    assert (made.status, made.json["made_by"]) == (201, "bob")
    assert bob.put(path, {"protocol": "pull", "filter": {"tags": ["a"]}}).status == 200
    topic.publish("one", tags=["a"])
    topic.publish("two", tags=["b"])

    received = bob.post(f"{path}/messages/receive", {"max": 16}).json["messages"]
    assert [message["body"] for message in received] == ["one"]
    receipts = {"receipts": [received[0]["receipt"]]}
    assert bob.post(f"{path}/messages/delete", receipts).json["failed"] == []
    assert bob.get(path).json["counts"] == {"active": 0, "inactive": 0, "delayed": 0}
    assert bob.patch(path, {"filter": None}).status == 200

    # The owner sees it, and has the last word.
    assert topic.client.get(f"{topic.path}/subscriptions/bobs").json["made_by"] == "bob"
    assert "made_by" not in topic.client.get(f"{topic.path}/subscriptions/owners").json
    assert topic.client.delete(f"{topic.path}/subscriptions/bobs").status == 204
    assert bob.get(path).code == "Forbidden"
    assert bob.delete(f"{NEWS}/subscriptions/bobs").code == "Forbidden"


def test_a_subscribers_url_is_posted_to_and_signed(
    world: World, topic: TestTopic, bob: Client
) -> None:
    grant(topic, "subscribe")
    path = f"{NEWS}/subscriptions/web"
    made = bob.put(path, {"protocol": "http", "endpoint": URL})
    assert made.json["secret"].startswith("whsec_")
    topic.publish("x")
    assert len(world.posts) == 1
    assert bob.post(f"{path}/secret").json["secret"] == made.json["secret"]


@pytest.mark.parametrize("permission", ["subscribe", "admin", "full"])
@pytest.mark.parametrize(
    "body",
    [
        {"protocol": "queue", "endpoint": "inbox"},
        {"protocol": "queue", "endpoint": "nothing"},
        {"protocol": "pull", "dead_letter_queue": "inbox"},
    ],
)
def test_nobody_else_names_the_owners_queues(
    world: World, topic: TestTopic, bob: Client, permission: str, body: dict[str, Any]
) -> None:
    topic.client.put("/queues/inbox")
    bob.put("/queues/inbox")
    grant(topic, permission)
    before = world.items("directory")
    reply = bob.put(f"{NEWS}/subscriptions/bobs", body)
    assert (reply.status, reply.code) == (403, "Forbidden")
    assert "only its owner may name queues" in reply.json["detail"]
    assert world.items("directory") == before
    if permission != "subscribe" and body["protocol"] == "pull":
        topic.subscribe("owners")
        changed = bob.patch(f"{NEWS}/subscriptions/owners", {"dead_letter_queue": "inbox"})
        assert changed.code == "Forbidden"


def test_an_admin_changes_the_topic_and_its_subscriptions(
    topic: TestTopic, bob: Client, world: World
) -> None:
    topic.subscribe("owners")
    grant(topic, "admin")
    assert bob.patch(NEWS, {"description": "bob was here"}).status == 200
    assert bob.put(NEWS, {"description": "bob was here"}).status == 200
    assert bob.patch(f"{NEWS}/subscriptions/owners", {"filter": {"tags": ["a"]}}).status == 200
    assert [each["name"] for each in bob.get(f"{NEWS}/subscriptions").json["subscriptions"]] == [
        "owners"
    ]
    assert bob.put(f"{NEWS}/grants/carol", {"permission": "info"}).status == 200
    assert world.client("carol").get(NEWS).status == 200
    listed = bob.get(f"{NEWS}/grants").json["grants"]
    assert [each["account"] for each in listed] == ["bob", "carol"]

    assert bob.delete(f"{NEWS}/subscriptions/owners").status == 204


def test_a_trace_shows_a_body_only_with_the_right_to_read(topic: TestTopic, bob: Client) -> None:
    topic.subscribe("group")
    (sent,) = topic.publish("for subscribers")
    path = f"{NEWS}/messages/{sent['id']}"
    grant(topic, "info")
    assert bob.get(path).status == 200
    assert bob.get(path, "body=true").code == "Forbidden"
    grant(topic, "full")
    assert "for subscribers" in bob.get(path, "body=true").text


def test_grants_on_queues_and_topics_are_listed_together(topic: TestTopic, bob: Client) -> None:
    topic.client.put("/queues/news")
    topic.client.put("/queues/news/grants/bob", {"permission": "send"})
    grant(topic, "publish")

    assert bob.get("/grants").json["grants"] == [
        {"queue": "alice:news", "account": "alice", "permission": "send"},
        {"topic": "alice:news", "account": "alice", "permission": "publish"},
    ]
    assert bob.get("/queues/alice:news").code == "Forbidden"
    assert topic.client.get("/queues/news/grants").json["grants"] == [
        {"account": "bob", "permission": "send"}
    ]
    first = bob.get("/grants", "limit=1").json
    assert len(first["grants"]) == 1
    assert len(bob.get("/grants", f"cursor={first['cursor']}").json["grants"]) == 1


def test_a_scoped_key_reaches_the_foreign_topic_in_its_scope(
    world: World, topic: TestTopic, bob: Client
) -> None:
    grant(topic, "publish_subscribe")
    scope = {"send": {"topics": ["alice:news"]}}
    key = bob.post("/keys", {"scope": scope}).json
    client = Client(world, f"Bearer {key['access_key_id']}:{key['secret']}")
    assert client.post(f"{NEWS}/messages", {"messages": [{"body": "x"}]}).status == 201
    assert client.put(f"{NEWS}/subscriptions/bobs", {"protocol": "pull"}).code == "Forbidden"
