"""Publishes whose write is late: their repetitions, and readers of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest
from tests.service.conftest import usage
from tests.service.topics import TestTopic, log_bodies

from cirrusmq.base import ulid
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import Reply, World

LATE_SECONDS = 10
WRITES = ("PutItem", "TransactWriteItems")


class Tries:
    """Tries of one publish, each on its way to the store as the next one begins.

    `held[n]` says before which of its writes try `n` waits until the later tries have ended; a
    try that makes fewer writes does not wait. The write then takes effect, as one does that a
    caller gave up, or its writer has died: `dies`.
    """

    def __init__(
        self,
        topic: TestTopic,
        monkeypatch: pytest.MonkeyPatch,
        held: tuple[int, ...],
        *,
        dies: bool,
    ) -> None:
        self._topic = topic
        self._world: World = topic.client.world
        self._held = held
        self._dies = dies
        self._attempt = ulid.encode(self._world.clock.now_ms(), b"0123456789")
        self._messages: list[dict[str, Any]] = []
        self._writes_before_hold: list[int] = []
        """Of the tries under way, the last begun one at the end."""
        self.replies: list[Reply] = []
        self._execute = self._world.engine.execute
        monkeypatch.setattr(self._world.engine, "execute", self._hold)

    def publish(self, *messages: dict[str, Any]) -> None:
        self._messages = list(messages)
        self._try()

    def repeat(self) -> Reply:
        """One more try, which nothing holds."""
        return self._topic.try_publish(self._messages, attempt=self._attempt)

    def _try(self) -> None:
        number = len(self._writes_before_hold)
        held = self._held[number] if number < len(self._held) else -1
        self._writes_before_hold.append(held)
        self.replies.append(self.repeat())
        self._writes_before_hold.pop()

    def _hold(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if operation in WRITES and self._writes_before_hold:
            self._writes_before_hold[-1] -= 1
            if self._writes_before_hold[-1] == -1:
                self._world.clock.pass_seconds(LATE_SECONDS)
                self._try()
                if self._dies:
                    raise EngineError("InternalServerError", "the caller died", status=500)
        return self._execute(operation, request)


@pytest.mark.few(13)
@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("held", [(0, *later) for later in product(range(3), repeat=2)])
@pytest.mark.parametrize("deduplicated", [False, True])
def test_all_tries_store_once_and_answer_the_same(
    topic: TestTopic,
    monkeypatch: pytest.MonkeyPatch,
    deduplicated: bool,
    held: tuple[int, ...],
    dies: bool,
) -> None:
    world = topic.client.world
    group = topic.subscribe("group")
    in_order = topic.subscribe("in-order", ordered=True)
    tries = Tries(topic, monkeypatch, held, dies=dies)
    messages = [{"body": "1", "group": "g"}, {"body": "2", "group": "g"}]
    tries.publish(
        *[each | ({"deduplication_id": each["body"]} if deduplicated else {}) for each in messages]
    )
    world.clock.pass_seconds(LATE_SECONDS)
    last = tries.repeat()
    world.settle()

    assert last.status == 201
    answered = [reply.json for reply in tries.replies if reply.status == 201]
    assert answered == [last.json] * len(answered)
    assert sorted(group.bodies()) == ["1", "2"]
    received = in_order.receive_all()
    assert [each["id"] for each in received] == [each["id"] for each in last.json["messages"]]
    assert usage(world)["topic:news published"] == 2
    world.clock.pass_seconds(LATE_SECONDS)
    assert log_bodies(topic.log()) == ["1", "2"]


def delay_log_writes(
    world: World, monkeypatch: pytest.MonkeyPatch, meanwhile: list[Callable[[], None]]
) -> None:
    """Puts into the log take effect only after `meanwhile` was done, one after the other."""
    execute = world.engine.execute

    def hold(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        into_log = operation == "PutItem" and request["Item"]["pk"]["S"].startswith("L#")
        if into_log and meanwhile:
            meanwhile.pop(0)()
        return execute(operation, request)

    monkeypatch.setattr(world.engine, "execute", hold)


@pytest.mark.parametrize("late_writes", [1, 2, 3])
def test_a_reader_past_the_key_of_a_late_write_finds_it(
    topic: TestTopic, monkeypatch: pytest.MonkeyPatch, late_writes: int
) -> None:
    """The publish is late, and so may be the pointer that shows it again."""
    world = topic.client.world
    eyes = topic.subscribe("eyes", mode="broadcasting")
    group = topic.subscribe("group")
    seen: list[str] = []
    cursor: dict[str, Any] = {}

    def read() -> None:
        world.clock.pass_seconds(LATE_SECONDS)
        page = eyes.log(limit=1, **cursor)
        cursor["after"] = page["cursor"]
        seen.extend(log_bodies(page))

    delay_log_writes(world, monkeypatch, [read] * late_writes)
    published = topic.try_publish([{"body": "1"}, {"body": "2"}])
    world.settle()
    assert seen == []
    for _ in range(3):
        read()

    assert seen == ["1", "2"]
    assert sorted(group.bodies()) == ["1", "2"]
    assert usage(world)["topic:news published"] == 2
    (first, *_) = topic.log(limit=1)["messages"]
    assert first["id"] == published.json["messages"][0]["id"]


@pytest.mark.parametrize("seconds", [0, 0.9])
def test_a_publish_in_time_is_shown_once(
    topic: TestTopic, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    world = topic.client.world
    eyes = topic.subscribe("eyes", mode="broadcasting")
    delay_log_writes(world, monkeypatch, [lambda: world.clock.pass_seconds(seconds)])
    topic.publish("x")
    world.settle()
    world.clock.pass_seconds(LATE_SECONDS)

    assert log_bodies(eyes.log()) == ["x"]
