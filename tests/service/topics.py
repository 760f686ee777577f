"""Topics spoken to over HTTP events, and the retry schedules run on a clock that is set."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import Message, TestQueue

from cirrusmq.base import limits
from cirrusmq_local.testing import Client, Reply, Subscriber, World

URL = "http://127.0.0.1:9/hook"


class TestSubscription(TestQueue):
    """A subscription as one of its topic's users calls it: a pull one is received from."""

    __test__ = False

    def __init__(self, client: Client, topic: str, name: str, shown: dict[str, Any]) -> None:
        super().__init__(client, name)
        self.topic = topic
        self.shown = shown

    @property
    def path(self) -> str:
        return f"/topics/{self.topic}/subscriptions/{self.name}"

    @property
    def id(self) -> str:
        return str(self.shown["id"])

    def receive(self, limit: int = 16, **fields: Any) -> list[Message]:
        request = {"max": limit, "wait_seconds": 0, **fields}
        reply = self.client.post(f"{self.path}/messages/receive", request)
        assert reply.status == 200, reply.text
        messages: list[Message] = reply.json["messages"]
        return messages

    def log(self, **query: Any) -> dict[str, Any]:
        """The log as a broadcasting consumer reads it."""
        return read_log(self.client, f"{self.path}/messages", query)


class TestTopic:
    """One topic as its owner calls it."""

    __test__ = False

    def __init__(self, client: Client, name: str = "news", **attributes: Any) -> None:
        self.client = client
        self.name = name
        reply = client.put(self.path, attributes)
        assert reply.status == 201, reply.text
        self.shown: dict[str, Any] = reply.json

    @property
    def path(self) -> str:
        return f"/topics/{self.name}"

    def subscribe(
        self, name: str = "all", protocol: str = "pull", **fields: Any
    ) -> TestSubscription:
        if protocol == "http":
            fields.setdefault("endpoint", URL)
        reply = self.try_subscribe(name, protocol=protocol, **fields)
        assert reply.status == 201, reply.text
        return TestSubscription(self.client, self.name, name, reply.json)

    def try_subscribe(self, name: str = "all", **fields: Any) -> Reply:
        return self.client.put(f"{self.path}/subscriptions/{name}", fields)

    def publish(self, *bodies: str, **fields: Any) -> list[Message]:
        """Publish messages that differ in their bodies alone, in one call, and fan them out.

        A millisecond passes: messages published in one millisecond have no order.
        """
        self.client.world.clock.pass_seconds(0.001)
        reply = self.try_publish([{"body": body, **fields} for body in bodies])
        assert reply.status == 201, reply.text
        self.client.world.settle()
        entries: list[Message] = reply.json["messages"]
        return entries

    def try_publish(self, messages: list[Message], **fields: Any) -> Reply:
        return self.client.post(f"{self.path}/messages", {"messages": messages, **fields})

    def matched(self, **fields: Any) -> int:
        """How many subscriptions a message with these fields reaches."""
        (entry,) = self.publish("x", **fields)
        matched: int = entry["matched"]
        return matched

    def trace(self, message_id: str) -> dict[str, dict[str, Any]]:
        """The trace of a message: its state by subscription, without the history."""
        deliveries = self._deliveries(message_id)
        for each in deliveries.values():
            assert len(each.pop("history", [])) <= each["attempts"]
        return deliveries

    def history(self, message_id: str, subscription: str) -> list[dict[str, Any]]:
        """The latest attempts of a message at a subscription's URL."""
        history: list[dict[str, Any]] = self._deliveries(message_id)[subscription]["history"]
        return history

    def _deliveries(self, message_id: str) -> dict[str, dict[str, Any]]:
        reply = self.client.get(f"{self.path}/messages/{message_id}")
        assert reply.status == 200, reply.text
        assert reply.json["id"] == message_id
        return {each.pop("subscription"): each for each in reply.json["deliveries"]}

    def log(self, **query: Any) -> dict[str, Any]:
        return read_log(self.client, f"{self.path}/messages", query)

    def show(self) -> dict[str, Any]:
        reply = self.client.get(self.path)
        assert reply.status == 200, reply.text
        shown: dict[str, Any] = reply.json
        return shown

    def active(self) -> int:
        counts: dict[str, int] = self.show()["counts"]
        assert counts.keys() == {"active"}
        return counts["active"]


def read_log(client: Client, path: str, query: dict[str, Any]) -> dict[str, Any]:
    reply = client.get(path, "&".join(f"{name}={value}" for name, value in query.items()))
    assert reply.status == 200, reply.text
    page: dict[str, Any] = reply.json
    return page


def log_bodies(page: dict[str, Any]) -> list[str]:
    return [message["body"] for message in page["messages"]]


def hold_to_be_fast(world: World) -> None:
    """Have `push` post to all URLs there are, as after a first post that took no time."""
    for item in world.items():
        if "slow_until" in item:
            request = {
                "TableName": world.tables.messages,
                "Key": {"pk": item["pk"], "sk": item["sk"]},
                "UpdateExpression": "REMOVE slow_until, slow_for",
            }
            world.engine.execute("UpdateItem", request)


def failing_url(
    topic: TestTopic, subscriber: Subscriber, *bodies: str, **fields: Any
) -> TestSubscription:
    """A URL that refuses every post from now on, also those of these messages of one call."""
    web = topic.subscribe("web", "http", **fields)
    subscriber.down()
    if bodies:
        topic.publish(*bodies)
    return web


OBSTACLES = ("limit of queues", "another case", "ordered", "dead_letter")


def put_in_the_way(
    client: Client, queue: str, obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Keep a subscription's own dead-letter queue from being made; answers what ends that."""
    name = queue.upper() if obstacle == "another case" else queue
    attributes: dict[str, Any] = {"ordered": True} if obstacle == "ordered" else {}
    if obstacle == "dead_letter":
        assert client.put("/queues/last").status == 201
        attributes = {"dead_letter": {"queue": "last", "max_receives": 1}}
    if obstacle == "limit of queues":
        name = "only"
        monkeypatch.setattr(limits, "QUEUES_PER_ACCOUNT", 1)
    assert client.put(f"/queues/{name}", attributes).status == 201

    def remove() -> None:
        assert client.delete(f"/queues/{name}").status == 204

    return remove


class Schedules:
    """Runs executions of the retry schedules as the state machine does, and the minute's sweep."""

    def __init__(self, world: World, *, sweeps: bool = False, sweep_minutes: int = 1) -> None:
        self.world = world
        self.started: Counter[str] = Counter()
        """Executions by subscription id."""
        self.rounds: Counter[str] = Counter()
        self._waiting: list[tuple[int, int, str, dict[str, Any]]] = []
        self._number = 0
        self._sweeps = sweeps
        self.sweep_ms = sweep_minutes * 60_000
        self._next_sweep_ms = world.clock.now_ms() + 60_000

    @property
    def running(self) -> list[str]:
        """Executions that have not ended: their subscriptions' ids and their numbers."""
        self._take()
        return sorted(name for _, _, name, _ in self._waiting)

    def kill(self) -> None:
        """Lose every execution, as a stack does that is killed."""
        self._take()
        self._waiting.clear()

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass, with everything that happens in it."""
        self.run(lambda: False, self.world.clock.now_ms() + round(seconds * 1000))

    def run_out(self) -> None:
        """Let time pass until no execution runs."""
        self.run(lambda: not self.running, None)

    def run(self, finished: Callable[[], bool], until_ms: int | None) -> None:
        clock = self.world.clock
        while True:
            self.world.settle()
            self._take()
            if finished():
                return
            due_ms = self._waiting[0][0] if self._waiting else None
            times = [due_ms, self._next_sweep_ms if self._sweeps else None, until_ms]
            at_ms = min(time for time in times if time is not None)
            clock.pass_seconds(max(0, at_ms - clock.now_ms()) / 1000)
            if self._sweeps and clock.now_ms() >= self._next_sweep_ms:
                self._next_sweep_ms = clock.now_ms() // 60_000 * 60_000 + self.sweep_ms
                self.world.run("sweep")
            elif due_ms is not None and clock.now_ms() >= due_ms:
                self._step()
            elif until_ms is not None and clock.now_ms() >= until_ms:
                return

    def _take(self) -> None:
        while self.world.executions:
            name, given = self.world.executions.pop(0)
            name = name.rpartition("-")[0]  # the time of the start
            self.started[name.partition("-")[0]] += 1
            self._go_on(name, given)

    def _step(self) -> None:
        _, _, name, state = heapq.heappop(self._waiting)
        self.rounds[name] += 1
        self._go_on(name, json.loads(json.dumps(self.world.run("push_slow", state))))

    def _go_on(self, name: str, state: dict[str, Any]) -> None:
        """The state machine's step after an answer of push, or with an execution's input."""
        if state["action"] in ("wait", "again"):
            wait_seconds = state["wait_seconds"] if state["action"] == "wait" else 0
            assert isinstance(wait_seconds, int)
            self._put(self.world.clock.now_ms() + wait_seconds * 1000, name, state)

    def _put(self, at_ms: int, name: str, state: dict[str, Any]) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (at_ms, self._number, name, state))
