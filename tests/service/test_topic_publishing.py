"""Publishing over HTTP: shapes and limits, repetitions, deduplication, and the topic's log."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, to_ms
from tests.service.topic_crashes import Crash
from tests.service.topics import TestSubscription, TestTopic, log_bodies

from cirrusmq.base import ulid
from cirrusmq_local.testing import Client, World

DAY = 86_400


def ago(world: World, seconds: float, entropy: bytes = b"0123456789") -> str:
    """An `attempt` that began so long ago."""
    return ulid.encode(world.clock.now_ms() - round(seconds * 1000), entropy)


class TestShape:
    def test_an_answer_has_ids_matched_counts_and_the_time_in_the_order_sent(
        self, topic: TestTopic, now: Any
    ) -> None:
        for name, tags in (("all", []), ("tag-a", ["a"]), ("tag-b", ["b"])):
            topic.subscribe(name, filter={"tags": tags})
        reply = topic.try_publish(
            [{"body": "1", "tags": ["a", "b"]}, {"body": "2"}, {"body": "3", "tags": ["b"]}]
        )

        assert reply.status == 201
        entries = reply.json["messages"]
        assert [entry["matched"] for entry in entries] == [3, 1, 2]
        assert {entry["sent_at"] for entry in entries} == {now()}
        assert len({entry["id"] for entry in entries}) == 3
        assert all(entry.keys() == {"id", "matched", "sent_at"} for entry in entries)

    def test_bodies_tags_and_attributes_arrive_as_they_were_sent(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        binary = base64.b64encode(bytes(range(256))).decode()
        messages: list[dict[str, Any]] = [
            {"body": "é\u0000x", "tags": ["T", "t"], "attributes": {"a": "", "b$": {"base64": ""}}},
            {"body_base64": binary, "group": "g"},
        ]
        sent = topic.try_publish(messages).json["messages"]
        topic.client.world.settle()
        first, second = sorted(group.receive_all(), key=lambda message: message["id"])

        assert [first["id"], second["id"]] == [each["id"] for each in sent]
        assert (first["body"], first["tags"]) == ("é\u0000x", ["T", "t"])
        assert first["attributes"] == {"a": "", "b$": {"base64": ""}}
        assert (second["body_base64"], second["group"]) == (binary, "g")
        assert (second["tags"], second["attributes"]) == ([], {})
        assert first["sent_at"] == sent[0]["sent_at"]

    def test_a_batch_has_4_mib_of_bodies_attributes_and_tags(
        self, world: World, alice: Client
    ) -> None:
        topic = TestTopic(alice, max_message_bytes=4_194_304)
        group = topic.subscribe("group")
        messages: list[dict[str, Any]] = [{"body": "x" * 1_048_576}] * 3 + [
            {"body": "x" * 1_048_040, "tags": ["t" * 16], "attributes": {"a" * 20: "v" * 500}}
        ]
        assert topic.try_publish(messages).status == 201
        world.settle()
        assert len(group.receive_all()) == 4
        messages[3]["attributes"] = {"a" * 20: "v" * 501}
        reply = topic.try_publish(messages)
        assert (reply.status, reply.code) == (413, "BatchTooLarge")

    @pytest.mark.parametrize("limit", [1_024, 65_536, 4_194_302])
    def test_a_body_has_at_most_the_topics_bytes(self, alice: Client, limit: int) -> None:
        topic = TestTopic(alice, max_message_bytes=limit)
        topic.subscribe("group")
        assert topic.try_publish([{"body": "é" * (limit // 2)}]).status == 201
        reply = topic.try_publish([{"body": "x"}, {"body": "x" * (limit + 1)}])

        assert (reply.status, reply.code) == (413, "MessageTooLarge")
        assert reply.json["parameter"] == "messages[1].body"
        topic.client.world.settle()
        assert topic.active() == 1

    def test_a_larger_limit_holds_at_once(self, alice: Client) -> None:
        topic = TestTopic(alice, max_message_bytes=1_024)
        assert topic.try_publish([{"body": "x" * 1_025}]).status == 413
        alice.patch(topic.path, {"max_message_bytes": 1_025})
        assert topic.try_publish([{"body": "x" * 1_025}]).status == 201

    def test_not_atomic_each_message_has_its_own_fate(self, alice: Client) -> None:
        topic = TestTopic(alice, max_message_bytes=1_024)
        group = topic.subscribe("group")
        messages = [{"body": "1"}, {"body": "x" * 1_025}, {"body": "3"}]
        reply = topic.try_publish(messages, atomic=False)
        topic.client.world.settle()

        assert reply.status == 200
        entries = reply.json["messages"]
        assert [entry.get("error", {}).get("code") for entry in entries] == [
            None,
            "MessageTooLarge",
            None,
        ]
        assert group.bodies() == ["1", "3"]
        assert topic.trace(entries[2]["id"])["group"]["state"] == "pending"


class TestRepetition:
    def test_the_same_attempt_stores_once_and_answers_the_same(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        attempt = ago(world, 0)
        messages = [{"body": "1"}, {"body": "2", "deduplication_id": "d"}]
        first = topic.try_publish(messages, attempt=attempt)
        for seconds in (0.5, 10, 100):
            world.clock.pass_seconds(seconds)
            assert topic.try_publish(messages, attempt=attempt).json == first.json
        world.settle()

        assert group.bodies() == ["1", "2"]

    @pytest.mark.parametrize("age", [1.001, 60, 120])
    def test_a_stale_attempt_is_stored_once_and_found_by_its_repetitions(
        self, world: World, topic: TestTopic, group: TestSubscription, age: float
    ) -> None:
        attempt = ago(world, age)
        first = topic.try_publish([{"body": "1"}], attempt=attempt)
        assert first.status == 201
        if age < 100:
            world.clock.pass_seconds(50)
        assert topic.try_publish([{"body": "1"}], attempt=attempt).json == first.json
        world.settle()

        assert group.bodies() == ["1"]

    def test_a_repetition_answers_the_same_though_somebody_subscribed_meanwhile(
        self, world: World, topic: TestTopic
    ) -> None:
        tagged = topic.subscribe("tagged", filter={"tags": ["x"]})
        attempt = ago(world, 0)
        messages: list[dict[str, Any]] = [{"body": "plain"}, {"body": "tagged", "tags": ["x"]}]
        first = topic.try_publish(messages, attempt=attempt)
        everything = topic.subscribe("all")

        second = topic.try_publish(messages, attempt=attempt)
        world.settle()

        assert second.json == first.json
        entries = first.json["messages"]
        assert [entry["matched"] for entry in entries] == [0, 1]
        assert everything.receive_all() == []
        (received,) = tagged.receive_all()
        assert (received["id"], received["body"]) == (entries[1]["id"], "tagged")

    def test_a_messages_id_says_its_place_in_the_call_wherever_it_is_read(
        self, world: World, make_queue: MakeQueue, topic: TestTopic
    ) -> None:
        plain, logged = make_queue("plain"), make_queue("logged")
        logged.add_receiver("r")
        group = topic.subscribe("group", filter={"tags": ["x"]})
        for name in ("plain", "logged"):
            topic.subscribe(name, "queue", endpoint=name, filter={"tags": ["x", "y"]})
        bodies = [f"{number}" + "0123456789abcdef" * 80 * number for number in range(4)]
        tags = [[], ["x"], ["y"], ["x"]]
        messages = [{"body": b, "tags": t} for b, t in zip(bodies, tags, strict=True)]
        entries = topic.try_publish(messages).json["messages"]
        world.settle()
        world.clock.pass_seconds(3)

        sent = {entry["id"]: body for entry, body in zip(entries, bodies, strict=True)}
        matching = dict(list(sent.items())[1:])
        for reader in (plain, logged):
            assert {each["id"]: each["body"] for each in reader.receive_all()} == matching
        of_r = {each["id"]: each["body"] for each in logged.receive_all(receiver="r")}
        assert of_r == matching
        assert {each["id"]: each["body"] for each in topic.log()["messages"]} == matching
        of_group = {each["id"]: each["body"] for each in group.receive_all()}
        assert of_group == {i: body for i, body in matching.items() if body[0] in "13"}
        assert topic.trace(entries[2]["id"]).keys() == {"plain", "logged"}
        assert topic.trace(entries[3]["id"])["group"] == {"state": "pending", "attempts": 1}

    def test_another_request_with_the_same_attempt_is_another_send(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        attempt = ago(world, 0)
        topic.try_publish([{"body": "1"}], attempt=attempt)
        topic.try_publish([{"body": "2"}], attempt=attempt)
        world.settle()

        assert group.bodies() == ["1", "2"]

    def test_a_deduplication_id_counts_5_minutes_in_its_topic(
        self, world: World, alice: Client, topic: TestTopic, group: TestSubscription
    ) -> None:
        (first,) = topic.publish("first", deduplication_id="d")
        world.clock.pass_seconds(299)
        (second,) = topic.publish("second", deduplication_id="d")
        assert second["id"] == first["id"]
        other = TestTopic(alice, "other")
        other.subscribe("group")
        (elsewhere,) = other.publish("other", deduplication_id="d")
        assert elsewhere["id"] != first["id"]
        assert group.bodies() == ["first"]
        world.clock.pass_seconds(2)
        (third,) = topic.publish("third", deduplication_id="d")

        assert third["id"] != first["id"]

    def test_inside_one_batch_the_second_answers_the_firsts_id(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        entries = topic.try_publish(
            [
                {"body": "a", "deduplication_id": "d"},
                {"body": "b"},
                {"body": "c", "deduplication_id": "d"},
            ]
        ).json["messages"]
        topic.client.world.settle()

        assert entries[2]["id"] == entries[0]["id"] != entries[1]["id"]
        assert group.bodies() == ["a", "b"]

    def test_a_duplicate_among_new_ones_is_left_out(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        (first,) = topic.publish("old", deduplication_id="d")
        entries = topic.try_publish(
            [{"body": "new", "deduplication_id": "e"}, {"body": "x", "deduplication_id": "d"}]
        ).json["messages"]
        topic.client.world.settle()

        assert entries[1]["id"] == first["id"]
        assert group.bodies() == ["new", "old"]
        assert topic.trace(entries[0]["id"])["group"]["state"] == "pending"


@pytest.mark.usefixtures("group")
class TestLog:
    """`GET /topics/{topic}/messages`: in order, each from its own position."""

    def test_messages_come_in_order_and_pages_go_on_at_the_cursor(
        self, world: World, topic: TestTopic
    ) -> None:
        bodies = []
        for number in range(12):
            batch = [f"{number}.{place}" for place in range(number % 5 + 1)]
            topic.publish(*batch)
            bodies += batch
        world.clock.pass_seconds(3)
        read: list[str] = []
        after: dict[str, str] = {}
        for _ in range(100):
            page = topic.log(limit=7, **after)
            read += log_bodies(page)
            after = {"after": page["cursor"]}
            if not page["messages"]:
                break

        assert read == bodies
        assert log_bodies(topic.log()) == bodies[:16]

    def test_an_entry_shows_the_message_and_when_it_was_published(
        self, world: World, topic: TestTopic
    ) -> None:
        (sent,) = topic.publish("x", tags=["t"], attributes={"a": "1"}, group="g")
        world.clock.pass_seconds(3)

        assert topic.log()["messages"] == [
            {
                "id": sent["id"],
                "body": "x",
                "tags": ["t"],
                "attributes": {"a": "1"},
                "group": "g",
                "sent_at": sent["sent_at"],
                "sender": "alice",
            }
        ]

    def test_a_cursor_is_there_at_the_end_too_and_finds_later_messages(
        self, world: World, topic: TestTopic
    ) -> None:
        cursor = topic.log()["cursor"]
        for number in range(20):
            topic.publish(str(number))
            world.clock.pass_seconds(number % 4)
            page = topic.log(after=cursor)
            cursor = page["cursor"]
            world.clock.pass_seconds(3)
            late = topic.log(after=cursor)
            cursor = late["cursor"]
            assert log_bodies(page) + log_bodies(late) == [str(number)]

    def test_a_publish_is_held_back_2_s_against_overtaking(
        self, world: World, topic: TestTopic
    ) -> None:
        topic.publish("x")
        world.clock.pass_seconds(1.999)
        assert topic.log()["messages"] == []
        world.clock.pass_seconds(0.002)
        assert log_bodies(topic.log()) == ["x"]

    def test_calls_take_real_time_however_fast_the_service_s_time_runs(
        self, world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(world.clock, "scale", 100.0)
        topic.publish("x")
        world.clock.pass_seconds(199)
        assert topic.log()["messages"] == []
        world.clock.pass_seconds(2)
        assert log_bodies(topic.log()) == ["x"]

    def test_after_may_be_a_time(self, world: World, topic: TestTopic) -> None:
        sent = []
        for number in range(5):
            sent += topic.publish(str(number))
            world.clock.pass_seconds(5)

        assert log_bodies(topic.log(after=sent[2]["sent_at"])) == ["3", "4"]
        assert log_bodies(topic.log(after="2020-01-01T00:00:00Z")) == list("01234")

    def test_a_time_counts_from_the_publishing_not_from_its_attempt(
        self, world: World, topic: TestTopic, now: Any
    ) -> None:
        early = ago(world, -2)
        topic.try_publish([{"body": "before"}], attempt=early)
        world.clock.pass_seconds(0.5)
        attempt = ago(world, 0)
        moment = now(0.2)
        world.clock.pass_seconds(0.9)
        topic.try_publish([{"body": "after"}], attempt=attempt)
        world.clock.pass_seconds(5)

        page = topic.log(after=moment, limit=1)
        assert log_bodies(page) == ["after"]
        assert log_bodies(topic.log(after=page["cursor"])) == []

    def test_a_time_to_come_waits_for_it(self, world: World, topic: TestTopic, now: Any) -> None:
        page = topic.log(after=now(60))
        topic.publish("too early")
        world.clock.pass_seconds(61)
        topic.publish("late enough")
        world.clock.pass_seconds(5)

        assert log_bodies(topic.log(after=page["cursor"])) == ["late enough"]

    @pytest.mark.parametrize("age", [0, 0.999, 1, 1.5, 30, 119])
    def test_the_cursor_never_skips_a_message_however_old_its_attempt(
        self, world: World, topic: TestTopic, age: float
    ) -> None:
        topic.publish("first")
        world.clock.pass_seconds(130)
        cursor = topic.log()["cursor"]
        attempt = ago(world, age)
        topic.try_publish([{"body": "x"}], attempt=attempt)
        world.clock.pass_seconds(5)

        assert log_bodies(topic.log(after=cursor)) == ["x"]

    def test_nor_one_after_its_first_try_died_unstored(
        self,
        monkeypatch: pytest.MonkeyPatch,
        world: World,
        topic: TestTopic,
        group: TestSubscription,
    ) -> None:
        attempt = ago(world, 10)
        put = world.core.store.put_if_absent

        def crash(table: str, item: Any) -> None:
            raise Crash

        monkeypatch.setattr(world.core.store, "put_if_absent", crash)
        with pytest.raises(Crash):
            topic.try_publish([{"body": "x"}], attempt=attempt)
        monkeypatch.setattr(world.core.store, "put_if_absent", put)
        world.clock.pass_seconds(60)
        cursor = topic.log()["cursor"]
        first = topic.try_publish([{"body": "x"}], attempt=attempt)
        assert topic.try_publish([{"body": "x"}], attempt=attempt).json == first.json
        world.clock.pass_seconds(20)
        assert topic.try_publish([{"body": "x"}], attempt=attempt).json == first.json
        world.settle()

        assert log_bodies(topic.log(after=cursor)) == ["x"]
        assert group.bodies() == ["x"]

    def test_a_record_stays_to_its_expiry_also_when_all_have_taken_it(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("x")
        group.delete(*group.receive())
        world.clock.pass_seconds(DAY - 0.001)
        assert log_bodies(topic.log()) == ["x"]
        world.clock.pass_seconds(0.001)
        assert topic.log()["messages"] == []

    def test_a_routing_topic_shows_routing_keys(self, world: World, alice: Client) -> None:
        topic = TestTopic(alice, "routes", filter="routing_key")
        topic.subscribe("group")
        topic.publish("x", routing_key="a.b")
        topic.publish("y")
        world.clock.pass_seconds(3)

        assert [each["routing_key"] for each in topic.log()["messages"]] == ["a.b", ""]

    def test_an_answer_ends_before_it_grows_too_large(self, world: World, topic: TestTopic) -> None:
        body = "\x01" * 65_536  # six bytes each in JSON
        for _ in range(14):
            assert topic.try_publish([{"body": body}] * 2).status == 201
            world.clock.pass_seconds(0.01)
        world.clock.pass_seconds(3)
        page = topic.log(limit=100)
        assert 1 <= len(page["messages"]) <= 14
        read = len(page["messages"])
        while page["messages"]:
            page = topic.log(limit=100, after=page["cursor"])
            read += len(page["messages"])

        assert read == 28

    def test_a_cursor_of_another_log_or_changed_is_refused(
        self, alice: Client, topic: TestTopic
    ) -> None:
        other = TestTopic(alice, "other")
        eyes = topic.subscribe("eyes", mode="broadcasting")
        cursor = topic.log()["cursor"]
        changed = ("A" if cursor[-1] != "A" else "B").join([cursor[:-1], ""])
        for path in (f"{other.path}/messages", f"{eyes.path}/messages"):
            assert alice.get(path, f"after={cursor}").code == "InvalidParameter"
        assert alice.get(f"{topic.path}/messages", f"after={changed}").code == "InvalidParameter"
        assert cursor.replace("-", "").replace("_", "").isalnum()


def test_sent_at_is_the_servers_time_whatever_the_attempt_says(
    world: World, topic: TestTopic, group: TestSubscription, now: Any
) -> None:
    topic.try_publish([{"body": "x"}], attempt=ago(world, 0.9))
    world.settle()
    (received,) = group.receive()

    assert received["sent_at"] == now()
    assert to_ms(received["expires_at"]) - to_ms(received["sent_at"]) == DAY * 1000
