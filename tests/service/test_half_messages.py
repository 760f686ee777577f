"""Half messages: unseen before the commit, decided once, checked by their producers, told."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest
from tests.service.conftest import TestQueue, to_ms, usage
from tests.service.crashes import BrokenStore, before_transactions
from tests.service.half import Producers
from tests.service.topics import TestSubscription, TestTopic, log_bodies

from cirrusmq.base import ulid
from cirrusmq.base.errors import Unavailable
from cirrusmq.publishing.half_messages.checks import end_overdue
from cirrusmq_local.testing import Client, World

DAY = 86_400


@pytest.fixture
def producers(topic: TestTopic) -> Producers:
    return Producers(topic)


class TestDeciding:
    def test_nobody_sees_a_half_message_before_its_commit(
        self, world: World, topic: TestTopic, producers: Producers
    ) -> None:
        group, eyes = topic.subscribe("group"), topic.subscribe("eyes", mode="broadcasting")
        handle = producers.prepare("a", {"body": "b", "tags": ["t"], "attributes": {"k": "v"}})
        world.clock.pass_seconds(10)
        world.settle()
        assert (group.receive(), topic.active()) == ([], 0)
        assert log_bodies(topic.log()) == log_bodies(eyes.log()) == []

        entries = producers.commit(handle)
        received = group.receive_all()
        assert sorted(each["body"] for each in received) == ["a", "b"]
        assert {each["id"] for each in received} == {each["id"] for each in entries}
        (second,) = [each for each in received if each["body"] == "b"]
        assert (second["tags"], second["attributes"]) == (["t"], {"k": "v"})
        world.clock.pass_seconds(5)
        assert log_bodies(topic.log()) == log_bodies(eyes.log()) == ["a", "b"]
        assert topic.trace(entries[0]["id"])["group"]["attempts"] == 1

    def test_nobody_ever_sees_a_rolled_back_one(
        self, world: World, topic: TestTopic, group: TestSubscription, producers: Producers
    ) -> None:
        handle = producers.prepare("a")
        producers.roll_back(handle)
        world.clock.pass_seconds(120)

        assert group.receive() == producers.receive() == []
        assert log_bodies(topic.log()) == []
        assert producers.marks() == []

    def test_a_repeated_decision_gets_the_same_answer_and_the_other_one_is_a_conflict(
        self, world: World, group: TestSubscription, producers: Producers
    ) -> None:
        committed, dropped = producers.prepare("a"), producers.prepare("b")
        first = producers.commit(committed)
        producers.roll_back(dropped)
        world.clock.pass_seconds(DAY - 1)

        assert producers.commit(committed) == first
        producers.roll_back(dropped)
        for verb, handle in (("rollback", committed), ("commit", dropped)):
            reply = producers.decide(verb, handle)
            assert (reply.status, reply.code) == (409, "Conflict")
        assert group.bodies() == ["a"]

    def test_a_decision_is_known_for_a_day(self, world: World, producers: Producers) -> None:
        producers.topic.subscribe("group")
        handle = producers.prepare("a")
        producers.commit(handle)
        world.clock.pass_seconds(DAY + 1)
        world.engine.remove_expired()
        reply = producers.decide("commit", handle)

        assert (reply.status, reply.code) == (404, "MessageNotFound")

    def test_subscriptions_order_and_time_are_those_of_the_commit(
        self, world: World, topic: TestTopic, producers: Producers, now: Any
    ) -> None:
        early = topic.subscribe("early", ordered=True)
        handle = producers.prepare({"body": "1", "group": "g"})
        topic.client.delete(early.path)
        late = topic.subscribe("late", ordered=True)
        topic.publish("2", group="g")
        world.clock.pass_seconds(30)
        (entry,) = producers.commit(handle)

        assert (entry["matched"], entry["sent_at"]) == (1, now())
        received = late.receive_all()
        assert [each["body"] for each in received] == ["2", "1"]
        assert to_ms(received[1]["expires_at"]) - to_ms(entry["sent_at"]) == DAY * 1000

    def test_a_message_without_receivers_is_committed_too(
        self, world: World, topic: TestTopic, producers: Producers
    ) -> None:
        topic.subscribe("other", filter={"tags": ["x"]})
        handle = producers.prepare("a")
        first = producers.commit(handle)

        assert [each["matched"] for each in first] == [0]
        assert producers.commit(handle) == first
        assert producers.decide("rollback", handle).code == "Conflict"
        assert not [each for each in world.items() if each["pk"]["S"].startswith("L#")]

    def test_a_routing_key_is_kept(self, alice: Client) -> None:
        topic = TestTopic(alice, "keyed", filter="routing_key")
        group = topic.subscribe("group", filter={"binding_keys": ["a.*"]})
        producers = Producers(topic)
        handles = [
            producers.prepare({"body": key, "routing_key": key}, check_after_seconds=1)
            for key in ("a.b", "b.a")
        ]
        alice.world.clock.pass_seconds(1)
        shown = {each["handle"]: each["messages"] for each in producers.receive()}
        assert [shown[handle][0]["routing_key"] for handle in handles] == ["a.b", "b.a"]

        assert [producers.commit(handle)[0]["matched"] for handle in handles] == [1, 0]
        assert group.bodies() == ["a.b"]

    def test_it_reaches_queues_and_urls(
        self, topic: TestTopic, producers: Producers, queue: TestQueue, subscriber: Any
    ) -> None:
        topic.subscribe("copy", "queue", endpoint="orders")
        topic.subscribe("hook", "http")
        producers.commit(producers.prepare("a"))

        assert queue.bodies() == subscriber.bodies() == ["a"]


class TestRepeating:
    def test_a_repeated_prepare_answers_the_same_handle(
        self, world: World, group: TestSubscription, producers: Producers
    ) -> None:
        attempt = ulid.encode(world.clock.now_ms(), b"0123456789")
        first = producers.prepare("a", attempt=attempt)
        world.clock.pass_seconds(70)
        assert producers.prepare("a", attempt=attempt) == first
        (check,) = producers.receive()
        assert check["handle"] == first
        entries = producers.commit(first)
        world.clock.pass_seconds(30)

        assert producers.prepare("a", attempt=attempt) == first
        assert producers.commit(first) == entries
        assert group.bodies() == ["a"]
        world.clock.pass_seconds(300)
        assert producers.receive() == []
        assert producers.marks() == []

    def test_a_commit_overtaken_by_a_rollback_is_a_conflict(
        self,
        world: World,
        group: TestSubscription,
        producers: Producers,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        handle = producers.prepare("a")
        before_transactions(world, monkeypatch, lambda: producers.roll_back(handle))
        reply = producers.decide("commit", handle)

        assert (reply.status, reply.code) == (409, "Conflict")
        assert group.receive() == []

    def test_two_commits_at_once_publish_once(
        self,
        world: World,
        group: TestSubscription,
        producers: Producers,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        handle = producers.prepare("a")
        inner: list[Any] = []
        before_transactions(world, monkeypatch, lambda: inner.append(producers.commit(handle)))
        outer = producers.commit(handle)

        assert inner == [outer]
        assert group.bodies() == ["a"]

    def test_a_deduplication_id_counts_from_the_commit(
        self, world: World, topic: TestTopic, group: TestSubscription, producers: Producers
    ) -> None:
        same = {"body": "a", "deduplication_id": "one"}
        half = producers.prepare(same, "b", {**same, "body": "c"})
        world.clock.pass_seconds(400)
        (sent,) = topic.publish("first", deduplication_id="one")
        entries = producers.commit(half)

        assert [entries[0]["id"], entries[2]["id"]] == [sent["id"]] * 2
        assert group.bodies() == ["b", "first"]
        assert producers.commit(half) == entries
        other = producers.commit(producers.prepare({**same, "deduplication_id": "two"}))
        (again,) = topic.publish("again", deduplication_id="two")
        assert again["id"] == other[0]["id"]
        assert group.bodies() == ["a"]


class TestChecking:
    def test_producers_are_asked_after_their_time_and_then_left_alone_for_it(
        self, world: World, producers: Producers, now: Any
    ) -> None:
        prepared_at = now()
        handle = producers.prepare(
            {"body": "a", "tags": ["t"], "group": "g"}, check_after_seconds=5, max_checks=3
        )
        world.clock.pass_seconds(4.9)
        assert producers.receive() == []
        world.clock.pass_seconds(0.1)
        (check,) = producers.receive(visibility_timeout_seconds=20)
        assert check == {
            "handle": handle,
            "messages": [{"body": "a", "attributes": {}, "tags": ["t"], "group": "g"}],
            "checks": 1,
            "max_checks": 3,
            "prepared_at": prepared_at,
            "held_until": now(20),
            "expires_at": now(DAY - 5),
        }
        world.clock.pass_seconds(24.9)
        assert producers.receive() == []
        world.clock.pass_seconds(0.1)
        assert [each["checks"] for each in producers.receive()] == [2]

    def test_the_producer_may_decide_while_another_one_checks(
        self, world: World, group: TestSubscription, producers: Producers
    ) -> None:
        handle = producers.prepare("a", check_after_seconds=1)
        world.clock.pass_seconds(1)
        (check,) = producers.receive()
        first = producers.commit(handle)

        assert producers.commit(check["handle"]) == first
        assert producers.decide("rollback", check["handle"]).code == "Conflict"
        assert group.bodies() == ["a"]
        assert producers.marks() == []

    def test_a_decided_message_is_not_asked_for(self, world: World, producers: Producers) -> None:
        producers.topic.subscribe("group")
        handles = [producers.prepare(str(n), check_after_seconds=1) for n in range(3)]
        producers.commit(handles[0])
        producers.roll_back(handles[1])
        world.clock.pass_seconds(1)

        assert producers.handles() == [handles[2]]

    def test_it_is_over_when_the_last_checks_lease_and_wait_are(
        self,
        world: World,
        group: TestSubscription,
        producers: Producers,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        handle = producers.prepare("a", check_after_seconds=10, max_checks=2)
        world.clock.pass_seconds(10)
        assert len(producers.receive(visibility_timeout_seconds=30)) == 1
        world.clock.pass_seconds(40)
        (last,) = producers.receive(visibility_timeout_seconds=30)
        assert to_ms(last["expires_at"]) == world.clock.now_ms() + 40_000
        world.clock.pass_seconds(39)
        world.run("sweep")
        assert producers.receive() == []
        assert "was rolled back" not in caplog.text
        world.clock.pass_seconds(1)
        with caplog.at_level(logging.WARNING):
            world.run("sweep")

        assert f"half message {handle} of topic news of account alice" in caplog.text
        reply = producers.decide("commit", handle)
        assert (reply.status, reply.code) == (409, "Conflict")
        assert "nobody decided in time (2 checks)" in reply.json["detail"]
        producers.roll_back(handle)
        assert group.receive() == []
        assert producers.marks() == []
        caplog.clear()
        world.run("sweep")
        assert "was rolled back" not in caplog.text

    def test_the_last_checker_may_still_commit_until_then(
        self, world: World, group: TestSubscription, producers: Producers
    ) -> None:
        handle = producers.prepare("a", check_after_seconds=10, max_checks=1)
        world.clock.pass_seconds(10)
        producers.receive(visibility_timeout_seconds=30)
        world.clock.pass_seconds(39.9)
        world.run("sweep")
        producers.commit(handle)

        assert group.bodies() == ["a"]

    def test_a_commit_behind_its_time_is_a_conflict_for_good_and_told(
        self,
        world: World,
        producers: Producers,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        handle = producers.prepare("a", check_after_seconds=1, max_checks=1)
        world.clock.pass_seconds(1)
        producers.receive(visibility_timeout_seconds=1)
        world.clock.pass_seconds(2)
        assert producers.decide("commit", handle).code == "Conflict"
        assert producers.decide("commit", handle).code == "Conflict"
        with caplog.at_level(logging.WARNING):
            world.run("sweep")

        assert handle in caplog.text
        assert producers.marks() == []

    @pytest.mark.parametrize("asked", [False, True])
    def test_an_undecided_one_is_over_after_a_day(
        self,
        world: World,
        producers: Producers,
        asked: bool,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        handle = producers.prepare("a", check_after_seconds=60)
        world.clock.pass_seconds(DAY - 1)
        world.run("sweep")
        assert handle not in caplog.text
        world.clock.pass_seconds(1)
        if asked:
            assert producers.receive() == []
        else:
            world.clock.pass_seconds(60)
        world.engine.remove_expired()
        with caplog.at_level(logging.WARNING):
            world.run("sweep")

        assert handle in caplog.text
        assert producers.decide("commit", handle).code == "Conflict"
        assert producers.marks() == []

    def test_a_sweep_without_time_leaves_the_rest_to_the_next(
        self, world: World, producers: Producers
    ) -> None:
        for body in ("a", "b", "c"):
            producers.prepare(body, check_after_seconds=1, max_checks=1)
        world.clock.pass_seconds(1)
        assert len(producers.receive(visibility_timeout_seconds=1)) == 3
        world.clock.pass_seconds(2)

        assert end_overdue(world.core, world.clock.now_ms()) == (False, 0)
        assert end_overdue(world.core, world.clock.now_ms() + 1) == (True, 3)
        assert producers.marks() == []

    def test_producers_of_another_group_are_not_asked(
        self, world: World, producers: Producers
    ) -> None:
        mine = producers.prepare("a", group="billing", check_after_seconds=1)
        other = producers.prepare("b", group="billing-2", check_after_seconds=1)
        world.clock.pass_seconds(1)

        assert producers.receive() == []
        assert producers.handles(group="billing") == [mine]
        assert producers.handles(group="billing-2") == [other]

    def test_the_oldest_of_many_are_handed_out_and_none_twice(
        self, world: World, producers: Producers
    ) -> None:
        made = {producers.prepare(str(n), check_after_seconds=1) for n in range(40)}
        world.clock.pass_seconds(1)
        asked: list[str] = []
        while some := producers.handles(limit=7):
            asked += some

        assert sorted(asked) == sorted(made)

    def test_a_checks_answer_is_within_lambdas_limit(
        self, world: World, producers: Producers
    ) -> None:
        for _ in range(10):
            producers.prepare(*['"' * 65_000] * 4, check_after_seconds=1)
        world.clock.pass_seconds(1)
        counts = [len(producers.receive()) for _ in range(3)]

        assert counts == [8, 2, 0]


class TestAccounts:
    def test_producers_of_another_account_are_apart(
        self, topic: TestTopic, group: TestSubscription, producers: Producers, bob: Client
    ) -> None:
        """Whoever may publish may not read or decide what others prepared."""
        grant = topic.client.put(f"{topic.path}/grants/bob", {"permission": "publish"})
        assert grant.status == 200
        path, world = "/topics/alice:news", topic.client.world
        attempt = ulid.encode(world.clock.now_ms(), b"0123456789")
        handle = producers.prepare("a", attempt=attempt, check_after_seconds=1)
        terms = {"check_after_seconds": 1}
        same = {"messages": [{"body": "a"}], "attempt": attempt, "transaction": terms}
        own = bob.post(f"{path}/messages", same).json["transaction"]["handle"]
        assert own != handle
        world.clock.pass_seconds(1)

        asked = bob.post(f"{path}/half/receive", {"max": 16}).json["transactions"]
        assert [each["handle"] for each in asked] == [own]
        for verb in ("commit", "rollback"):
            reply = bob.post(f"{path}/half/{verb}", {"handle": handle})
            assert reply.code == "MessageNotFound"
            assert producers.decide(verb, own).code == "MessageNotFound"
        assert producers.handles() == [handle]
        producers.commit(handle)
        assert bob.post(f"{path}/half/rollback", {"handle": own}).status == 204
        assert group.bodies() == ["a"]


class TestRefusals:
    def test_foreign_and_invalid_handles_are_refused(
        self, producers: Producers, alice: Client
    ) -> None:
        handle = producers.prepare("a")
        other = Producers(TestTopic(alice, "other"))
        for verb in ("commit", "rollback"):
            assert other.decide(verb, handle).code == "MessageNotFound"
            assert producers.decide(verb, handle[:-1] + "!").code == "InvalidParameter"
            reply = alice.post(f"/topics/none/half/{verb}", {"handle": handle})
            assert reply.code == "TopicNotFound"


class TestFailing:
    @pytest.mark.parametrize("verb", ["commit", "rollback"])
    @pytest.mark.parametrize("applied", [False, True])
    def test_a_decision_failing_anywhere_can_be_repeated(
        self, verb: str, applied: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for at in range(20):
            world = World()
            producers = Producers(TestTopic(world.client("alice")))
            group = producers.topic.subscribe("group")
            handle = producers.prepare("a", {"body": "b", "deduplication_id": "one"})
            with monkeypatch.context() as patch:
                store = BrokenStore(world, patch)
                store.break_after(at, applied=applied)
                reply = producers.topic.client.post(
                    f"{producers.topic.path}/half/{verb}", {"handle": handle}
                )
                store.mend()
            assert reply.status in (200, 204, 503)
            assert producers.decide(verb, handle).status in (200, 204)
            assert group.bodies() == (["a", "b"] if verb == "commit" else [])
            world.engine.close()
            if not store.failed:
                break
        else:
            pytest.fail("a decision takes more calls")
        assert at > 2

    @pytest.mark.few(2)
    @pytest.mark.parametrize("last", ["commit", "end"])
    @pytest.mark.parametrize("applied", [False, True])
    def test_whatever_stops_one_decision_is_taken_and_no_mark_is_left(
        self, last: str, applied: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Checked twice, then committed or over, with a store that fails at each of its calls."""
        at = 0
        while _stopped_at(at, last, monkeypatch, applied=applied):
            at += 1
        assert at > 10


def _stopped_at(at: int, last: str, monkeypatch: pytest.MonkeyPatch, *, applied: bool) -> bool:
    """Whether one of the calls failed."""
    world = World()
    client = world.client("alice")
    producers = Producers(TestTopic(client, partitions=1))
    group = producers.topic.subscribe("group")
    handle = producers.prepare("a", check_after_seconds=1, max_checks=2)

    def receive() -> None:
        fields = {"max": 16, "visibility_timeout_seconds": 1}
        client.post(f"{producers.topic.path}/half/receive", fields)

    def end() -> None:
        end_overdue(world.core, world.clock.now_ms() + 60_000)

    def commit() -> None:
        client.post(f"{producers.topic.path}/half/commit", {"handle": handle})

    with monkeypatch.context() as patch:
        store = BrokenStore(world, patch)
        store.break_after(at, applied=applied)
        for step in (receive, receive, commit if last == "commit" else end):
            world.clock.pass_seconds(2 if step != end else 30)
            with contextlib.suppress(Unavailable):
                step()
            if store.failed:
                store.mend()
    for _ in range(3):
        world.clock.pass_seconds(61)
        end()
        receive()
    reply = producers.decide("commit", handle)
    assert reply.status in (200, 409)
    assert group.bodies() == (["a"] if reply.status == 200 else [])
    world.clock.pass_seconds(120)
    receive()
    end()
    assert producers.marks() == []
    world.engine.close()
    return store.failed


class TestFigures:
    def test_only_committed_messages_are_metered_as_published(
        self, world: World, topic: TestTopic, producers: Producers
    ) -> None:
        topic.subscribe("group")
        producers.roll_back(producers.prepare("a"))
        producers.prepare("b")
        producers.commit(producers.prepare("c", "d"))

        assert usage(world) == {"topic:news published": 2, "subscription:news/group delivered": 2}

    def test_the_units_of_a_small_half_message(
        self, world: World, topic: TestTopic, producers: Producers
    ) -> None:
        """Its mark and itself; then itself and the record in one transaction, and the mark."""
        topic.subscribe("group")
        producers.roll_back(producers.prepare("x"))
        handle = ""

        def prepare() -> None:
            nonlocal handle
            handle = producers.prepare("x" * 100)

        path = f"{topic.path}/half/commit"
        assert world.write_units(prepare) == 2
        assert world.write_units(lambda: topic.client.post(path, {"handle": handle})) == 5
        path, dropped = f"{topic.path}/half/rollback", {"handle": producers.prepare("x")}
        assert world.write_units(lambda: topic.client.post(path, dropped)) == 2
