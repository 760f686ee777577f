"""Retry ladders in the running stack, read from the subscriber's side, twenty times as fast."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import httpx
import pytest
from tests.local.subscriber import Subscriber
from tests.stack import Start

# Real time counts here: with other tests beside it, a loaded machine would fail it.
pytestmark = [pytest.mark.alone, pytest.mark.long]

SCALE = 20
LATE_SECONDS = 8
"""Of the stack's clock: 0.4 s for the state machine, the push and the way here."""
EARLY_SECONDS = 1
"""The way here may be shorter than it was for the attempt before."""
LADDER_SECONDS = 1_023
DECAY = [2**n for n in range(10)]
UNORDERED = [10, 30, 60, 120, 180, 240, 300]
CUSTOM = [5, 50, 100.5, 200]


@pytest.fixture
def client(start: Start) -> httpx.Client:
    """A client of a stack that runs twenty times as fast."""
    return start("--time-scale", str(SCALE)).client()


def waits_of(subscriber: Subscriber, path: str, body: str) -> list[float]:
    """Seconds of the stack's clock between the attempts."""
    return [(late - soon) * SCALE for soon, late in pairwise(subscriber.times[path, body])]


def test_the_policies_keep_their_waits(client: httpx.Client, subscriber: Subscriber) -> None:
    policies: dict[str, dict[str, Any] | None] = {
        "first": {"policy": "custom", "waits": [1]},
        "well": None,
        "decay": None,
        "backoff": {"policy": "backoff"},
        "unordered": {"policy": "unordered"},
        "custom": {"policy": "custom", "waits": CUSTOM},
    }
    subscriber.failing = policies.keys() - {"well"}
    ids = {}
    for name, retry in policies.items():
        topic = "warm" if name == "first" else "news"
        client.put(f"/topics/{topic}", json={}).raise_for_status()
        answer = client.put(
            f"/topics/{topic}/subscriptions/{name}",
            json={
                "protocol": "http",
                "endpoint": subscriber.url(name),
                "content_format": "simplified",
                "retry": retry,
            },
        )
        ids[name] = answer.raise_for_status().json()["id"]

    def publish(body: str, topic: str = "news") -> None:
        message = {"messages": [{"body": body}]}
        client.post(f"/topics/{topic}/messages", json=message).raise_for_status()

    # The first execution of a stack that has just started waits for imports.
    publish("zero", "warm")
    patience = time.monotonic() + 60
    while len(subscriber.times["first", "zero"]) < 2 and time.monotonic() < patience:
        time.sleep(0.05)
    began = time.monotonic()
    publish("one")
    publish("two")
    time.sleep((LADDER_SECONDS + 40) / SCALE)

    for body in ("one", "two"):
        (delivered,) = subscriber.times["well", body]
        assert delivered - began < 1

    def check(path: str, body: str, expected: list[float]) -> None:
        waits = waits_of(subscriber, path, body)[: len(expected)]
        assert len(waits) == len(expected), (path, body, waits)
        for wait, wanted in zip(waits, expected, strict=True):
            assert wanted - EARLY_SECONDS <= wait <= wanted + LATE_SECONDS, (path, body, waits)

    check("decay", "one", [*DECAY])
    # The second may have been under way when the first one failed; then it waits for the probe.
    assert subscriber.order["decay"].count("two") <= 1
    for body in ("one", "two"):
        check("unordered", body, [*UNORDERED])
        check("custom", body, CUSTOM)
        assert len(subscriber.times["custom", body]) == len(CUSTOM) + 1
        backoffs = waits_of(subscriber, "backoff", body)
        assert len(backoffs) == 3
        assert all(10 - EARLY_SECONDS <= wait <= 20 + LATE_SECONDS for wait in backoffs), backoffs
    assert subscriber.order["backoff"] == ["one"] * 4 + ["two"] * 4
    dead = (
        client.post(
            f"/queues/dlq-{ids['custom']}/messages/receive", json={"max": 16, "wait_seconds": 5}
        )
        .raise_for_status()
        .json()["messages"]
    )
    assert {message["body"] for message in dead} <= {"one", "two"}
    assert dead


def test_a_subscriber_that_never_answers_delays_no_other_topic(
    start: Start, subscriber: Subscriber
) -> None:
    client = start().client()
    subscriber.hanging = {"mute"}
    for topic, name in (("slow", "mute"), ("news", "well")):
        client.put(f"/topics/{topic}", json={}).raise_for_status()
        url = {
            "protocol": "http",
            "endpoint": subscriber.url(name),
            "content_format": "simplified",
        }
        client.put(f"/topics/{topic}/subscriptions/{name}", json=url).raise_for_status()

    def publish(topic: str, body: str) -> float:
        message = {"messages": [{"body": body}]}
        client.post(f"/topics/{topic}/messages", json=message).raise_for_status()
        return time.monotonic()

    def came(body: str, patience: float) -> float:
        until = time.monotonic() + patience
        while not subscriber.times["well", body] and time.monotonic() < until:
            time.sleep(0.005)
        (at,) = subscriber.times["well", body]
        return at

    publish("news", "warm")
    came("warm", 20)
    for number in range(200):
        publish("slow", str(number))
    for number in range(10):
        published = publish("news", str(number))
        assert came(str(number), 5) - published < 0.5
    # Of the mute one no more than 16 posts are under way at a time.
    assert 1 <= len(subscriber.order["mute"]) <= 16 * (1 + 5)
