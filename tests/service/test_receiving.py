"""Receiving: how many, how long it waits, repeating a receive, peeking."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from tests.service.conftest import MakeQueue, TestQueue, to_ms

from cirrusmq.base import ulid
from cirrusmq_local.testing import Reply, World


def post(queue: TestQueue, **request: object) -> Reply:
    return queue.client.post(f"{queue.path}/messages/receive", request)


def after(
    world: World, monkeypatch: pytest.MonkeyPatch, seconds: float, happen: Callable[[], object]
) -> None:
    """Have something happen once, so many seconds into a wait."""
    sleep, due_ms = world.clock.sleep, world.clock.now_ms() + 1000 * seconds

    def sleep_and_look(pause_seconds: float) -> None:
        nonlocal due_ms
        sleep(pause_seconds)
        if world.clock.now_ms() >= due_ms:
            due_ms = math.inf
            happen()

    monkeypatch.setattr(world.clock, "sleep", sleep_and_look)


def attempt(world: World, seconds: float = 0) -> str:
    at_ms = world.clock.now_ms() + round(seconds * 1000)
    return ulid.encode(at_ms, random.Random(at_ms).randbytes(10))


def test_a_receive_answers_one_message_unless_it_says_more(queue: TestQueue) -> None:
    queue.send(*"abcd")

    assert len(post(queue).json["messages"]) == 1
    assert len(post(queue, max=2).json["messages"]) == 2
    assert len(post(queue, max=16).json["messages"]) == 1


def test_messages_of_one_send_lie_together(queue: TestQueue) -> None:
    for _ in range(5):
        queue.send(*"abcdefghijklmnop")

    received = queue.receive(16)

    assert sorted(message["body"] for message in received) == list("abcdefghijklmnop")


def test_no_message_is_held_by_two_receivers(queue: TestQueue) -> None:
    for _ in range(20):
        queue.send(*"abcde")

    ids = [message["id"] for message in queue.receive_all()]

    assert len(ids) == len(set(ids)) == 100


def test_every_partition_is_looked_at(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(partitions=40)
    for _ in range(20):
        queue.send("x")
        world.clock.pass_seconds(0.001)

    for left in range(20, 0, -1):
        reply = post(queue, max=1, wait_seconds=0.001)
        assert len(reply.json["messages"]) == 1, left


def test_an_answer_stays_below_the_limit_of_a_function(make_queue: MakeQueue) -> None:
    queue = make_queue(max_message_bytes=262_144)
    for _ in range(6):
        assert queue.try_send([{"body": "\1" * 174_000}]).status == 201

    sizes = []
    while messages := (reply := post(queue, max=16, wait_seconds=0)).json["messages"]:
        sizes.append((len(messages), len(reply.text)))

    assert sum(count for count, _ in sizes) == 6
    assert max(size for _, size in sizes) < 5_000_000


class TestWaiting:
    def test_an_empty_receive_waits_its_time_and_answers_an_empty_list(
        self, world: World, queue: TestQueue
    ) -> None:
        for seconds in (0, 0.05, 1, 7.5):
            before = world.clock.now_ms()
            assert post(queue, wait_seconds=seconds).json == {"messages": []}
            assert world.clock.now_ms() - before == 1000 * seconds

    @pytest.mark.parametrize("seconds", [0, 0.25, 3])
    def test_without_a_wait_the_queues_counts(
        self, world: World, make_queue: MakeQueue, seconds: float
    ) -> None:
        queue = make_queue(receive_wait_seconds=seconds)
        before = world.clock.now_ms()

        post(queue)

        assert world.clock.now_ms() - before == 1000 * seconds

    def test_a_longer_wait_is_cut_to_the_rest_of_the_call(
        self, world: World, queue: TestQueue
    ) -> None:
        before = world.clock.now_ms()

        assert post(queue, wait_seconds=30).json == {"messages": []}

        assert 20_000 < world.clock.now_ms() - before < 30_000

    def test_the_call_returns_as_soon_as_a_message_can_be_returned(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("soon", delay_seconds=5)
        before = world.clock.now_ms()

        (message,) = post(queue, wait_seconds=20).json["messages"]

        assert message["body"] == "soon"
        assert 5_000 <= world.clock.now_ms() - before <= 6_000

    def test_a_lease_ending_meanwhile_gives_its_message(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("x")
        queue.receive(visibility_timeout_seconds=3)
        before = world.clock.now_ms()

        assert len(post(queue, wait_seconds=20).json["messages"]) == 1
        assert 3_000 <= world.clock.now_ms() - before <= 4_000

    @pytest.mark.parametrize(
        ("call", "receiver", "code"),
        [
            ("POST /queues/orders/purge", "default", None),
            ("DELETE /queues/orders", "default", "QueueNotFound"),
            ("DELETE /queues/orders/receivers/copy", "copy", "ReceiverNotFound"),
        ],
    )
    def test_a_message_removed_during_the_wait_does_not_come(
        self,
        world: World,
        queue: TestQueue,
        monkeypatch: pytest.MonkeyPatch,
        call: str,
        receiver: str,
        code: str | None,
    ) -> None:
        queue.add_receiver("copy")
        queue.send("removed", delay_seconds=10)
        world.settle()
        after(world, monkeypatch, 5, lambda: queue.client.call(*call.split()))

        reply = post(queue, wait_seconds=20, receiver=receiver)

        assert (reply.code, reply.json.get("messages", [])) == (code, [])

    def test_a_wait_at_a_deleted_queue_gets_nothing_of_a_new_one_of_its_name(
        self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def delete_and_make_anew() -> None:
            queue.client.delete(queue.path)
            queue.client.put(queue.path)
            queue.send("new")

        queue.send("old", delay_seconds=10)
        after(world, monkeypatch, 5, delete_and_make_anew)

        assert post(queue, wait_seconds=20).json == {"messages": []}
        assert queue.bodies() == ["new"]

    def test_a_message_at_hand_is_answered_at_once(self, world: World, queue: TestQueue) -> None:
        queue.send("x")
        before = world.clock.now_ms()

        post(queue, wait_seconds=20)

        assert world.clock.now_ms() == before


class TestRepeats:
    def test_a_repeat_answers_the_same_messages_with_the_same_receipts(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(partitions=8)
        queue.send(*"abc")
        queue.send(*"def")  # in another partition perhaps, which may come first
        token = attempt(world)
        first = queue.receive(3, attempt=token)
        assert len(first) == 3
        before = world.items()
        world.clock.pass_seconds(29.999)

        assert queue.receive(16, attempt=token, repeat=True) == first
        assert world.items() == before
        queue.delete(*first)

    def test_it_answers_only_messages_still_held_by_the_first(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send(*"abcd")
        token = attempt(world)
        first = queue.receive(attempt=token)
        queue.delete(first[0])
        queue.give_back(first[1], delay_seconds=10)

        assert queue.receive(attempt=token, repeat=True) == first[2:]

    def test_without_a_first_it_acts_as_one(self, world: World, queue: TestQueue) -> None:
        queue.send("a")
        token = attempt(world)

        first = queue.receive(attempt=token, repeat=True)

        assert [message["body"] for message in first] == ["a"]
        assert queue.receive(attempt=token, repeat=True) == first

    def test_after_the_lease_it_acts_as_a_first(self, world: World, queue: TestQueue) -> None:
        queue.send("a")
        token = attempt(world)
        (first,) = queue.receive(attempt=token)
        world.clock.pass_seconds(30)

        (second,) = queue.receive(attempt=token, repeat=True)

        assert (second["id"], second["receive_count"]) == (first["id"], 2)
        assert second["receipt"] != first["receipt"]

    def test_without_repeat_an_attempt_takes_other_messages(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("a")
        token = attempt(world)
        queue.receive(attempt=token)

        assert queue.receive(attempt=token) == []
        assert queue.receive(repeat=False) == []

    def test_another_key_or_receiver_is_another_first(self, world: World, queue: TestQueue) -> None:
        queue.add_receiver("copy")
        queue.send("a")
        world.settle()
        token = attempt(world)
        queue.receive(attempt=token)

        other = world.client("alice")

        assert other.receive("orders", attempt=token, repeat=True) == []
        assert len(queue.receive(receiver="copy", attempt=token, repeat=True)) == 1

    def test_an_ordered_queue_repeats_receives_too(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(ordered=True)
        queue.send("a", "b", group="g")
        token = attempt(world)
        first = queue.receive(attempt=token)

        assert queue.receive(attempt=token, repeat=True) == first
        assert len(first) == 2


class TestPeeking:
    def test_it_shows_active_messages_and_claims_nothing(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("held")
        (held,) = queue.receive()
        queue.give_back(held)
        (held,) = queue.receive()
        queue.send("delayed", delay_seconds=9)
        queue.send("a", "b", tags=["t"])
        before = world.items()

        peeked = queue.peek()

        assert sorted(message["body"] for message in peeked) == ["a", "b"]
        assert all("receipt" not in message for message in peeked)
        assert all("first_received_at" not in message for message in peeked)
        assert {message["receive_count"] for message in peeked} == {0}
        assert world.items() == before
        world.clock.pass_seconds(30)
        assert {message["receive_count"] for message in queue.peek()} == {0, 2}

    def test_it_shows_one_message_unless_it_says_more(self, queue: TestQueue) -> None:
        queue.send(*"abcdefghijklmnop")
        path = f"{queue.path}/messages/peek"

        assert len(queue.client.post(path).json["messages"]) == 1
        assert len(queue.peek(16)) == 16


def test_a_wait_and_a_timeout_count_from_the_moment_of_the_claim(
    world: World, queue: TestQueue
) -> None:
    queue.send("x", delay_seconds=2)

    (message,) = post(queue, wait_seconds=10, visibility_timeout_seconds=5).json["messages"]

    assert to_ms(message["visible_at"]) == world.clock.now_ms() + 5_000
