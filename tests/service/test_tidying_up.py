"""Clean-up: receives name it to `replay`, deletes do theirs behind their work; it fails no call."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, bodies
from tests.service.crashes import slow_store
from tests.service.faults import Throttled
from tests.service.topics import TestTopic

from cirrusmq.lifecycle.chore_memory import MAX_AT_ONCE
from cirrusmq.receiving.ordered_pages import MAX_MOVES
from cirrusmq_local.testing import World

CALL_SECONDS = 0.01
"""The duration of a call of the store."""


@pytest.fixture
def slow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store whose calls take their time."""
    slow_store(world, monkeypatch, CALL_SECONDS)


def throttle(world: World, operation: str) -> Throttled:
    return Throttled(world, lambda called, _: called == operation)


def make_strict(make_queue: MakeQueue, **attributes: Any) -> TestQueue:
    make_queue("dead", ordered=attributes.get("ordered", False))
    dead_letter = {"queue": "dead", "max_receives": 1}
    return make_queue(partitions=1, dead_letter=dead_letter, **attributes)


def poison(world: World, queue: TestQueue, count: int) -> None:
    """Put messages into the queue that were received as often as they may be."""
    queue.send("poison", group="0")
    queue.receive(visibility_timeout_seconds=1)
    world.clock.pass_seconds(2)
    (item,) = (item for item in world.items() if item["pk"]["S"].startswith("Q#"))
    behind = item["sk"]["S"][13:]
    ordered = "#" not in item["sk"]["S"][:14]
    for number in range(1, count):
        sk = (
            f"{number:024x}#{1:020d}"
            if ordered
            else f"{world.clock.now_ms() - number:013d}{behind}"
        )
        world.engine.execute(
            "PutItem", {"TableName": world.tables.messages, "Item": item | {"sk": {"S": sk}}}
        )


@pytest.mark.long
@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("ordered", [False, True])
def test_thousands_of_messages_to_be_given_up_hold_no_receive_up(
    world: World, make_queue: MakeQueue, ordered: bool
) -> None:
    queue = make_strict(make_queue, ordered=ordered)
    poison(world, queue, 3_500)
    queue.send("healthy", group="g")
    begun_ms = world.clock.now_ms()

    # A look at an ordered queue begins anywhere; this one behind the groups to be given up.
    world.random.seed(4)
    request = {"max": 16, "wait_seconds": 0.2}
    reply = queue.client.post(f"{queue.path}/messages/receive", request)

    assert reply.status == 200
    assert [message["body"] for message in reply.json["messages"]] == ["healthy"]
    assert world.clock.now_ms() - begun_ms < 4_000


@pytest.mark.long
def test_a_receive_names_them_once_a_second_and_replay_moves_them(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_strict(make_queue)
    poison(world, queue, 1_200)
    dead = TestQueue(queue.client, "dead")

    moved = []
    for _ in range(5):
        assert queue.receive() == queue.receive() == []  # the second one names nothing
        world.settle()
        moved.append(dead.counts().get("active", 0))
        world.clock.pass_seconds(1)

    assert MAX_AT_ONCE == 500
    assert moved[-1] == 1_200
    assert all(after - before <= 500 for before, after in itertools.pairwise(moved))
    assert queue.counts() == {}


def test_receives_of_an_ordered_queue_move_a_few_each(world: World, make_queue: MakeQueue) -> None:
    queue = make_strict(make_queue, ordered=True)
    poison(world, queue, 100)
    dead = TestQueue(queue.client, "dead")

    receives = 0
    while queue.counts():
        before = dead.counts().get("active", 0)
        assert queue.receive() == []
        assert dead.counts()["active"] - before <= MAX_MOVES
        receives += 1
        world.clock.pass_seconds(0.1)

    assert receives < 20
    assert not world.invoked


@pytest.mark.parametrize("fair", [False, True])
def test_an_event_twice_moves_each_message_once(
    world: World, make_queue: MakeQueue, fair: bool
) -> None:
    queue = make_strict(make_queue, fair=fair)
    poison(world, queue, 1)
    queue.receive()
    (named,) = world.invoked
    assert named[0] == "replay"
    world.invoked.append(named)

    world.settle()

    dead = TestQueue(queue.client, "dead")
    assert (queue.counts(), dead.counts()) == ({}, {"active": 1})


def test_a_lost_event_is_made_up_for_by_a_later_look(world: World, make_queue: MakeQueue) -> None:
    queue = make_strict(make_queue)
    poison(world, queue, 300)
    queue.receive()
    world.invoked.clear()
    begun_ms = world.clock.now_ms()

    world.clock.pass_seconds(4.9)
    queue.receive()
    assert not world.invoked
    while queue.counts():
        world.clock.pass_seconds(5)
        queue.receive()
        world.settle()

    assert world.clock.now_ms() - begun_ms <= 40_000
    assert TestQueue(queue.client, "dead").counts() == {"active": 300}


def test_a_receive_does_not_fail_because_no_event_can_be_sent(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_strict(make_queue)
    poison(world, queue, 1)
    queue.send("healthy")

    def refuse(*_: object) -> None:
        raise ConnectionError("no route")

    with monkeypatch.context() as patch:
        patch.setattr(type(world.core), "invoke", refuse)
        assert bodies(queue.receive(visibility_timeout_seconds=600)) == ["healthy"]
    world.clock.pass_seconds(5)
    queue.receive()
    world.settle()

    assert TestQueue(queue.client, "dead").counts() == {"active": 1}


def test_chores_of_deleted_or_unreadable_groups_fail_no_replay(
    world: World, topic: TestTopic
) -> None:
    retry = {"policy": "unordered", "max_retries": 1}
    groups = [topic.subscribe(name, retry=retry) for name in ("kept", "gone")]
    topic.publish("sick")
    for _ in range(3):
        for group in groups:
            group.receive(visibility_timeout_seconds=1)
        world.clock.pass_seconds(400)
    topic.client.delete(groups[1].path)

    throttled = throttle(world, "BatchGetItem")
    world.settle()
    throttled.end()
    assert not world.unprocessed.bodies()
    groups[0].receive()
    world.settle()

    queues = [each["name"] for each in topic.client.get("/queues").json["queues"]]
    assert queues == [f"dlq-{groups[0].id}"]


def test_a_replay_of_the_release_before_takes_the_event_of_a_receive(
    world: World, make_queue: MakeQueue
) -> None:
    """It knows an event with a resource and a partition, and deals with what is too old there."""
    queue = make_strict(make_queue)
    poison(world, queue, 1)
    queue.receive()

    ((role, event),) = world.invoked

    assert (role, set(event)) == ("replay", {"aged"})
    assert event["aged"].keys() - {"parcels"} == {"resource", "partition"}


def test_a_receive_of_a_group_makes_no_queue(world: World, topic: TestTopic) -> None:
    group = topic.subscribe("group", retry={"policy": "unordered", "max_retries": 1})
    topic.publish("sick")
    before = world.items("directory")

    for _ in range(4):
        group.receive(visibility_timeout_seconds=1)
        world.clock.pass_seconds(400)
        assert world.items("directory") == before

    world.settle()
    assert group.show()["dead_letter_queue"] == f"dlq-{group.id}"
    assert TestQueue(topic.client, f"dlq-{group.id}").bodies() == ["sick"]


def test_a_receive_of_an_ordered_group_makes_no_queue_and_its_order_waits(
    world: World, topic: TestTopic
) -> None:
    retry = {"policy": "unordered", "max_retries": 1}
    group = topic.subscribe("group", ordered=True, retry=retry)
    topic.publish("sick", "behind", group="g")
    received = []

    for _ in range(4):
        before = world.items("directory")
        received += [each["body"] for each in group.receive(1, visibility_timeout_seconds=1)]
        assert world.items("directory") == before
        world.clock.pass_seconds(400)

    assert received == ["sick", "sick"]
    world.settle()
    assert [each["body"] for each in group.receive()] == ["behind"]
    assert TestQueue(topic.client, f"dlq-{group.id}").bodies() == ["sick"]


@pytest.mark.few(1)
@pytest.mark.parametrize("ordered", [False, True])
def test_an_error_in_it_fails_no_receive(
    world: World, make_queue: MakeQueue, ordered: bool
) -> None:
    queue = make_strict(make_queue, ordered=ordered)
    poison(world, queue, 40)
    queue.send("healthy", group="g")
    throttled = throttle(world, "TransactWriteItems")

    received = queue.receive(visibility_timeout_seconds=43_200)

    world.settle()
    assert [message["body"] for message in received] == ["healthy"]
    throttled.end()
    for _ in range(10):
        world.clock.pass_seconds(6)
        queue.receive()
        world.settle()
    assert TestQueue(queue.client, "dead").counts() == {"active": 40}


def test_an_error_in_a_deletes_clean_up_does_not_fail_it(world: World, queue: TestQueue) -> None:
    queue.send("a", "b")
    a, b = queue.receive()
    queue.delete(a)
    throttled = throttle(world, "DeleteItem")

    queue.delete(b)

    assert queue.counts() == {}
    throttled.end()
    queue.receive()
    world.settle()
    assert [item for item in world.items() if item["pk"]["S"].startswith("Q#")] == []


def test_an_error_in_a_moves_clean_up_does_not_fail_it(world: World, make_queue: MakeQueue) -> None:
    queue = make_strict(make_queue)
    queue.send("a", "b")
    a, b = queue.receive()
    queue.delete(a)
    world.clock.pass_seconds(161)
    throttle(world, "DeleteItem")

    assert queue.act("dead-letter", b)["failed"] == []


def test_without_a_place_to_go_messages_are_received_on(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_strict(make_queue)
    queue.send("x")
    queue.receive()
    world.clock.pass_seconds(31)
    monkeypatch.setattr("cirrusmq.lifecycle.dead_letters.move.dead_letter_queue", lambda *_: None)

    assert [message["receive_count"] for message in queue.receive()] == [2]


def test_a_message_purged_since_a_look_does_not_become_a_dead_letter(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_strict(make_queue)
    poison(world, queue, 1)
    queue.receive()
    named = world.invoked.pop()
    queue.start("purge")
    world.invoked.appendleft(named)  # before the purge comes by the message and removes it

    world.settle()
    assert TestQueue(queue.client, "dead").bodies() == []
