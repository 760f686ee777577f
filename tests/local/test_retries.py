"""Retry schedules in the running stack: one execution for a failing URL, and none for others."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.stack import Stack, Start

from cirrusmq_local.testing import Delivery, Subscriber

# Real time counts here: with other tests beside it, a loaded machine would fail it.
pytestmark = pytest.mark.alone

PATIENCE_SECONDS = 60
TOPIC = "/topics/news"
# The policy's waits have to stay long beside a busy machine's time for a step.
SCALE = 10
HANG_SECONDS = 5


def turn_of(execution: str) -> str:
    """The subscription and the number of its execution; behind them is the time it began at."""
    return execution.rpartition("-")[0]


class Retrying:
    """A stack with one topic, seen as these tests look at it."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._client = stack.client()
        assert self._client.put(TOPIC).status_code in (200, 201)

    def subscribe(self, name: str, endpoint: str, **more: Any) -> str:
        """A subscription that gets bodies as they are; answers its id."""
        asked = {"protocol": "http", "endpoint": endpoint, "content_format": "simplified", **more}
        answer = self._client.put(f"{TOPIC}/subscriptions/{name}", json=asked)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def publish(self, *bodies: str) -> None:
        messages = {"messages": [{"body": body} for body in bodies]}
        assert self._client.post(f"{TOPIC}/messages", json=messages).status_code == 201

    def show(self, name: str) -> Any:
        return self._client.get(f"{TOPIC}/subscriptions/{name}").json()

    def executions(self) -> list[tuple[str, str]]:
        """(name, status) of each beginning and end since the first start."""
        lines = (self._stack.folder / "executions.log").read_text().splitlines()
        noted = [json.loads(line) for line in lines]
        return [(each["execution"].rpartition(":")[2], each["status"]) for each in noted]

    def running(self) -> set[str]:
        """Names of the executions that have not ended."""
        noted = self.executions()
        return {name for name, _ in noted} - {name for name, status in noted if status != "RUNNING"}

    def end(self, number: int) -> int:
        return self._stack.end(number)[0]


@pytest.fixture
def up(start: Start) -> Callable[[], Retrying]:
    return lambda: Retrying(start("--time-scale", str(SCALE)))


def wait_for(what: Callable[[], bool]) -> float:
    """Real seconds until it is so."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < PATIENCE_SECONDS, "it never came about"
        time.sleep(0.02)
    return time.monotonic() - began


def taken(subscriber: Subscriber, path: str) -> int:
    """How many deliveries to a path were answered with 2xx."""
    return sum(delivery.path == path for delivery in subscriber.taken)


@pytest.mark.long
def test_a_failing_url_has_one_execution_whatever_waits_and_healthy_ones_none(
    up: Callable[[], Retrying], subscriber: Subscriber
) -> None:
    subscriber.down(path="bad")
    stack = up()
    failing = stack.subscribe("failing", subscriber.url("bad"))
    stack.subscribe("healthy", subscriber.url("good"))
    for batch in range(10):
        stack.publish(*(f"{batch}-{place}" for place in range(10)))
    wait_for(lambda: taken(subscriber, "good") == 100)
    wait_for(lambda: bool(stack.running()))
    wait_for(lambda: max(Counter(subscriber.bodies("bad")).values(), default=0) > 3)
    assert [(turn_of(name), status) for name, status in stack.executions()] == [
        (f"{failing}-1", "RUNNING")
    ]
    assert stack.show("failing")["state"] == "retrying"
    assert stack.show("healthy")["state"] == "delivering"
    # The others wait behind the probe.
    tried = set(subscriber.bodies("bad"))
    assert len(tried) < 100
    subscriber.up()
    wait_for(lambda: taken(subscriber, "bad") == 100)
    # A post that was under way when the URL recovered may have begun another generation.
    wait_for(lambda: stack.show("failing")["state"] == "delivering" and not stack.running())
    assert {status for _, status in stack.executions()} == {"RUNNING", "SUCCEEDED"}
    assert max(Counter(subscriber.bodies("good")).values()) == 1


@pytest.mark.long
def test_retrying_goes_on_after_a_kill(up: Callable[[], Retrying], subscriber: Subscriber) -> None:
    subscriber.down(path="bad")
    first = up()
    id_ = first.subscribe("failing", subscriber.url("bad"))
    first.publish("one", "two", "three")
    wait_for(lambda: max(Counter(subscriber.bodies("bad")).values(), default=0) > 3)
    first.end(signal.SIGKILL)
    subscriber.up()
    second = up()
    waited = wait_for(lambda: taken(subscriber, "bad") >= 3)
    # Two minutes of the stack's time from its start, and the policy's last wait before it.
    assert waited * SCALE < 120 + 16
    assert set(subscriber.bodies("bad")) == {"one", "two", "three"}
    wait_for(lambda: second.show("failing")["state"] == "delivering")
    turns = [turn_of(name) for name, status in second.executions() if status == "RUNNING"]
    assert turns == [f"{id_}-1", f"{id_}-2"]


@pytest.mark.long
def test_a_kill_in_the_middle_of_a_post_delays_it_by_two_minutes_at_most(
    up: Callable[[], Retrying], subscriber: Subscriber
) -> None:

    def hang(delivery: Delivery) -> None:
        time.sleep(HANG_SECONDS)

    subscriber.answer = hang
    first = up()
    first.subscribe("hanging", subscriber.url("slow"))
    first.publish("one", "two")
    wait_for(lambda: Counter(subscriber.bodies("slow"))["one"] == 1)
    first.end(signal.SIGKILL)
    subscriber.up()
    up()
    waited = wait_for(lambda: taken(subscriber, "slow") >= 2)
    assert waited * SCALE < 120


def test_a_stop_while_retrying_is_clean(up: Callable[[], Retrying], subscriber: Subscriber) -> None:
    subscriber.down(path="bad")
    stack = up()
    stack.subscribe("failing", subscriber.url("bad"))
    stack.publish("one")
    # On a busy machine the first worker itself posts a message again that is due by then.
    wait_for(lambda: bool(stack.running()))
    wait_for(lambda: max(Counter(subscriber.bodies("bad")).values(), default=0) > 1)
    assert stack.end(signal.SIGTERM) == 0
    assert [status for _, status in stack.executions()] == ["RUNNING", "ABORTED"]
