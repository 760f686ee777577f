"""Fan-out: a batch of the stream repeated, re-cut or cut off by a crash leaves the same; queues as
subscribers; and the costs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep, to_ms
from tests.service.faults import log_records
from tests.service.topic_crashes import Crashes
from tests.service.topics import TestSubscription, TestTopic, log_bodies

from cirrusmq.fanout.reader_parcels import ReaderShare, parcels_of
from cirrusmq.model.message import Message
from cirrusmq_local.testing import Client, Subscriber, World

Event = dict[str, Any]
Once = tuple[list[Event], dict[str, list[str]], list[str]]
"""Parcels, what every reader receives, and the events of push."""

QUEUES: dict[str, dict[str, Any]] = {
    "plain": {},
    "delayed": {"delay_seconds": 5},
    "ordered": {"ordered": True},
    "rewinding": {"rewind_seconds": 3_600},
    "logged": {},
}


class Scene:
    """Every kind of subscription, and published messages that wait for their fan-out."""

    def __init__(self) -> None:
        self.world = World()
        self.alice = self.world.client("alice")
        self.topic = TestTopic(self.alice)
        for name, attributes in QUEUES.items():
            self.alice.put(f"/queues/{name}", attributes)
        self.alice.put("/queues/logged/receivers/second")
        self.world.settle()
        for name in QUEUES:
            filter = {"tags": ["a"]} if name in ("plain", "ordered") else None
            self.topic.subscribe(f"to-{name}", "queue", endpoint=name, filter=filter)
        self.pull = self.topic.subscribe("pull", filter={"tags": ["b"]})
        self.groups = self.topic.subscribe("groups", ordered=True)
        self.web = self.topic.subscribe("web", "http")
        large = "x" * 3_000
        batches: tuple[list[Event], ...] = (
            [{"body": "1", "tags": ["a"]}, {"body": "2", "tags": ["b"], "group": "g"}],
            [{"body": "3" + large, "tags": ["a", "b"], "group": "g"}, {"body": "4"}],
            [{"body": "5", "tags": ["a"], "group": "g"}, {"body": "6", "tags": ["a"]}],
        )
        for batch in batches:
            self.world.clock.pass_seconds(0.001)
            assert self.topic.try_publish(batch).status == 201
        self.records = log_records(self.world)
        assert len(self.records) == 3

    def fan_out(self, records: list[Event]) -> None:
        self.world.run("fan_out", {"Records": records})

    def parcels(self) -> list[Event]:
        """The parcels that fan-out puts by itself, without the sends into queues of other kinds."""
        direct = [self.pull.id, self.groups.id, self.web.id]
        direct += [self.alice.get(f"/queues/{name}").json["id"] for name in ("plain", "delayed")]
        return [
            item
            for item in self.world.items()
            if item["pk"]["S"].split("#")[1] in direct and item["pk"]["S"].startswith("Q#")
        ]

    def received(self) -> dict[str, list[str]]:
        """The bodies that every reader gets, in order."""
        self.world.invoked.clear()
        self.world.settle()
        self.world.clock.pass_seconds(6)
        readers: dict[str, Any] = {name: TestQueue(self.alice, name) for name in QUEUES}
        got = {name: queue.receive_all() for name, queue in readers.items()}
        got["second"] = readers["logged"].receive_all(receiver="second")
        got["pull"], got["groups"] = self.pull.receive_all(), self.groups.receive_all()
        shown = {name: [message["body"][0] for message in each] for name, each in got.items()}
        return {
            name: bodies if name in ("ordered", "groups") else sorted(bodies)
            for name, bodies in shown.items()
        }


@pytest.fixture(scope="module")
def once() -> Once:
    """Parcels and messages after a fan-out that nothing disturbed."""
    scene = Scene()
    scene.fan_out(scene.records)
    parcels = scene.parcels()
    invoked = [str(event) for _, event in scene.world.invoked]
    return parcels, scene.received(), invoked


def in_groups(bodies: list[str]) -> list[str]:
    """The messages of group g in their order; the others have no order among them."""
    return [body for body in bodies if body in "235"]


def check(scene: Scene, once: Once) -> None:
    parcels, received, _ = once
    assert scene.parcels() == parcels
    now = scene.received()
    for name, bodies in received.items():
        assert sorted(now[name]) == sorted(bodies), name
    for name in ("ordered", "groups"):
        assert in_groups(now[name]) == in_groups(received[name]), name


class TestTheSame:
    def test_everyone_gets_their_messages(self, once: Once) -> None:
        _, received, invoked = once
        everything = list("123456")
        assert received["plain"] == list("1356")
        assert sorted(received["ordered"]) == list("1356")
        assert received["pull"] == ["2", "3"]
        for name in ("delayed", "rewinding", "logged", "second"):
            assert received[name] == everything
        assert sorted(received["groups"]) == everything
        assert in_groups(received["groups"]) == ["2", "3", "5"]
        assert len(invoked) == 1  # of push, one a batch

    def test_when_a_batch_is_repeated(self, once: Once) -> None:
        scene = Scene()
        for _ in range(3):
            scene.fan_out(scene.records)
        check(scene, once)

    @pytest.mark.few(5)
    @pytest.mark.parametrize("seed", range(8))
    def test_when_batches_are_cut_anew(self, once: Once, seed: int) -> None:
        scene, chance = Scene(), random.Random(seed)
        done = 0
        while done < 3:
            start = chance.randint(0, done)
            end = chance.randint(start + 1, 3)
            scene.fan_out(scene.records[start:end])
            done = max(done, end)
        check(scene, once)

    @pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
    def test_when_a_crash_cuts_it_off_at_any_call_of_the_store(self, once: Once, step: int) -> None:
        at = 0
        while True:
            scene = Scene()
            crashes = Crashes(scene.world, "fan_out", at)
            scene.fan_out(scene.records)
            if crashes.crashed_ms is None:
                break
            scene.fan_out(scene.records)
            check(scene, once)
            scene.world.engine.close()
            at += step
        assert at > 25

    def test_after_its_messages_were_taken_a_pushed_or_queued_record_changes_nothing(
        self, subscriber: Subscriber, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        world = topic.client.world
        rewinding = make_queue("rewinding", rewind_seconds=60)
        topic.subscribe("web", "http")
        topic.subscribe("box", "queue", endpoint="rewinding")
        topic.publish("x")
        rewinding.delete(*rewinding.receive_all())
        world.run("fan_out", {"Records": log_records(world)})
        world.settle()

        assert subscriber.bodies() == ["x"]
        assert rewinding.receive_all() == []


class TestQueues:
    def test_a_queue_gets_the_raw_body_tags_and_attributes(
        self, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        inbox = make_queue("inbox")
        topic.subscribe("box", "queue", endpoint="inbox")
        (sent,) = topic.publish("raw", tags=["t"], attributes={"a": "1"})
        (received,) = inbox.receive()

        assert {name: received[name] for name in ("id", "body", "tags", "attributes")} == {
            "id": sent["id"],
            "body": "raw",
            "tags": ["t"],
            "attributes": {"a": "1"},
        }
        inbox.delete(received)
        assert inbox.receive() == []

    def test_a_subscription_shows_no_counts_for_a_queue(
        self, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        make_queue("inbox")
        shown = topic.subscribe("box", "queue", endpoint="inbox").show()
        assert (shown["state"], shown["endpoint"]) == ("delivering", "inbox")
        assert "counts" not in shown

    def test_the_queues_own_delay_and_retention_count(
        self, world: World, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        inbox = make_queue("inbox", delay_seconds=10, message_retention_seconds=60)
        topic.subscribe("box", "queue", endpoint="inbox")
        (sent,) = topic.publish("x")
        assert inbox.counts() == {"delayed": 1}
        world.clock.pass_seconds(9.9)
        assert inbox.receive() == []
        world.clock.pass_seconds(0.2)
        (received,) = inbox.receive()
        assert to_ms(received["expires_at"]) == to_ms(sent["sent_at"]) + 60_000

    def test_a_longer_retention_outlives_the_topics_day(
        self, world: World, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        inbox = make_queue("inbox", message_retention_seconds=7 * 86_400)
        topic.subscribe("box", "queue", endpoint="inbox")
        topic.publish("x" * 5_000)
        world.clock.pass_seconds(6 * 86_400)
        world.engine.remove_expired()

        assert [len(message["body"]) for message in inbox.receive()] == [5_000]

    def test_two_topics_may_feed_one_queue(self, alice: Client, make_queue: MakeQueue) -> None:
        inbox = make_queue("inbox")
        for name in ("one", "two"):
            topic = TestTopic(alice, name)
            topic.subscribe("box", "queue", endpoint="inbox")
            topic.publish(f"from {name}")
        assert inbox.bodies() == ["from one", "from two"]

    @pytest.mark.parametrize("attributes", [{}, {"ordered": True}, {"rewind_seconds": 60}])
    def test_messages_of_two_subscriptions_lie_in_their_queue_once(
        self, topic: TestTopic, make_queue: MakeQueue, attributes: dict[str, Any]
    ) -> None:
        inbox = make_queue("inbox", **attributes)
        topic.subscribe("box-a", "queue", endpoint="inbox", filter={"tags": ["a"]})
        topic.subscribe("box-b", "queue", endpoint="inbox", filter={"tags": ["b"]})
        messages = [("1", "a"), ("2", "b"), ("3", "ab"), ("4", "c")]
        sent = topic.try_publish([{"body": body, "tags": list(tags)} for body, tags in messages])
        topic.client.world.settle()

        assert [each["matched"] for each in sent.json["messages"]] == [1, 1, 2, 0]
        assert inbox.bodies() == ["1", "2", "3"]

    def test_a_rewinding_queue_rewinds_messages_from_a_topic(
        self, world: World, topic: TestTopic, make_queue: MakeQueue, now: Any
    ) -> None:
        inbox = make_queue("inbox", rewind_seconds=600)
        topic.subscribe("box", "queue", endpoint="inbox")
        start = now()
        world.clock.pass_seconds(1)
        topic.publish("x")
        inbox.delete(*inbox.receive_all())
        inbox.run("rewind", to=start)
        assert inbox.bodies() == ["x"]


def messages_units(world: World) -> float:
    """Write units of the table of messages so far."""
    by_table = world.engine.capacity()["by_table"]
    return float(by_table.get(world.tables.messages, {"write_units": 0})["write_units"])


class TestCost:
    """Counted over a message's whole life: published, fanned out, received, deleted."""

    def test_64_kib_with_20_subscriptions_cost_at_most_68_and_3_for_each(
        self, world: World, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        pulls = [topic.subscribe(f"pull-{number}") for number in range(8)]
        for number in range(6):
            topic.subscribe(f"web-{number}", "http")
        queues = []
        for number in range(6):
            queues.append(make_queue(f"inbox-{number}"))
            topic.subscribe(f"box-{number}", "queue", endpoint=f"inbox-{number}")
        before = messages_units(world)
        body = "".join(random.Random(1).choices("0123456789abcdefghijkABCDEFGHIJK_-", k=65_536))
        topic.publish(body)
        for reader in (*pulls, *queues):
            held = reader.receive()
            assert len(held) == 1
            reader.delete(*held)

        assert len(world.posts) == 6
        assert messages_units(world) - before <= 68 + 3 * 20

    def test_16_small_messages_to_20_queues_cost_at_most_80(
        self, world: World, topic: TestTopic, make_queue: MakeQueue
    ) -> None:
        queues = []
        for number in range(20):
            queues.append(make_queue(f"inbox-{number}"))
            topic.subscribe(f"box-{number}", "queue", endpoint=f"inbox-{number}")
        before = messages_units(world)
        topic.publish(*(f"message {number}" for number in range(16)))
        for queue in queues:
            held = queue.receive(16)
            assert len(held) == 16
            queue.delete(*held)

        assert messages_units(world) - before <= 80

    def test_matched_0_costs_nothing(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("group", filter={"tags": ["a"]})
        before = messages_units(world)
        topic.publish("x")
        assert messages_units(world) == before


def test_a_failing_share_is_put_aside_and_handed_out_when_it_can_be(
    world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, other = topic.subscribe("group"), topic.subscribe("other")
    make = parcels_of
    fails = True

    def break_down(share: ReaderShare) -> Any:
        message = share.entries[0].message
        is_bad = isinstance(message, Message) and message.body == "bad"
        if fails and share.source_id == group.id and is_bad:
            raise ValueError("a fault of the code")
        return make(share)

    def taken(subscription: TestSubscription) -> list[str]:
        messages = subscription.receive_all()
        subscription.delete(*messages)
        return sorted(message["body"] for message in messages)

    monkeypatch.setattr("cirrusmq.fanout.reader_parcels.parcels_of", break_down)
    topic.publish("bad")
    topic.publish("good")
    assert taken(group) == ["good"]
    assert taken(other) == ["bad", "good"]
    assert not world.unprocessed.bodies()
    sweep(world)
    assert taken(group) == []
    fails = False
    sweep(world)
    assert taken(group) == ["bad"]
    world.clock.pass_seconds(180)
    sweep(world)
    assert taken(group) == []
    assert not [item for item in world.items() if item["pk"]["S"].startswith("P#")]


class TestPartitions:
    """Of a topic's log: as many as were asked for, for all its readers."""

    @pytest.fixture
    def wide(self, alice: Client) -> TestTopic:
        return TestTopic(alice, "wide", partitions=200)

    @pytest.mark.long
    def test_records_and_parcels_are_spread_over_all(self, world: World, wide: TestTopic) -> None:
        group = wide.subscribe("group")
        for number in range(120):
            wide.publish(f"{number}")
        held = [item["pk"]["S"] for item in world.items()]
        assert len({pk for pk in held if pk.startswith("L#")}) > 80
        assert len({pk for pk in held if pk.startswith(f"Q#{group.id}#")}) > 80
        assert len(group.receive_all()) == 120

    def test_a_log_is_read_in_order_and_a_trace_finds_its_record(self, wide: TestTopic) -> None:
        wide.subscribe("all")
        sent = [wide.publish(f"{number:02d}")[0] for number in range(30)]
        wide.client.world.clock.pass_seconds(3)
        page = wide.log(limit=100)
        assert log_bodies(page) == [f"{number:02d}" for number in range(30)]
        assert {wide.trace(each["id"])["all"]["state"] for each in sent} == {"pending"}


@pytest.mark.parametrize("attributes", [{"rewind_seconds": 3_600}, {"fair": True}, {}])
def test_a_late_copy_can_be_received_to_the_end_of_its_life(
    world: World, topic: TestTopic, make_queue: MakeQueue, attributes: dict[str, Any]
) -> None:
    """Its key is no older than the looks at its queue go back."""
    queue = make_queue(message_retention_seconds=7_200, **attributes)
    topic.subscribe("copy", "queue", endpoint="orders")
    topic.try_publish([{"body": "late"}])
    world.clock.pass_seconds(3_600)
    world.settle()
    expires_ms = max(int(item["x"]["N"]) for item in world.items() if item["pk"]["S"][0] == "Q")

    world.clock.pass_seconds((expires_ms - world.clock.now_ms()) / 1_000 - 10)
    assert queue.counts() == {"active": 1}
    assert queue.bodies() == ["late"]


def test_a_copy_behind_a_purge_is_received(
    world: World, topic: TestTopic, make_queue: MakeQueue
) -> None:
    """It is made after the purge, however old its publish is."""
    queue = make_queue(rewind_seconds=3_600)
    topic.subscribe("copy", "queue", endpoint="orders")
    topic.try_publish([{"body": "late"}])
    world.clock.pass_seconds(600)
    assert queue.client.post(f"{queue.path}/purge").status == 202
    world.clock.pass_seconds(1)
    world.settle()

    assert queue.counts() == {"active": 1}
    assert queue.bodies() == ["late"]
