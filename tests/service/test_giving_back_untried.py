"""Giving back what nobody began to handle: the receive does not count."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, to_ms
from tests.service.topics import TestTopic

from cirrusmq.base import limits
from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, World

AGES = [0, 120]
"""Seconds from the send to the receive: given back in place, and under a later key."""


def count(message: Message) -> int:
    """The receive count that a consumer sees."""
    shown: int = message["receive_count"]
    return shown


def poisoned(limit: int = 1) -> dict[str, Any]:
    return {"dead_letter": {"queue": "dead", "max_receives": limit}}


@pytest.mark.parametrize("age", AGES)
def test_its_receive_count_is_as_before_the_receive(
    world: World, queue: TestQueue, age: int
) -> None:
    queue.send("a", "b", "c")
    world.clock.pass_seconds(age)
    held = {message["body"]: message for message in queue.receive()}

    queue.give_back(held["a"], held["b"], tried=False)
    queue.give_back(held["c"])

    world.clock.pass_seconds(5)
    again = queue.receive_all()
    assert {message["body"]: count(message) for message in again} == {"a": 1, "b": 1, "c": 2}


@pytest.mark.parametrize("age", AGES)
def test_receives_before_it_stay_counted(world: World, queue: TestQueue, age: int) -> None:
    queue.send("a")
    world.clock.pass_seconds(age)
    for tried, expected in ((True, 1), (False, 2), (False, 2), (True, 2), (False, 3), (True, 3)):
        (held,) = queue.receive_all()
        assert count(held) == expected
        queue.give_back(held, tried=tried)
        world.clock.pass_seconds(4)


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("kind", ["plain", "ordered", "fair"])
def test_it_never_becomes_a_dead_letter_by_count_and_keeps_its_place(
    world: World, dead: TestQueue, make_queue: MakeQueue, kind: str, age: int
) -> None:
    queue = make_queue(**poisoned(), **({} if kind == "plain" else {kind: True}))
    for body in "abc":
        queue.send(body, group="g")
        world.clock.pass_seconds(0.01)
    world.clock.pass_seconds(age)
    for _ in range(5):
        held = queue.receive_all()
        assert [count(message) for message in held] == [1, 1, 1]
        if kind == "ordered":
            assert [message["body"] for message in held] == ["a", "b", "c"]
        queue.give_back(*held, tried=False)
        world.clock.pass_seconds(4)

    assert dead.counts() == {}
    assert queue.bodies() == ["a", "b", "c"]


def test_a_message_given_back_untried_forever_is_a_dead_letter_in_the_end(
    monkeypatch: pytest.MonkeyPatch, world: World, dead: TestQueue, make_queue: MakeQueue
) -> None:
    monkeypatch.setattr(limits, "UNTRIED_RECEIVES", 3)
    queue = make_queue(**poisoned(2))
    queue.send("a")
    counts = []
    while held := queue.receive():
        counts.append(count(held[0]))
        queue.give_back(*held, tried=False)
        world.clock.pass_seconds(4)

    assert counts == [1, 1, 1, 1, 2]
    world.settle()
    (letter,) = dead.receive()
    assert letter["dead_letter"]["receive_count"] == 2


@pytest.mark.parametrize("age", AGES)
def test_a_receipt_does_it_once(world: World, queue: TestQueue, age: int) -> None:
    queue.send("a")
    world.clock.pass_seconds(age)
    queue.give_back(*queue.receive())
    world.clock.pass_seconds(4)
    (held,) = queue.receive()
    queue.give_back(held, tried=False)
    before = world.items()

    for _ in range(2):
        assert queue.act("give-back", held, tried=False)["failed"][0]["code"] == "ReceiptExpired"
    assert world.items() == before
    world.clock.pass_seconds(4)
    assert [count(message) for message in queue.receive()] == [2]


def test_an_expired_lease_may_still_be_given_back(world: World, queue: TestQueue) -> None:
    queue.send("a")
    (held,) = queue.receive(visibility_timeout_seconds=1)
    world.clock.pass_seconds(20)

    queue.give_back(held, tried=False)

    world.clock.pass_seconds(4)
    assert [count(message) for message in queue.receive()] == [1]


@pytest.mark.parametrize(
    ("given", "seconds"), [({}, 0), ({"delay_seconds": 7}, 7), ({"delay_seconds": 0}, 0)]
)
def test_it_does_not_wait_for_a_retry(
    world: World, dead: TestQueue, make_queue: MakeQueue, given: dict[str, int], seconds: int
) -> None:
    retry = {"policy": "custom", "waits": [100, 200]}
    queue = make_queue(retry=retry, **poisoned(9))
    queue.send("a")
    (shown,) = queue.give_back(*queue.receive(), tried=False, **given)
    assert to_ms(shown["visible_at"]) == world.clock.now_ms() + 1000 * seconds
    world.clock.pass_seconds(seconds)

    # The retry after it is the first one.
    (shown,) = queue.give_back(*queue.receive())

    assert to_ms(shown["visible_at"]) == world.clock.now_ms() + 100_000


def test_a_finite_policy_counts_only_tried_receives(world: World, topic: TestTopic) -> None:
    topic.client.put("/queues/dead", {})
    retry = {"policy": "custom", "waits": [1]}
    group = topic.subscribe("group", retry=retry, dead_letter_queue="dead")
    topic.publish("a")
    world.settle()
    for _ in range(4):
        (held,) = group.receive()
        assert count(held) == 1
        group.give_back(held, tried=False)
        world.clock.pass_seconds(4)
    for number in (1, 2):
        (held,) = group.receive()
        assert count(held) == number
        group.give_back(held)
        world.clock.pass_seconds(4)

    assert group.receive() == []
    world.settle()
    (letter,) = TestQueue(topic.client, "dead").receive()
    assert letter["dead_letter"] | {"dead_at": ""} == {
        "source_queue": "news",
        "subscription": "group",
        "receive_count": 2,
        "dead_at": "",
        "reason": "retries",
    }


def test_a_receiver_of_the_queue_has_counts_of_its_own(world: World, queue: TestQueue) -> None:
    queue.add_receiver("audit")
    queue.send("a")
    world.settle()
    queue.give_back(*queue.receive(receiver="audit"), tried=False)
    queue.give_back(*queue.receive())
    world.clock.pass_seconds(4)

    assert [count(message) for message in queue.receive(receiver="audit")] == [1]
    assert [count(message) for message in queue.receive()] == [2]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_rewound_message_was_neither_received_nor_given_back(
    world: World, dead: TestQueue, make_queue: MakeQueue, whole: bool, ordered: bool
) -> None:
    """`whole`: from the archive; else from a parcel in which another message is left."""
    queue = make_queue(rewind_seconds=3_600, ordered=ordered, **poisoned(2))
    queue.send("a", "b", group="g")
    queue.give_back(*queue.receive(), tried=False)
    world.clock.pass_seconds(1)
    held = queue.receive_all()
    queue.delete(*(held if whole else [each for each in held if each["body"] == "a"]))
    world.clock.pass_seconds(31)

    queue.run("rewind", to=format_time(world.clock.now_ms() - 3_000_000))

    world.clock.pass_seconds(31)
    again = {message["body"]: count(message) for message in queue.receive_all()}
    assert again["a"] == 1
    world.clock.pass_seconds(31)
    again = {message["body"]: count(message) for message in queue.receive_all()}
    assert again["a"] == 2
    world.clock.pass_seconds(31)
    queue.receive_all()
    world.settle()
    assert "a" in dead.bodies()


@pytest.mark.parametrize("age", AGES)
def test_a_dead_letter_says_how_often_it_was_tried(
    world: World, dead: TestQueue, make_queue: MakeQueue, age: int
) -> None:
    queue = make_queue(dead_letter={"queue": "dead", "max_receives": 2, "max_age_seconds": 300})
    queue.send("a")
    world.clock.pass_seconds(age)
    for tried in (False, True, False):
        queue.give_back(*queue.receive(), tried=tried)
        world.clock.pass_seconds(4)
    world.clock.pass_seconds(300)
    queue.receive()
    world.settle()

    (letter,) = dead.receive()

    assert letter["dead_letter"]["receive_count"] == 1
    assert count(letter) == 1


def test_one_too_old_when_given_back_keeps_its_count(
    world: World, dead: TestQueue, make_queue: MakeQueue
) -> None:
    queue = make_queue(
        visibility_timeout_seconds=400,
        dead_letter={"queue": "dead", "max_receives": 2, "max_age_seconds": 300},
    )
    queue.send("a")
    held = queue.receive()
    world.clock.pass_seconds(301)

    queue.give_back(*held, tried=False)

    (letter,) = dead.receive()
    assert letter["dead_letter"]["receive_count"] == 0


def test_a_look_up_and_a_peek_show_the_same_count(alice: Client, queue: TestQueue) -> None:
    (sent,) = queue.send("a")
    queue.give_back(*queue.receive(), tried=False)

    (peeked,) = queue.peek()
    found = alice.get(f"{queue.path}/messages/{sent['id']}").json

    assert count(peeked) == count(found) == 0


@pytest.mark.parametrize("age", AGES)
def test_it_is_no_unreceived_message(
    world: World, alice: Client, queue: TestQueue, age: int
) -> None:
    """A consumer saw it, so that its sender cannot take it back."""
    (sent,) = queue.send("a")
    world.clock.pass_seconds(age)
    queue.give_back(*queue.receive(), tried=False, delay_seconds=3)

    assert queue.counts() == {"inactive": 1}
    reply = alice.delete(f"{queue.path}/messages/{sent['id']}")
    assert reply.status in (404, 409)
