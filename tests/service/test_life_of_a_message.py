"""The life of a message: sent, delayed, active, inactive, deleted or expired, and its receipts."""

from __future__ import annotations

import re

import pytest
from tests.service.conftest import MakeQueue, TestQueue, to_ms

from cirrusmq_local.testing import World


def test_a_message_is_received_as_it_was_sent(world: World, queue: TestQueue) -> None:
    (sent,) = queue.send("hello")
    world.clock.pass_seconds(5)

    (message,) = queue.receive()

    receipt = message.pop("receipt")
    assert message == {
        "id": sent["id"],
        "body": "hello",
        "attributes": {},
        "tags": [],
        "sender": "alice",
        "receive_count": 1,
        "sent_at": sent["sent_at"],
        "first_received_at": "2026-11-18T11:06:45.000Z",
        "visible_at": "2026-11-18T11:07:15.000Z",
        "expires_at": "2026-11-22T11:06:40.000Z",
    }
    assert sent["sent_at"] == "2026-11-18T11:06:40.000Z"
    assert 1 <= len(receipt) <= 2_048


def test_an_id_says_msg_and_sorts_by_the_time_of_sending(world: World, queue: TestQueue) -> None:
    ids = []
    for _ in range(5):
        ids += [sent["id"] for sent in queue.send("a", "b", "c")]
        world.clock.pass_seconds(0.001)

    assert all(re.fullmatch(r"Msg-[0-9A-Z]+", message_id) for message_id in ids)
    assert ids == sorted(ids)
    assert len(set(ids)) == 15


def test_only_active_messages_are_received(world: World, queue: TestQueue) -> None:
    queue.send("once")

    assert len(queue.receive()) == 1
    assert queue.receive() == []
    world.clock.pass_seconds(29.999)
    assert queue.receive() == []
    world.clock.pass_seconds(0.001)
    assert len(queue.receive()) == 1


def test_a_message_received_again_keeps_its_id_and_counts(world: World, queue: TestQueue) -> None:
    (sent,) = queue.send("again")
    (first,) = queue.receive()
    world.clock.pass_seconds(30)

    (second,) = queue.receive()

    assert first["id"] == second["id"] == sent["id"]
    assert (first["receive_count"], second["receive_count"]) == (1, 2)
    assert second["first_received_at"] == first["first_received_at"]
    assert second["receipt"] != first["receipt"]


def test_a_deleted_message_never_returns(world: World, queue: TestQueue) -> None:
    queue.send("a", "b", "c")
    queue.delete(*queue.receive(2))

    world.clock.pass_seconds(3_600)

    assert len(queue.receive_all()) == 1
    world.clock.pass_seconds(345_600)
    assert queue.receive_all() == []


def test_counts_follow_the_states(world: World, queue: TestQueue) -> None:
    queue.send("delayed", delay_seconds=60)
    world.clock.pass_seconds(1)
    queue.send("a", "b", "c")
    assert queue.counts() == {"active": 3, "delayed": 1}
    held = queue.receive(1)
    assert queue.counts() == {"active": 2, "inactive": 1, "delayed": 1}
    queue.delete(*held)
    assert queue.counts() == {"active": 2, "delayed": 1}
    world.clock.pass_seconds(59)
    assert queue.counts() == {"active": 3}
    world.clock.pass_seconds(345_600)
    assert queue.counts() == {}


def test_counts_say_how_old_the_oldest_active_message_is(world: World, queue: TestQueue) -> None:
    queue.send("old")
    world.clock.pass_seconds(10)
    queue.send("young")
    world.clock.pass_seconds(5)

    assert queue.show()["counts"]["oldest_active_age_seconds"] == 15
    queue.delete(*[held for held in queue.receive_all() if held["body"] == "old"])
    world.clock.pass_seconds(30)
    assert queue.show()["counts"]["oldest_active_age_seconds"] == 35
    queue.delete(*queue.receive_all())
    assert queue.show()["counts"]["oldest_active_age_seconds"] == 0


@pytest.mark.parametrize("retention", [60, 86_400, 1_296_000])
def test_a_message_expires_a_retention_after_its_sending(
    world: World, make_queue: MakeQueue, retention: int
) -> None:
    queue = make_queue(message_retention_seconds=retention)
    queue.send("short-lived")
    world.clock.pass_seconds(retention - 0.001)
    assert len(queue.peek()) == 1

    world.clock.pass_seconds(0.001)

    assert queue.receive() == queue.peek() == []
    assert queue.counts() == {}


def test_an_inactive_message_expires_too(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(message_retention_seconds=60)
    queue.send("held")
    (held,) = queue.receive(visibility_timeout_seconds=3_600)

    assert held["visible_at"] == held["expires_at"]
    world.clock.pass_seconds(59.999)
    assert queue.hold(held, 3_600)["changed"][0]["visible_at"] == held["expires_at"]
    world.clock.pass_seconds(0.001)
    assert queue.receive() == []
    for verb in ("delete", "give-back", "dead-letter"):
        assert queue.act(verb, held)["failed"][0]["code"] == "ReceiptExpired"
    assert queue.hold(held, 1)["failed"][0]["code"] == "ReceiptExpired"


def test_delays_count_towards_the_retention(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(message_retention_seconds=60)
    queue.send("late", delay_seconds=59)
    world.clock.pass_seconds(59)

    (message,) = queue.peek()

    assert to_ms(message["expires_at"]) - to_ms(message["sent_at"]) == 60_000
    world.clock.pass_seconds(1)
    assert queue.receive() == []


@pytest.mark.parametrize(("before", "after"), [(60, 3_600), (3_600, 60)])
def test_another_retention_touches_only_messages_sent_afterwards(
    world: World, make_queue: MakeQueue, before: int, after: int
) -> None:
    queue = make_queue(message_retention_seconds=before)
    queue.send("sent before")
    queue.patch(message_retention_seconds=after)
    queue.send("sent after")

    world.clock.pass_seconds(61)

    assert [message["body"] for message in queue.peek()] == [
        "sent before" if before > after else "sent after"
    ]
    world.clock.pass_seconds(3_538.999)
    assert len(queue.peek()) == 1
    world.clock.pass_seconds(0.001)
    assert queue.peek() == []


def test_an_older_longer_retention_is_not_forgotten(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(message_retention_seconds=100_000)
    queue.send("long-lived")
    for seconds in (50_000, 60, 70, 60):
        queue.patch(message_retention_seconds=seconds)
        world.clock.pass_seconds(1_000)

    world.clock.pass_seconds(95_000)

    assert queue.bodies() == ["long-lived"]


class TestReceipts:
    @pytest.mark.parametrize("verb", ["delete", "give-back", "dead-letter", "visibility"])
    def test_a_stale_receipt_changes_nothing(
        self, world: World, make_queue: MakeQueue, verb: str
    ) -> None:
        make_queue("dead")
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 9})
        queue.send("a")
        (first,) = queue.receive()
        world.clock.pass_seconds(30)
        (second,) = queue.receive()
        before = world.items()

        answer = queue.hold(first, 0) if verb == "visibility" else queue.act(verb, first)

        (failed,) = answer.pop("failed")
        assert failed["code"] == "ReceiptExpired"
        assert list(answer.values()) == [[]]
        assert world.items() == before
        queue.delete(second)

    def test_a_receipt_works_after_its_lease_until_the_message_is_received_again(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("a", "b")
        held = queue.receive()
        world.clock.pass_seconds(1_000)

        queue.delete(held[0])
        assert len(queue.hold(held[1], 10)["changed"]) == 1

        assert queue.receive() == []
        world.clock.pass_seconds(10)
        (again,) = queue.receive()
        assert queue.act("delete", held[1])["failed"][0]["code"] == "ReceiptExpired"
        queue.delete(again)

    def test_a_deleted_messages_receipt_has_expired(self, queue: TestQueue) -> None:
        queue.send("a", "b")
        held = queue.receive()
        queue.delete(held[0])

        for verb in ("delete", "give-back", "dead-letter"):
            assert queue.act(verb, held[0])["failed"][0]["code"] == "ReceiptExpired"
        queue.delete(held[1])
        assert queue.act("delete", *held)["deleted"] == []

    def test_one_receipt_twice_in_a_call_is_answered_once(self, queue: TestQueue) -> None:
        queue.send("a")
        (held,) = queue.receive()

        assert queue.act("delete", held, held) == {"deleted": [held["receipt"]], "failed": []}

    def test_deletes_are_per_entry_and_answered_in_the_order_asked(self, queue: TestQueue) -> None:
        queue.send(*"abcdef")
        stale = queue.receive(3)
        queue.hold(stale[1], 0)
        (again,) = [held for held in queue.receive() if held["id"] == stale[1]["id"]]

        answer = queue.act("delete", stale[2], stale[1], stale[0])

        assert answer["deleted"] == [stale[2]["receipt"], stale[0]["receipt"]]
        assert [failed["receipt"] for failed in answer["failed"]] == [stale[1]["receipt"]]
        queue.delete(again)


class TestVisibility:
    @pytest.mark.parametrize("seconds", [20, 43_200], ids=["shorter", "longer"])
    def test_it_counts_from_the_request_not_from_the_old_deadline(
        self, world: World, queue: TestQueue, seconds: int
    ) -> None:
        queue.send("a")
        (held,) = queue.receive(visibility_timeout_seconds=100)
        world.clock.pass_seconds(10)

        (changed,) = queue.hold(held, seconds)["changed"]

        assert changed["receipt"] == held["receipt"]
        assert to_ms(changed["visible_at"]) == world.clock.now_ms() + 1000 * seconds
        world.clock.pass_seconds(seconds - 0.001)
        assert queue.receive() == []
        world.clock.pass_seconds(0.001)
        assert len(queue.receive()) == 1

    @pytest.mark.parametrize("retry", [None, {"policy": "unordered"}])
    def test_0_makes_a_message_active_at_once_and_ends_its_receipt(
        self, world: World, make_queue: MakeQueue, retry: dict[str, str] | None
    ) -> None:
        make_queue("dead")
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 9}, retry=retry)
        queue.send("a")
        (held,) = queue.receive()

        (changed,) = queue.hold(held, 0)["changed"]

        assert to_ms(changed["visible_at"]) == world.clock.now_ms()
        assert queue.counts() == {"active": 1}
        assert queue.hold(held, 5)["failed"][0]["code"] == "ReceiptExpired"
        (again,) = queue.receive()
        assert queue.act("delete", held)["failed"][0]["code"] == "ReceiptExpired"
        queue.delete(again)

    def test_changes_are_per_entry(self, queue: TestQueue) -> None:
        queue.send("a", "b")
        held = queue.receive()
        queue.delete(held[0])
        entries = [
            {"receipt": each["receipt"], "visibility_timeout_seconds": seconds}
            for each, seconds in zip(held, (5, 7), strict=True)
        ]

        reply = queue.client.post(f"{queue.path}/messages/visibility", {"entries": entries})

        assert [each["receipt"] for each in reply.json["failed"]] == [held[0]["receipt"]]
        assert [each["receipt"] for each in reply.json["changed"]] == [held[1]["receipt"]]


class TestWhoseTimeoutCounts:
    def test_the_receives_before_the_messages_before_the_queues(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(visibility_timeout_seconds=10)
        own = {"shortest": 1, "longest": 43_200}
        messages = [{"body": name, "visibility_timeout_seconds": s} for name, s in own.items()]
        queue.try_send([*messages, {"body": "none"}])

        def seconds(**fields: int) -> dict[str, int]:
            held = queue.receive(**fields)
            now_ms = world.clock.now_ms()
            for each in held:
                queue.hold(each, 0)
            return {each["body"]: (to_ms(each["visible_at"]) - now_ms) // 1000 for each in held}

        assert seconds() == {**own, "none": 10}
        assert seconds(visibility_timeout_seconds=30) == dict.fromkeys([*own, "none"], 30)


class TestDelays:
    def test_a_delayed_message_is_received_when_its_delay_is_over(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("late", delay_seconds=10)
        world.clock.pass_seconds(9.999)
        assert queue.receive() == queue.peek() == []
        assert queue.counts() == {"delayed": 1}

        world.clock.pass_seconds(0.001)

        assert queue.counts() == {"active": 1}
        assert queue.bodies() == ["late"]

    def test_a_message_has_the_queues_delay_or_its_own_0_included(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(delay_seconds=10)
        queue.try_send(
            [
                {"body": "queue's"},
                {"body": "none", "delay_seconds": 0},
                {"body": "own", "delay_seconds": 20},
            ]
        )

        assert queue.bodies() == ["none"]
        world.clock.pass_seconds(10)
        assert queue.bodies() == ["queue's"]
        world.clock.pass_seconds(10)
        assert queue.bodies() == ["own"]

    def test_a_delay_may_almost_reach_the_retention(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(message_retention_seconds=1_296_000)
        queue.send("latest possible", delay_seconds=1_295_999)

        refused = queue.try_send([{"body": "too late", "delay_seconds": 1_296_000}])

        assert refused.code == "InvalidParameter"
        assert refused.json["parameter"] == "messages[0].delay_seconds"
        world.clock.pass_seconds(1_295_999)
        assert queue.bodies() == ["latest possible"]

    @pytest.mark.few(2)
    def test_delayed_messages_do_not_stand_in_the_way(self, world: World, queue: TestQueue) -> None:
        for _ in range(63):
            queue.send(*("x" * 16), delay_seconds=3_600)
        assert queue.counts() == {"delayed": 1_008}

        queue.send("now")

        (now,) = queue.receive_all()
        assert now["body"] == "now"
        queue.delete(now)
        world.clock.pass_seconds(3_600)
        assert len(queue.receive_all()) == 1_008
