"""Ordered groups at whose beginning much has ended: dead letters, and what TTL has not removed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.topics import TestTopic

from cirrusmq.receiving.heads.items import read_mark
from cirrusmq_local.testing import World

DEAD = {"queue": "dead", "max_receives": 100}
KINDS = ["queue", "rewindable queue", "receiver", "subscription", "copies"]
MAX_UNITS = 12
"""Read units of one or two receives behind what ended long ago."""


class Group:
    """The messages of one group of an ordered source."""

    def __init__(self, kind: str, world: World, topic: TestTopic, make_queue: MakeQueue) -> None:
        self.world = world
        make_queue("dead")
        self.source: TestQueue
        self._of: dict[str, Any] = {}
        if kind == "subscription":
            self.source = topic.subscribe(ordered=True, dead_letter_queue="dead")
        else:
            kept = {"rewind_seconds": 86_400} if kind == "rewindable queue" else {}
            self.source = make_queue(ordered=True, dead_letter=DEAD, **kept)
        if kind == "receiver":
            self.source.add_receiver("audit")
            self._of = {"receiver": "audit"}
        if kind == "copies":
            topic.subscribe(protocol="queue", endpoint="orders")
        send_queue = TestQueue(self.source.client, "orders")
        by_topic = kind in ("subscription", "copies")
        self._send: Callable[..., Any] = topic.publish if by_topic else send_queue.send
        self._numbers = count()

    def send(self) -> str:
        """Send the group's next message, and answer its body."""
        body = f"m{next(self._numbers)}"
        self._send(body, group="g")
        self.world.settle()
        self.world.clock.pass_seconds(0.01)
        return body

    def receive(self, tries: int = 1) -> list[Message]:
        """Receive until something comes, so often at most."""
        for _ in range(tries):
            if received := self.source.receive(**self._of):
                return received
        return []

    def end(self, messages: int) -> None:
        """Send messages, each of which becomes a dead letter before the next one is sent."""
        for _ in range(messages):
            body = self.send()
            received = self.receive(tries=4)
            assert [message["body"] for message in received] == [body]
            assert self.source.act("dead-letter", *received)["failed"] == []

    def marks(self) -> list[int]:
        """The versions of the marks that are stored, of which each was one write."""
        items = self.world.items()
        heads = [each for each in items if each["pk"]["S"][0] == "H" and each["sk"]["S"][0] == "H"]
        return [read_mark(each).version for each in heads]


@pytest.fixture(params=KINDS)
def group(
    request: pytest.FixtureRequest, world: World, topic: TestTopic, make_queue: MakeQueue
) -> Group:
    return Group(request.param, world, topic, make_queue)


@pytest.fixture
def rewindable(world: World, topic: TestTopic, make_queue: MakeQueue) -> Group:
    return Group("rewindable queue", world, topic, make_queue)


@pytest.fixture
def subscription(world: World, topic: TestTopic, make_queue: MakeQueue) -> Group:
    return Group("subscription", world, topic, make_queue)


@pytest.mark.few(1)
def test_a_message_behind_many_dead_letters_is_received(group: Group) -> None:
    group.end(60)
    last = group.send()

    assert [message["body"] for message in group.receive(tries=4)] == [last]


@pytest.mark.few(1)
def test_dead_letters_of_before_cost_a_look_nothing(group: Group) -> None:
    costs = []
    for _ in range(3):
        group.end(40)
        group.world.clock.pass_seconds(50)
        assert group.receive(tries=2) == []
        group.send()
        received: list[Message] = []
        costs.append(group.world.units(partial(_collect, group, received))[1])
        assert group.source.act("dead-letter", *received)["failed"] == []

    assert max(costs) <= MAX_UNITS, costs


def _collect(group: Group, received: list[Message]) -> None:
    received += group.receive(tries=2)


def test_expired_messages_not_yet_removed_are_passed(world: World, make_queue: MakeQueue) -> None:
    """TTL may be two days late, and nothing else removes what nobody received."""
    queue = make_queue(ordered=True, message_retention_seconds=60)
    for number in range(100):
        queue.send(f"m{number}", group="g")
    world.clock.pass_seconds(120)
    queue.send("last", group="g")

    received = [queue.receive() for _ in range(4)]

    assert [message["body"] for some in received for message in some] == ["last"]


@pytest.mark.long
def test_a_function_gets_the_message_behind_many_dead_letters(subscription: Group) -> None:
    called: list[str] = []

    def handle(event: dict[str, Any]) -> dict[str, Any]:
        called.extend(record["body"] for record in event["Records"])
        return {"batchItemFailures": []}

    world = subscription.world
    subscription.end(200)
    world.core.memories.clear()  # the environment of a function is another one
    world.handle = handle
    assert subscription.source.patch(invoke={"function": "handler"}).status == 200
    last = subscription.send()
    for _ in range(20):
        world.settle()
        world.clock.pass_seconds(5)

    assert called == [last]


@pytest.mark.writes_by_hand
def test_a_copy_put_late_before_them_is_found_by_the_next_pass(subscription: Group) -> None:
    """A fan-out that is done again puts copies under the keys that they were to have."""
    world = subscription.world
    subscription.send()
    (late,) = [each for each in world.items() if each["pk"]["S"][0] == "Q"]
    keys = {name: late[name] for name in ("pk", "sk")}
    world.engine.execute("DeleteItem", {"TableName": world.tables.messages, "Key": keys})
    subscription.end(40)
    world.clock.pass_seconds(50)
    assert subscription.receive(tries=4) == []
    assert subscription.marks()

    world.engine.execute("PutItem", {"TableName": world.tables.messages, "Item": late})
    world.clock.pass_seconds(28)

    assert [message["body"] for message in subscription.receive(tries=4)] == ["m0"]


def test_a_mark_is_not_ahead_of_an_unfinished_call(subscription: Group) -> None:
    """A send that took a lower number may store it as long as its call lasts."""
    subscription.end(40)

    assert subscription.marks() == []
    subscription.world.clock.pass_seconds(50)
    subscription.receive()
    assert subscription.marks() == [1]


def test_a_rewind_brings_back_messages_before_the_mark(
    rewindable: Group, now: Callable[..., str]
) -> None:
    start, first = now(), rewindable.send()
    rewindable.source.delete(*rewindable.receive())
    rewindable.end(40)
    rewindable.world.clock.pass_seconds(50)
    assert rewindable.receive(tries=4) == []
    (version,) = rewindable.marks()
    last = rewindable.send()

    assert rewindable.source.run("rewind", to=start)["done"] == 1

    assert rewindable.marks() == [version + 1]
    for body in (first, last):
        received = rewindable.receive(tries=4)
        assert [message["body"] for message in received] == [body]
        rewindable.source.delete(*received)


def test_a_look_overtaken_by_a_rewind_leaves_no_mark(
    rewindable: Group, now: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the beginning before the rewind, and would pass what has come back since."""
    start, first = now(), rewindable.send()
    rewindable.source.delete(*rewindable.receive())
    rewindable.end(40)
    world = rewindable.world
    world.clock.pass_seconds(50)
    write = world.core.store.write

    def overtaken(name: str, request: dict[str, Any]) -> Any:
        if request.get("Item", {}).get("pk", {}).get("S", "").startswith("H#"):
            monkeypatch.undo()
            assert rewindable.source.run("rewind", to=start)["done"] == 1
        return write(name, request)

    monkeypatch.setattr(world.core.store, "write", overtaken)
    rewindable.receive()

    assert [message["body"] for message in rewindable.receive(tries=4)] == [first]
