"""Creating, changing, showing, listing and deleting topics and subscriptions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.crashes import before_transactions
from tests.service.topics import URL, TestTopic, log_bodies

from cirrusmq_local.testing import Client, World

GOOD_NAMES = ["abc", "Z" * 64, "a-b_9", "A1b"]
TOPIC_DEFAULTS: dict[str, Any] = {
    "filter": "tags",
    "max_message_bytes": 65_536,
    "partitions": 8,
    "description": None,
    "labels": {},
}
PULL_DEFAULTS: dict[str, Any] = {
    "protocol": "pull",
    "filter": None,
    "retry": None,
    "content_format": "json",
    "dead_letter_queue": None,
    "labels": {},
    "mode": "clustering",
    "ordered": False,
    "start": "latest",
    "invoke": None,
    "paused": False,
}


class TestTopics:
    def test_a_topic_put_without_a_body_has_the_defaults(self, alice: Client, now: Any) -> None:
        reply = alice.put("/topics/news")

        assert reply.status == 201
        assert {name: reply.json[name] for name in TOPIC_DEFAULTS} == TOPIC_DEFAULTS
        assert (reply.json["name"], reply.json["created_at"]) == ("news", now())
        assert reply.json["id"]

    def test_it_is_shown_with_counts_and_region(self, alice: Client) -> None:
        created = alice.put("/topics/news", {"description": "d"}).json
        shown = alice.get("/topics/news").json

        assert shown.pop("counts") == {"active": 0}
        assert shown.pop("region")
        assert shown == created
        assert shown["message_retention_seconds"] == 86_400

    @pytest.mark.parametrize("path", ["/topics/news", "/topics/news/subscriptions/all"])
    def test_topics_and_subscriptions_have_labels_as_queues_have(
        self, alice: Client, path: str
    ) -> None:
        alice.put("/topics/news")
        given = {"protocol": "pull"} if "subscriptions" in path else {}
        labels = {f"key{number}": "x" * 70 for number in range(50)}

        assert alice.put(path, given).json["labels"] == {}
        assert alice.patch(path, {"labels": labels}).status == 200
        # As a whole, and nothing else of it.
        assert alice.patch(path, {"labels": {"team": "one"}}).json["labels"] == {"team": "one"}
        assert alice.get(path).json["labels"] == {"team": "one"}
        assert alice.put(path, {**given, "labels": {"team": "one"}}).status == 200

    @pytest.mark.parametrize("name", [*GOOD_NAMES, "Z" * 256, "9-_"])
    def test_a_name_is_3_to_256_characters(self, alice: Client, name: str) -> None:
        assert alice.put(f"/topics/{name}").status == 201
        assert alice.get(f"/topics/{name}").json["name"] == name

    @pytest.mark.parametrize(
        ("attribute", "value"),
        [
            *(("max_message_bytes", value) for value in (1_024, 4_194_304)),
            *(("partitions", value) for value in (1, 255)),
            ("description", "é" * 256),
        ],
    )
    def test_an_attribute_is_taken_at_its_edges(
        self, alice: Client, attribute: str, value: object
    ) -> None:
        reply = alice.put("/topics/news", {attribute: value})
        assert (reply.status, reply.json[attribute]) == (201, value)

    def test_partitions_are_fixed(self, alice: Client) -> None:
        alice.put("/topics/news", {"partitions": 255})
        reply = alice.patch("/topics/news", {"partitions": 8})
        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "partitions")
        assert alice.patch("/topics/news", {"partitions": 255}).status == 200
        assert alice.put("/topics/news", {"partitions": 8}).code == "AlreadyExists"

    def test_patch_changes_given_attributes_and_null_unsets_the_description(
        self, world: World, alice: Client, now: Any
    ) -> None:
        created = alice.put("/topics/news", {"description": "d", "filter": "routing_key"}).json
        world.clock.pass_seconds(5)
        reply = alice.patch("/topics/news", {"max_message_bytes": 1_024, "filter": "routing_key"})
        assert reply.status == 200
        assert reply.json == created | {"max_message_bytes": 1_024, "modified_at": now()}
        assert alice.patch("/topics/news", {"description": None}).json["description"] is None

    def test_topics_are_listed_in_full_pages_of_a_prefix(self, alice: Client) -> None:
        names = [f"n{number:02d}" for number in range(12)]
        for name in (*names, "other", "N-with-another-case"):
            alice.put(f"/topics/{name}")
        first = alice.get("/topics", "prefix=n&limit=7").json
        second = alice.get("/topics", f"prefix=n&limit=7&cursor={first['cursor']}").json
        assert len(first["topics"]) == 7
        assert [each["name"] for each in first["topics"] + second["topics"]] == names
        assert "cursor" not in second
        assert len(alice.get("/topics").json["topics"]) == 14

    def test_an_account_has_at_most_10000_topics(
        self, monkeypatch: pytest.MonkeyPatch, alice: Client, bob: Client
    ) -> None:
        from cirrusmq.base import limits

        assert limits.TOPICS_PER_ACCOUNT == 10_000
        monkeypatch.setattr(limits, "TOPICS_PER_ACCOUNT", 2)
        assert [alice.put(f"/topics/{name}").status for name in ("one", "two")] == [201, 201]
        reply = alice.put("/topics/three")
        assert (reply.status, reply.code) == (409, "LimitExceeded")
        assert alice.put("/topics/one").status == 200
        assert bob.put("/topics/one").status == 201
        alice.delete("/topics/one")
        assert alice.put("/topics/three").status == 201


class TestForeignTopics:
    def test_an_own_topic_may_be_addressed_with_its_account(self, topic: TestTopic) -> None:
        assert topic.client.get("/topics/alice:news").status == 200

    def test_accounts_have_topics_of_the_same_name(self, topic: TestTopic, bob: Client) -> None:
        mine, theirs = topic.subscribe("group"), TestTopic(bob).subscribe("group")
        topic.publish("for alice")
        assert (mine.bodies(), theirs.bodies()) == (["for alice"], [])


class TestSubscriptions:
    def test_a_pull_subscription_has_the_defaults(self, topic: TestTopic, now: Any) -> None:
        group = topic.subscribe("group")

        assert {name: held for name, held in group.shown.items() if name != "retry_in_force"} == {
            "name": "group",
            "topic": "news",
            "id": group.id,
            "created_at": now(),
            "modified_at": now(),
            **PULL_DEFAULTS,
        }
        assert group.show() == group.shown | {
            "state": "delivering",
            "counts": {"active": 0, "inactive": 0, "delayed": 0},
            "oldest_active_age_seconds": 0,
        }

    def test_an_http_subscription_shows_its_secret_in_the_201_alone(
        self, alice: Client, topic: TestTopic
    ) -> None:
        created = topic.subscribe("web", "http").shown
        assert created["secret"].startswith("whsec_")
        assert created["endpoint"] == URL
        web = f"{topic.path}/subscriptions/web"
        for reply in (
            topic.try_subscribe("web", protocol="http", endpoint=URL),
            alice.get(web),
            alice.patch(web, {"filter": None}),
        ):
            assert reply.status == 200
            assert "secret" not in reply.text

    @pytest.mark.parametrize("name", GOOD_NAMES)
    def test_a_name_is_3_to_64_characters(self, topic: TestTopic, name: str) -> None:
        assert topic.subscribe(name).show()["name"] == name

    def test_an_endpoint_has_up_to_500_characters(self, topic: TestTopic) -> None:
        url = "https://example.com/" + "x" * 480
        assert topic.subscribe("web", "http", endpoint=url).show()["endpoint"] == url

    def test_http_needs_the_deployments_permission(self, world: World, topic: TestTopic) -> None:
        import msgspec

        strict = msgspec.structs.replace(world.core.settings, http_endpoints=False)
        world.core = msgspec.structs.replace(world.core, settings=strict)
        reply = topic.try_subscribe("web", protocol="http", endpoint="http://example.com/")
        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "endpoint")
        assert topic.try_subscribe("web", protocol="http", endpoint="https://e.com/").status == 201

    @pytest.mark.parametrize(
        ("protocol", "given", "policy", "waits", "retries"),
        [
            ("pull", {}, "unordered", [10, 30, 60], 16),
            ("pull", {"ordered": True}, "ordered", [1], None),
            ("http", {"endpoint": URL}, "exponential_decay", [1, 2, 4], 176),
            ("http", {"endpoint": URL, "ordered": True}, "http_ordered", [60], 288),
        ],
    )
    def test_the_policy_in_force_is_shown_with_its_waits(
        self,
        topic: TestTopic,
        protocol: str,
        given: dict[str, Any],
        policy: str,
        waits: list[int],
        retries: int | None,
    ) -> None:
        group = topic.subscribe("group", protocol, **given)
        shown = group.show()
        assert shown["retry"] is None
        held = shown["retry_in_force"]
        assert held["waits"][:3] == waits
        assert (held["policy"], held["jitter"], held["max_retries"]) == (policy, 0, retries)
        listed = topic.client.get(f"{topic.path}/subscriptions").json["subscriptions"]
        assert listed[0]["retry_in_force"] == held
        if protocol == "pull":
            changed = group.patch(retry={"policy": "custom", "waits": [7, 9], "jitter": 0.5})
            assert changed.json["retry_in_force"] == {
                "policy": "custom",
                "waits": [7, 9],
                "jitter": 0.5,
                "max_retries": 2,
            }

    def test_no_policy_is_shown_without_retries(self, topic: TestTopic) -> None:
        topic.client.put("/queues/inbox")
        for fields in (
            {"protocol": "queue", "endpoint": "inbox"},
            {"protocol": "pull", "mode": "broadcasting"},
        ):
            reply = topic.try_subscribe(f"to-{fields['protocol']}", **fields)
            assert reply.status == 201
            assert "retry_in_force" not in reply.json

    @pytest.mark.parametrize(
        ("protocol", "written_out"),
        [
            ("pull", {"retry": {"policy": "unordered", "max_retries": 16}}),
            ("pull", {"retry": {"policy": "unordered"}}),
            ("pull", {"filter": {"tags": []}, "dead_letter_queue": None, "mode": "clustering"}),
            ("http", {"retry": {"policy": "exponential_decay"}, "endpoint": URL}),
            ("http", {"filter": {"tag_expression": "*"}, "endpoint": URL}),
        ],
    )
    def test_absent_attributes_count_as_defaults(
        self, topic: TestTopic, protocol: str, written_out: dict[str, Any]
    ) -> None:
        topic.subscribe("group", protocol)
        reply = topic.try_subscribe("group", protocol=protocol, **written_out)
        assert reply.status == 200, reply.text

    def test_patch_changes_filter_and_retry_for_all_members(
        self, topic: TestTopic, world: World, now: Any
    ) -> None:
        group = topic.subscribe("group", filter={"tags": ["a"]})
        world.clock.pass_seconds(1)
        retry = {"policy": "custom", "waits": [1.5]}
        reply = group.patch(filter={"tags": ["b"]}, retry=retry)

        assert reply.status == 200
        changed = {"filter": {"tags": ["b"]}, "retry": retry, "modified_at": now()}
        in_force = {"policy": "custom", "waits": [1.5], "jitter": 0, "max_retries": 1}
        assert reply.json == group.shown | changed | {"retry_in_force": in_force}
        assert [topic.matched(tags=[tag]) for tag in "ab"] == [0, 1]
        group.give_back(*group.receive())
        world.clock.pass_seconds(1.4)
        assert group.receive() == []
        world.clock.pass_seconds(0.2)
        assert len(group.receive()) == 1

    def test_null_unsets_and_a_fixed_attribute_may_be_given_as_it_is(
        self, topic: TestTopic, make_queue: MakeQueue, alice: Client
    ) -> None:
        make_queue("dead")
        given: dict[str, Any] = {
            "filter": {"tags": ["a"]},
            "retry": {"policy": "backoff"},
            "dead_letter_queue": "dead",
        }
        group = topic.subscribe("group", **given)
        assert alice.delete("/queues/dead").code == "InUse"
        for name in given:
            assert group.patch(**{name: None}).json[name] is None
        assert alice.delete("/queues/dead").status == 204
        assert group.patch(protocol="pull", ordered=False).status == 200

    def test_an_endpoint_cannot_be_deleted(self, alice: Client, topic: TestTopic) -> None:
        alice.put("/queues/inbox")
        topic.subscribe("box", "queue", endpoint="inbox")
        reply = alice.delete("/queues/inbox")
        assert (reply.status, reply.code) == (409, "InUse")
        assert alice.patch("/queues/inbox", {"message_retention_seconds": 60}).status == 200
        alice.delete(f"{topic.path}/subscriptions/box")
        assert alice.delete("/queues/inbox").status == 204

    def test_an_endpoint_may_have_a_dead_letter_queue(
        self, topic: TestTopic, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        by_count = {"queue": "dead", "max_receives": 1}
        before = make_queue("before", dead_letter=by_count)
        later = make_queue("later")
        topic.subscribe("one", "queue", endpoint="before")
        topic.subscribe("two", "queue", endpoint="later")

        assert later.patch(dead_letter=by_count).json["dead_letter"] == by_count
        for inbox in (before, later):
            assert inbox.patch(description="all news").status == 200
            assert inbox.run("purge")["state"] == "succeeded"
            inbox.add_receiver("copy")
            assert inbox.client.delete(inbox.path).code == "InUse"
        assert dead.client.delete(dead.path).code == "InUse"

    def test_an_endpoint_is_no_obstacle_to_being_a_dead_letter_queue(
        self, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        inbox = make_queue("inbox")
        make_queue("deeper")
        make_queue("orders", dead_letter={"queue": "inbox", "max_receives": 1})
        topic.subscribe("box", "queue", endpoint="inbox")
        nested = {"queue": "deeper", "max_receives": 1}
        assert inbox.patch(dead_letter=nested).json["parameter"] == "dead_letter"

        topic.client.delete("/queues/orders")

        assert inbox.patch(dead_letter=nested).status == 200

    def test_a_dead_letter_queue_nested_meanwhile_is_refused(
        self, world: World, topic: TestTopic, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dead = make_queue("dead")
        make_queue("deeper")
        nested = {"queue": "deeper", "max_receives": 1}
        before_transactions(world, monkeypatch, lambda: dead.patch(dead_letter=nested))
        reply = topic.try_subscribe("group", protocol="pull", dead_letter_queue="dead")

        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "dead_letter_queue")

    def test_a_topic_has_at_most_100_subscriptions(self, topic: TestTopic) -> None:
        for number in range(100):
            topic.subscribe(f"s{number:03d}")
        reply = topic.try_subscribe("one-more", protocol="pull")
        assert (reply.status, reply.code) == (409, "LimitExceeded")
        listed = topic.client.get(f"{topic.path}/subscriptions").json["subscriptions"]
        assert [each["name"] for each in listed] == [f"s{number:03d}" for number in range(100)]
        assert topic.matched() == 100
        topic.client.delete(f"{topic.path}/subscriptions/s007")
        assert topic.try_subscribe("one-more", protocol="pull").status == 201


class TestDeleting:
    def test_a_subscription_made_anew_gets_only_later_publishes(self, topic: TestTopic) -> None:
        topic.subscribe("group")
        topic.publish("old")
        assert topic.client.delete(f"{topic.path}/subscriptions/group").status == 204
        topic.publish("between")
        group = topic.subscribe("group")
        topic.publish("new")

        assert group.bodies() == ["new"]

    def test_a_deleted_topic_takes_its_subscriptions_along(
        self, world: World, alice: Client, topic: TestTopic
    ) -> None:
        alice.put("/queues/inbox")
        topic.subscribe("group")
        topic.subscribe("box", "queue", endpoint="inbox")
        topic.subscribe("web", "http")
        topic.subscribe("eyes", mode="broadcasting")
        topic.try_publish([{"body": "pending"}])
        assert alice.delete("/topics/news").status == 204
        assert alice.get("/topics/news").code == "TopicNotFound"
        assert alice.get("/topics/news/subscriptions/group").code == "TopicNotFound"
        world.settle()
        again = TestTopic(alice)
        assert alice.get(f"{again.path}/subscriptions").json == {"subscriptions": []}
        group = again.subscribe("group")
        eyes = again.subscribe("eyes", mode="broadcasting")
        world.clock.pass_seconds(5)
        world.settle()

        assert again.active() == 0
        assert (group.bodies(), log_bodies(eyes.log()), world.posts) == ([], [], [])
        assert TestQueue(alice, "inbox").receive() == []
        assert alice.delete("/queues/inbox").status == 204
        again.publish("new")
        assert group.bodies() == ["new"]

    def test_a_subscription_made_while_its_topic_is_deleted_goes_with_it(
        self, world: World, alice: Client, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        alice.put("/queues/inbox")
        made = []

        def subscribe() -> None:
            made.append(topic.try_subscribe("late", protocol="queue", endpoint="inbox"))
            made.append(topic.try_subscribe("web", protocol="http", endpoint=URL))

        before_transactions(world, monkeypatch, subscribe)
        assert alice.delete(topic.path).status == 204

        assert [reply.status for reply in made] == [201, 201]
        assert alice.get(topic.path).code == "TopicNotFound"
        assert alice.delete("/queues/inbox").status == 204
        left = [item["pk"]["S"] for item in world.items("directory")]
        assert [pk for pk in left if pk.startswith("T#")] == []
