"""Groups in time: a pull subscription that starts earlier, or is rewound, by its topic's log."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import Message, TestQueue
from tests.service.test_peeking_at_all import pages
from tests.service.test_receiving import after
from tests.service.test_repeated_sends import attempt
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq_local.testing import Client, Reply, World
from cirrusmq_local.testing.core import FUNCTION

HOUR = 3_600
DAY = 86_400


def rewind(group: TestSubscription, to: Any, *, settle: bool = True) -> str:
    """Rewind a group; answers the operation's id."""
    operation = group.start("rewind", to=to)
    if settle:
        group.client.world.settle()
    return operation


def try_rewind(group: TestSubscription, to: Any) -> Reply:
    return group.client.post(f"{group.path}/rewind", {"to": to})


def publish_each(topic: TestTopic, *bodies: str, **fields: Any) -> list[Message]:
    """Publish messages a second apart."""
    published = []
    for body in bodies:
        published += topic.publish(body, **fields)
        topic.client.world.clock.pass_seconds(1)
    return published


def take_all(group: TestSubscription) -> list[str]:
    """Receive and delete all that there is; the bodies, sorted."""
    return sorted(take_in_order(group))


def receive_all(group: TestSubscription) -> list[Message]:
    """Receive what is in all partitions, in order of sending."""
    return sorted(group.receive_all(), key=lambda message: str(message["sent_at"]))


def take_in_order(group: TestSubscription) -> list[str]:
    """Receive and delete all that there is; the bodies in order."""
    return group.consume(1)


def handed(world: World) -> list[str]:
    """The bodies that the function got."""
    return [record["body"] for batch in world.batches for record in batch]


@pytest.fixture
def keeper(topic: TestTopic) -> TestSubscription:
    """A subscription for which everything is published, so that the log has it."""
    return topic.subscribe("keeper")


class TestStarts:
    def test_the_earliest_is_the_whole_log(
        self, keeper: TestSubscription, topic: TestTopic, world: World
    ) -> None:
        publish_each(topic, "1", "2", "3")
        group = topic.subscribe("group", start="earliest")
        world.settle()
        assert group.shown["start"] == "earliest"
        publish_each(topic, "4")
        assert take_all(group) == ["1", "2", "3", "4"]
        assert take_all(group) == []

    def test_a_start_time_is_inclusive(
        self, keeper: TestSubscription, topic: TestTopic, world: World
    ) -> None:
        _, second, _ = publish_each(topic, "1", "2", "3")
        group = topic.subscribe("group", start=second["sent_at"])
        world.settle()
        assert take_all(group) == ["2", "3"]

    def test_the_latest_is_the_default(self, keeper: TestSubscription, topic: TestTopic) -> None:
        publish_each(topic, "1")
        group = topic.subscribe("group")
        assert group.shown["start"] == "latest"
        publish_each(topic, "2")
        assert take_all(group) == ["2"]

    def test_the_filter_chooses_among_earlier_messages(
        self, keeper: TestSubscription, topic: TestTopic, world: World
    ) -> None:
        publish_each(topic, "a", tags=["x"])
        publish_each(topic, "b", tags=["y"])
        group = topic.subscribe("group", start="earliest", filter={"tags": ["y"]})
        world.settle()
        assert take_all(group) == ["b"]

    def test_expired_and_unmatched_messages_are_not_there(
        self, topic: TestTopic, world: World
    ) -> None:
        publish_each(topic, "lost")
        topic.subscribe("keeper")
        publish_each(topic, "old")
        world.clock.pass_seconds(DAY - 10)
        publish_each(topic, "new")
        world.clock.pass_seconds(10)
        group = topic.subscribe("group", start="earliest")
        world.settle()
        assert take_all(group) == ["new"]

    def test_a_repeated_put_is_the_same(self, keeper: TestSubscription, topic: TestTopic) -> None:
        publish_each(topic, "1")
        topic.subscribe("group", start="earliest")
        assert topic.try_subscribe("group", protocol="pull", start="earliest").status == 200
        assert topic.try_subscribe("group", protocol="pull").status == 200
        assert topic.try_subscribe("group", protocol="pull", start="latest").code == "AlreadyExists"

    def test_large_messages_come_from_their_object(
        self, keeper: TestSubscription, topic: TestTopic, world: World
    ) -> None:
        body = world.random.randbytes(30_000).hex()
        publish_each(topic, body)
        assert keeper.receive()
        group = topic.subscribe("group", start="earliest")
        world.settle()
        assert take_all(group) == [body]
        (item,) = (each for each in world.items("messages") if "e" in each)
        assert int(item["y"]["N"])  # the log's record says that they are in one

    def test_a_group_with_a_function_has_it_called(
        self, keeper: TestSubscription, topic: TestTopic, world: World
    ) -> None:
        first, *_ = publish_each(topic, "1", "2")
        group = topic.subscribe("group", start="earliest", invoke={"function": FUNCTION})
        world.settle()
        assert sorted(handed(world)) == ["1", "2"]
        rewind(group, first["sent_at"])
        publish_each(topic, "3")
        assert sorted(handed(world)) == ["1", "1", "2", "2", "3"]


class TestRewinds:
    def test_consumed_messages_come_again(self, topic: TestTopic, alice: Client) -> None:
        group = topic.subscribe("group")
        _, second, _ = publish_each(topic, "1", "2", "3")
        assert take_all(group) == ["1", "2", "3"]
        started = rewind(group, second["sent_at"])
        shown = alice.get(f"/operations/{started}").json
        assert (shown["kind"], shown["state"], shown["done"]) == ("replay", "succeeded", 2)
        publish_each(topic, "4")
        received = {message["body"]: message for message in receive_all(group)}
        assert sorted(received) == ["2", "3", "4"]
        assert (received["2"]["id"], received["2"]["receive_count"]) == (second["id"], 1)

    def test_receipts_of_redelivered_messages_end_and_others_stay(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        _, second = publish_each(topic, "1", "2")
        first_held, second_held = receive_all(group)
        rewind(group, second["sent_at"])
        for verb in ("delete", "give-back", "dead-letter"):
            assert group.act(verb, second_held)["failed"][0]["code"] == "ReceiptExpired"
        entry = {"receipt": second_held["receipt"], "visibility_timeout_seconds": 100}
        reply = group.client.post(f"{group.path}/messages/visibility", {"entries": [entry]})
        assert reply.json["failed"][0]["code"] == "ReceiptExpired"
        group.hold(first_held, 100)
        group.delete(first_held)
        assert take_all(group) == ["2"]

    def test_nothing_may_be_received_before_the_operation_has_reached_it(
        self, topic: TestTopic, group: TestSubscription, world: World, alice: Client
    ) -> None:
        first, _ = publish_each(topic, "1", "2")
        assert take_all(group) == ["1", "2"]
        started = rewind(group, first["sent_at"], settle=False)
        event = world.invoked.popleft()
        topic.publish("3")
        assert alice.get(f"/operations/{started}").json["state"] == "running"
        assert group.receive() == []
        assert group.peek() == []
        assert topic.trace(first["id"])["group"]["state"] == "pending"
        world.invoked.append(event)
        world.settle()
        assert take_all(group) == ["1", "2", "3"]

    def test_an_earlier_rewind_than_the_one_before_leaves_nothing_twice(
        self, topic: TestTopic, group: TestSubscription
    ) -> None:
        first, second, third = publish_each(topic, "1", "2", "3")
        rewind(group, third["sent_at"])
        rewind(group, second["sent_at"])
        assert take_all(group) == ["1", "2", "3"]
        rewind(group, first["sent_at"])
        rewind(group, third["sent_at"])
        assert take_all(group) == ["1", "2", "3"]

    def test_to_before_the_groups_creation(
        self, keeper: TestSubscription, topic: TestTopic
    ) -> None:
        first, *_ = publish_each(topic, "1", "2")
        group = topic.subscribe("group")
        publish_each(topic, "3")
        assert take_all(group) == ["3"]
        rewind(group, first["sent_at"])
        assert take_all(group) == ["1", "2", "3"]

    def test_a_second_one_waits_for_the_first(self, topic: TestTopic, world: World) -> None:
        group = topic.subscribe("group")
        (first,) = publish_each(topic, "1")
        rewind(group, first["sent_at"], settle=False)
        reply = try_rewind(group, first["sent_at"])
        assert (reply.status, reply.json["code"]) == (409, "NotRewindable")
        world.settle()
        rewind(group, first["sent_at"])
        assert take_all(group) == ["1"]

    def test_a_group_has_at_most_four_former_sources(self, topic: TestTopic, world: World) -> None:
        group = topic.subscribe("group")
        sent = publish_each(topic, *"1234567")
        for message in sent[1:5]:
            rewind(group, message["sent_at"])
        reply = try_rewind(group, sent[5]["sent_at"])
        assert (reply.status, reply.json["code"]) == (409, "LimitExceeded")
        assert sent[4]["sent_at"] in reply.json["detail"]
        rewind(group, sent[4]["sent_at"])
        assert take_all(group) == [*"1234567"]
        world.clock.pass_seconds(DAY)
        (late,) = publish_each(topic, "8")
        rewind(group, late["sent_at"])
        assert take_all(group) == ["8"]

    def test_a_message_moved_to_a_retry_comes_once(self, topic: TestTopic, world: World) -> None:
        group = topic.subscribe("group", retry={"policy": "custom", "waits": [120] * 9})
        first, _ = publish_each(topic, "1", "2")
        for message in receive_all(group):
            group.act("give-back", message)
        rewind(group, first["sent_at"])
        assert take_all(group) == ["1", "2"]
        world.clock.pass_seconds(200)
        assert take_all(group) == []

    def test_all_sources_are_peeked_at_page_by_page(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        sent = publish_each(topic, *"1234")
        rewind(group, sent[2]["sent_at"])
        assert len(group.peek()) == 2
        assert sorted(each["body"] for page in pages(group, max=16) for each in page) == [*"1234"]
        asked = {"max": 16, "cursor": "none"}
        assert group.client.post(f"{group.path}/messages/peek", asked).status == 400

    @pytest.mark.parametrize("ordered", [False, True])
    def test_a_receive_repeated_after_it_answers_its_held_messages(
        self, topic: TestTopic, world: World, ordered: bool
    ) -> None:
        group = topic.subscribe("group", ordered=ordered)
        publish_each(topic, "1", **({"group": "g"} if ordered else {}))
        token = attempt(world)
        first = group.receive(attempt=token)
        (second,) = publish_each(topic, "2")
        rewind(group, second["sent_at"])
        assert [message["body"] for message in first] == ["1"]
        assert group.receive(attempt=token, repeat=True) == first

    def test_a_waiting_receive_gets_the_rewound_messages(
        self, topic: TestTopic, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        group = topic.subscribe("group")
        (first,) = publish_each(topic, "1")
        group.delete(*group.receive())
        rewound: list[str] = []
        after(world, monkeypatch, 0, lambda: rewound.append(rewind(group, first["sent_at"])))
        received = group.receive(wait_seconds=20)
        assert len(rewound) == 1
        assert [message["body"] for message in received] == ["1"]

    def test_counts_are_of_receivable_messages(self, topic: TestTopic) -> None:
        group = topic.subscribe("group")
        _, second, _ = publish_each(topic, "1", "2", "3")
        group.receive(2)
        rewind(group, second["sent_at"])
        counts = group.client.get(group.path).json["counts"]
        assert (counts["active"] + counts["inactive"], topic.active()) == (3, 3)

    def test_a_dead_letter_stays_and_its_message_comes_again(
        self, topic: TestTopic, alice: Client
    ) -> None:
        alice.put("/queues/dead")
        group = topic.subscribe("group", dead_letter_queue="dead")
        (first,) = publish_each(topic, "1")
        (held,) = group.receive(1)
        assert group.act("dead-letter", held)["deleted"]
        rewind(group, first["sent_at"])
        assert take_all(group) == ["1"]
        assert TestQueue(alice, "dead").bodies() == ["1"]

    @pytest.mark.parametrize("ordered", [False, True])
    def test_a_redriven_dead_letter_is_not_lost(
        self, topic: TestTopic, alice: Client, world: World, now: Any, ordered: bool
    ) -> None:
        alice.put("/queues/dead")
        group = topic.subscribe("group", dead_letter_queue="dead", ordered=ordered)
        publish_each(topic, "1")
        (held,) = group.receive(1)
        group.act("dead-letter", held)
        before = now()
        world.clock.pass_seconds(1)
        TestQueue(alice, "dead").start("redrive")
        world.settle()
        rewind(group, before)
        (again,) = group.receive(1)
        assert again["body"] == "1"
        group.give_back(again)
        world.clock.pass_seconds(60)
        assert take_all(group) == ["1"]

    def test_a_deleted_group_fails_the_operation(
        self, topic: TestTopic, group: TestSubscription, world: World, alice: Client
    ) -> None:
        (first,) = publish_each(topic, "1")
        started = rewind(group, first["sent_at"], settle=False)
        assert alice.delete(group.path).status == 204
        world.settle()
        assert alice.get(f"/operations/{started}").json["state"] == "failed"

    def test_bad_times_and_subscriptions_are_refused(
        self, topic: TestTopic, group: TestSubscription, now: Any, alice: Client
    ) -> None:
        reply = try_rewind(group, now(5))
        assert (reply.status, reply.json["parameter"]) == (400, "to")
        reply = try_rewind(group, now(-DAY - 5))
        assert (reply.status, reply.json["code"]) == (409, "NotRewindable")
        assert now(-DAY) in reply.json["detail"]
        assert try_rewind(group, 17).status == 400
        reply = try_rewind(topic.subscribe("log", mode="broadcasting"), now(-5))
        assert (reply.status, reply.json["parameter"]) == (400, "subscription")
        reply = alice.post(f"{topic.path}/subscriptions/none/rewind", {"to": now(-5)})
        assert (reply.status, reply.json["code"]) == (404, "SubscriptionNotFound")


class TestOrderedGroups:
    def test_a_late_group_gets_each_group_in_order(
        self, keeper: TestSubscription, topic: TestTopic, world: World
    ) -> None:
        publish_each(topic, *"12345", group="g")
        group = topic.subscribe("group", start="earliest", ordered=True)
        publish_each(topic, *"678", group="g")
        world.settle()
        assert take_in_order(group) == [*"12345678"]

    def test_a_groups_order_holds_over_a_rewind(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", ordered=True)
        sent = publish_each(topic, *"12345", group="g")
        received = group.receive(2)
        group.delete(*received)
        rewind(group, sent[3]["sent_at"])
        publish_each(topic, "6", group="g")
        assert take_in_order(group) == [*"3456"]

    def test_later_messages_wait_for_an_earlier_held_one(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", ordered=True)
        sent = publish_each(topic, *"123", group="g")
        (held,) = group.receive(1)
        rewind(group, sent[1]["sent_at"])
        assert group.receive() == []
        group.delete(held)
        assert take_in_order(group) == [*"23"]

    def test_a_later_held_message_ends_its_lease_first(
        self, topic: TestTopic, world: World
    ) -> None:
        group = topic.subscribe("group", ordered=True)
        sent = publish_each(topic, *"123", group="g")
        group.delete(*group.receive(2))
        (held,) = group.receive(1, visibility_timeout_seconds=60)
        assert held["body"] == "3"
        rewind(group, sent[0]["sent_at"])
        assert group.act("delete", held)["failed"][0]["code"] == "ReceiptExpired"
        assert group.receive() == []
        world.clock.pass_seconds(61)
        assert take_in_order(group) == [*"123"]

    def test_groups_do_not_wait_for_each_other(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", ordered=True)
        first, *_ = publish_each(topic, "a1", "a2", group="a")
        publish_each(topic, "b1", group="b")
        held = group.receive(1)[0]["body"][0]
        rewind(group, first["sent_at"])
        free = {"a": ["b1"], "b": ["a1", "a2"]}[held]
        assert take_in_order(group) == free
