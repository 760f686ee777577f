"""Clean-up by receives and deletes: bounded, after their own work, never failing a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue

from cirrusmq.receiving.cleanup import MOST_MESSAGES
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import World

CALL_SECONDS = 0.01
"""The duration of a call of the store."""


@pytest.fixture
def slow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store whose calls take their time."""
    execute = world.engine.execute

    def take_time(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        world.clock.pass_seconds(CALL_SECONDS)
        return execute(operation, request)

    monkeypatch.setattr(world.engine, "execute", take_time)


def throttle(world: World, monkeypatch: pytest.MonkeyPatch, *operations: str) -> None:
    execute = world.engine.execute

    def refuse(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if operation in operations:
            raise EngineError("ThrottlingException", "too much")
        return execute(operation, request)

    monkeypatch.setattr(world.engine, "execute", refuse)


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


def test_receives_chew_through_them_a_few_each(world: World, make_queue: MakeQueue) -> None:
    queue = make_strict(make_queue)
    poison(world, queue, 500)
    dead = TestQueue(queue.client, "dead")

    receives = 0
    while queue.counts():
        before = dead.counts().get("active", 0)
        assert queue.receive() == []
        assert 0 < dead.counts()["active"] - before <= MOST_MESSAGES
        receives += 1
        world.clock.pass_seconds(0.1)

    assert receives == -(-500 // MOST_MESSAGES)
    assert dead.counts() == {"active": 500}


@pytest.mark.usefixtures("slow")
def test_a_parcel_that_another_environment_changed_does_not_hold_an_environment_up(
    world: World, make_queue: MakeQueue
) -> None:
    """A receive has the time for one message, and the first of the parcel is gone by now."""
    queue = make_strict(make_queue)
    dead = TestQueue(queue.client, "dead")
    queue.send("a", "b")
    queue.receive(visibility_timeout_seconds=1)
    world.clock.pass_seconds(2)
    with pytest.MonkeyPatch.context() as patch:
        throttle(world, patch, "TransactWriteItems")
        queue.receive()  # this environment remembers the parcel as it was
    world.clock.pass_seconds(10)
    remembered = dict(world.core.memories)
    world.core.memories.clear()
    queue.receive()  # another one gives the first message up
    assert dead.counts() == {"active": 1}
    world.core.memories.update(remembered)

    for _ in range(3):
        queue.receive()
        world.clock.pass_seconds(10)

    assert dead.counts() == {"active": 2}


def test_they_are_met_again_when_an_environment_ends(world: World, make_queue: MakeQueue) -> None:
    queue = make_strict(make_queue)
    poison(world, queue, 300)
    receives = 0
    while queue.counts():
        world.core.memories.clear()
        queue.receive()
        receives += 1
        world.clock.pass_seconds(30)

    assert receives < 40


@pytest.mark.parametrize("ordered", [False, True])
def test_an_error_in_it_fails_no_receive(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    queue = make_strict(make_queue, ordered=ordered)
    poison(world, queue, 40)
    queue.send("healthy", group="g")
    throttle(world, monkeypatch, "TransactWriteItems")

    received = queue.receive(visibility_timeout_seconds=600)

    assert [message["body"] for message in received] == ["healthy"]
    monkeypatch.undo()
    for _ in range(10):
        world.clock.pass_seconds(6)
        queue.receive()
    assert TestQueue(queue.client, "dead").counts() == {"active": 40}


def test_an_error_in_what_a_delete_tidies_up_does_not_fail_it(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.send("a", "b")
    a, b = queue.receive()
    queue.delete(a)
    throttle(world, monkeypatch, "DeleteItem")

    queue.delete(b)

    assert queue.counts() == {}
    monkeypatch.undo()
    for _ in range(3):
        queue.receive()
    assert [item for item in world.items() if item["pk"]["S"].startswith("Q#")] == []


def test_an_error_in_what_a_move_tidies_up_does_not_fail_it(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_strict(make_queue)
    queue.send("a", "b")
    a, b = queue.receive()
    queue.delete(a)
    world.clock.pass_seconds(161)
    throttle(world, monkeypatch, "DeleteItem")

    assert queue.act("dead-letter", b)["failed"] == []


def test_without_a_place_to_go_messages_are_received_on(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_strict(make_queue)
    queue.send("x")
    queue.receive()
    world.clock.pass_seconds(31)
    monkeypatch.setattr("cirrusmq.lifecycle.dead_letters.dead_letter_queue", lambda *_: None)

    assert [message["receive_count"] for message in queue.receive()] == [2]


def test_a_message_that_was_purged_since_a_look_does_not_become_a_dead_letter(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_strict(make_queue)
    poison(world, queue, 1)
    with monkeypatch.context() as patch:
        throttle(world, patch, "TransactWriteItems")
        queue.receive()
    world.clock.pass_seconds(6)  # as long as a refused clean-up waits
    queue.start("purge")

    queue.receive()  # before the purge comes by the message and removes it

    world.settle()
    assert TestQueue(queue.client, "dead").bodies() == []
