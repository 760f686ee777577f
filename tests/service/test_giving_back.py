"""Giving messages back, and retry policies."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, to_ms

from cirrusmq_local.testing import World


def custom(*waits: float, **more: Any) -> dict[str, Any]:
    return {"policy": "custom", "waits": list(waits), **more}


@pytest.fixture
def retrying(make_queue: MakeQueue) -> TestQueue:
    """A queue whose messages wait 10 s, then 1,000 s, and then are dead."""
    make_queue("dead")
    dead_letter = {"queue": "dead", "max_receives": 1000}
    return make_queue("orders", retry=custom(10, 1_000), dead_letter=dead_letter)


@pytest.mark.parametrize("seconds", [None, 0, 1, 60, 61, 3_600, 43_200])
def test_a_message_given_back_is_hidden_for_the_delay(
    world: World, queue: TestQueue, seconds: int | None
) -> None:
    """Without a delay it is active at once, as with a delay of 0."""
    (sent,) = queue.send("a")
    (held,) = queue.receive()
    world.clock.pass_seconds(1)

    (given,) = queue.give_back(held, **({} if seconds is None else {"delay_seconds": seconds}))

    assert given["receipt"] == held["receipt"]
    assert to_ms(given["visible_at"]) == world.clock.now_ms() + 1000 * (seconds or 0)
    if seconds:
        assert queue.counts() == {"inactive": 1}
        world.clock.pass_seconds(seconds - 0.001)
        assert queue.receive() == queue.peek() == []
        world.clock.pass_seconds(0.001)
    assert queue.counts() == {"active": 1}
    (again,) = queue.receive()
    same = ("id", "body", "sent_at", "expires_at", "first_received_at")
    assert {name: again[name] for name in same} == {name: held[name] for name in same}
    assert again["id"] == sent["id"]
    assert again["receive_count"] == 2
    queue.delete(again)
    assert queue.counts() == {}


@pytest.mark.parametrize("seconds", [0, 60, 61])
def test_giving_back_ends_the_receipt(world: World, queue: TestQueue, seconds: int) -> None:
    queue.send("a")
    (held,) = queue.receive()
    queue.give_back(held, delay_seconds=seconds)
    before = world.items()

    for verb in ("delete", "give-back", "dead-letter"):
        assert queue.act(verb, held)["failed"][0]["code"] == "ReceiptExpired"
    assert queue.hold(held, 5)["failed"][0]["code"] == "ReceiptExpired"
    assert world.items() == before


def test_one_of_several_messages_given_back_leaves_the_others_held(
    world: World, queue: TestQueue
) -> None:
    queue.send("a", "b", "c", attributes={"n": "1"}, tags=["t"])
    held = {message["body"]: message for message in queue.receive()}
    queue.give_back(held["b"], delay_seconds=100)

    world.clock.pass_seconds(29)
    assert queue.receive() == []
    queue.delete(held["a"], held["c"])
    world.clock.pass_seconds(71)

    (again,) = queue.receive()
    kept = ("id", "body", "attributes", "tags", "sent_at", "expires_at")
    assert {name: again[name] for name in kept} == {name: held["b"][name] for name in kept}


def test_a_large_message_given_back_for_long_keeps_its_body(world: World, queue: TestQueue) -> None:
    body = "".join(map(str, range(10_000)))
    queue.send("first", body, "last")
    held = {message["body"]: message for message in queue.receive()}
    queue.give_back(held[body], delay_seconds=1_000)
    queue.delete(held["first"], held["last"])

    world.clock.pass_seconds(1_000)

    assert queue.bodies() == [body]


def test_a_message_waits_no_longer_than_it_lives(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(message_retention_seconds=100)
    queue.send("a")
    (held,) = queue.receive()

    (given,) = queue.give_back(held, delay_seconds=43_200)

    assert given["visible_at"] == held["expires_at"]
    world.clock.pass_seconds(100)
    assert queue.receive() == []


def test_messages_waiting_long_do_not_stand_in_the_way(world: World, queue: TestQueue) -> None:
    queue.send(*"abcdefghijklmnop")
    queue.give_back(*queue.receive(), delay_seconds=7_200)
    queue.send("next")

    assert queue.bodies() == ["next"]
    world.clock.pass_seconds(7_200)
    assert len(queue.receive_all()) == 17


class TestRetryPolicies:
    def test_a_message_stays_hidden_after_its_lease_ran_out(
        self, world: World, retrying: TestQueue
    ) -> None:
        retrying.send("a")
        (held,) = retrying.receive(visibility_timeout_seconds=5)

        assert to_ms(held["visible_at"]) == world.clock.now_ms() + 5_000
        world.clock.pass_seconds(14.999)
        assert retrying.receive() == []
        assert retrying.counts() == {"inactive": 1}
        world.clock.pass_seconds(0.001)
        assert retrying.counts() == {"active": 1}
        assert [message["receive_count"] for message in retrying.receive()] == [2]

    def test_a_message_given_back_without_a_time_waits_for_the_policys_next_wait(
        self, world: World, retrying: TestQueue
    ) -> None:
        retrying.send("a")
        for wait in (10, 1_000):
            (held,) = retrying.receive()
            (given,) = retrying.give_back(held)
            assert to_ms(given["visible_at"]) == world.clock.now_ms() + 1000 * wait
            world.clock.pass_seconds(wait - 0.001)
            assert retrying.receive() == []
            world.clock.pass_seconds(0.001)
        assert retrying.receive()[0]["receive_count"] == 3

    @pytest.mark.parametrize("seconds", [0, 1, 100])
    def test_a_delay_of_the_give_back_counts_before_the_policy(
        self, world: World, retrying: TestQueue, seconds: int
    ) -> None:
        retrying.send("a")
        retrying.give_back(*retrying.receive(), delay_seconds=seconds)
        if seconds:
            world.clock.pass_seconds(seconds - 0.001)
            assert retrying.receive() == []
            world.clock.pass_seconds(0.001)
        assert len(retrying.receive()) == 1

    @pytest.mark.parametrize("verb", ["delete", "give-back", "dead-letter", "visibility"])
    def test_a_receipt_has_ended_when_its_message_waits_for_a_retry(
        self, world: World, retrying: TestQueue, verb: str
    ) -> None:
        retrying.send("a", "b")
        held, _ = retrying.receive()
        world.clock.pass_seconds(30)

        answer = retrying.hold(held, 10) if verb == "visibility" else retrying.act(verb, held)

        assert [failed["code"] for failed in answer["failed"]] == ["ReceiptExpired"]
        world.clock.pass_seconds(10)
        assert len(retrying.receive_all()) == 2

    def test_the_last_wait_repeats_and_used_up_retries_end_in_the_dead_letter_queue(
        self, world: World, retrying: TestQueue
    ) -> None:
        (sent,) = retrying.send("a")
        received = 0
        for _ in range(20):
            received += len(retrying.receive(visibility_timeout_seconds=1))
            world.clock.pass_seconds(1_001)
        assert received == 3
        world.settle()

        (dead,) = TestQueue(retrying.client, "dead").receive()

        assert dead["id"] == sent["id"]
        assert dead["dead_letter"]["reason"] == "retries"
        assert dead["dead_letter"]["receive_count"] == 3

    def test_a_long_wait_after_a_lease_is_kept_exactly(
        self, world: World, retrying: TestQueue
    ) -> None:
        retrying.send("a")
        retrying.receive(visibility_timeout_seconds=1)
        world.clock.pass_seconds(11)
        retrying.receive(visibility_timeout_seconds=1)
        ready_in = 1 + 1_000.0
        for passed in (1, 100, 899.999):  # receives, of which one re-keys the message
            world.clock.pass_seconds(passed)
            ready_in -= passed
            assert retrying.receive() == []
            world.settle()
            assert retrying.counts() == {"inactive": 1}
        world.clock.pass_seconds(ready_in)
        assert retrying.receive()[0]["receive_count"] == 3

    def test_jitter_draws_a_share_of_each_wait(self, world: World, make_queue: MakeQueue) -> None:
        make_queue("dead")
        queue = make_queue(
            retry=custom(100, jitter=0.5), dead_letter={"queue": "dead", "max_receives": 9}
        )
        queue.send(*"abcdefghijklmnop")
        now_ms = world.clock.now_ms()
        given = queue.give_back(*queue.receive())
        waits = {to_ms(each["visible_at"]) - now_ms for each in given}

        assert len(waits) > 10
        assert all(50_000 <= wait <= 100_000 for wait in waits)

    def test_a_retry_policy_set_later_counts_from_the_next_receive(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        make_queue("dead")
        queue = make_queue()
        queue.send("a", "b")
        (held,) = queue.receive(1)
        queue.patch(retry=custom(100), dead_letter={"queue": "dead", "max_receives": 9})

        world.clock.pass_seconds(30)

        again = queue.receive()
        assert {message["receive_count"] for message in again} == {1, 2}
        world.clock.pass_seconds(129.999)
        assert queue.receive() == []
        world.clock.pass_seconds(0.001)
        left: list[Message] = queue.receive_all()
        assert [message["receive_count"] for message in left] == [2]
        assert held["id"] != left[0]["id"]

    @pytest.mark.parametrize("how", ["give-back", "visibility"])
    def test_without_its_retry_policy_a_queue_gives_messages_at_once(
        self, retrying: TestQueue, how: str
    ) -> None:
        retrying.send("a")
        (held,) = retrying.receive()
        retrying.patch(retry=None)

        if how == "give-back":
            retrying.give_back(held)
        else:
            retrying.hold(held, 0)

        assert len(retrying.receive()) == 1
