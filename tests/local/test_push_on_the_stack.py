"""A retry policy in the running stack, as the subscriber sees it, twenty times as fast."""

from __future__ import annotations

import time

import httpx
import pytest
from tests.stack import Start

from cirrusmq_local.testing import Delivery, Subscriber

# Real time counts here: with other tests beside it, a loaded machine would fail it.
pytestmark = [pytest.mark.alone, pytest.mark.long]

SCALE = 20
LATE_SECONDS = 8
"""Of the stack's clock: 0.4 s for the state machine, the push and the way here."""
EARLY_SECONDS = 1
"""The way here may be shorter than it was for the attempt before."""
CUSTOM = [5, 50, 100.5, 200]
HANG_SECONDS = 5


@pytest.fixture
def client(start: Start) -> httpx.Client:
    """A client of a stack that runs twenty times as fast."""
    return start("--time-scale", str(SCALE)).client()


def test_attempts_come_at_the_waits_of_the_policy_and_others_are_not_delayed(
    client: httpx.Client, subscriber: Subscriber
) -> None:
    waits = {"first": [1], "well": [1], "custom": CUSTOM}
    subscriber.answer = lambda delivery: 204 if delivery.path == "well" else 500
    ids = {}
    for name, held in waits.items():
        topic = "warm" if name == "first" else "news"
        client.put(f"/topics/{topic}", json={}).raise_for_status()
        answer = client.put(
            f"/topics/{topic}/subscriptions/{name}",
            json={
                "protocol": "http",
                "endpoint": subscriber.url(name),
                "content_format": "simplified",
                "retry": {"policy": "custom", "waits": held},
            },
        )
        ids[name] = answer.raise_for_status().json()["id"]

    def publish(body: str, topic: str = "news") -> None:
        message = {"messages": [{"body": body}]}
        client.post(f"/topics/{topic}/messages", json=message).raise_for_status()

    # The first execution of a stack that has just started waits for imports.
    publish("zero", "warm")
    patience = time.monotonic() + 60
    while len(subscriber.times("zero", "first")) < 2 and time.monotonic() < patience:
        time.sleep(0.05)
    began = time.monotonic()
    publish("one")
    publish("two")
    time.sleep((sum(CUSTOM) + 40) / SCALE)

    for body in ("one", "two"):
        (delivered,) = subscriber.times(body, "well")
        assert delivered / 1_000 - began < 1
        found = [wait * SCALE for wait in subscriber.waits(body, "custom")]
        assert len(found) == len(CUSTOM), (body, found)
        for wait, wanted in zip(found, CUSTOM, strict=True):
            assert wanted - EARLY_SECONDS <= wait <= wanted + LATE_SECONDS, (body, found)
    dead = (
        client.post(
            f"/queues/dlq-{ids['custom']}/messages/receive", json={"max": 16, "wait_seconds": 5}
        )
        .raise_for_status()
        .json()["messages"]
    )
    assert {message["body"] for message in dead} <= {"one", "two"}
    assert dead


def test_a_mute_subscriber_delays_no_other_topic(start: Start, subscriber: Subscriber) -> None:
    client = start().client()

    def answer(delivery: Delivery) -> int | None:
        if delivery.path != "mute":
            return 204
        time.sleep(HANG_SECONDS)
        return None

    subscriber.answer = answer
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
        while not subscriber.times(body, "well") and time.monotonic() < until:
            time.sleep(0.005)
        (at,) = subscriber.times(body, "well")
        return at / 1_000

    publish("news", "warm")
    came("warm", 20)
    for number in range(200):
        publish("slow", str(number))
    for number in range(10):
        published = publish("news", str(number))
        assert came(str(number), 5) - published < 0.5
    # Of the mute one no more than 16 posts are under way at a time.
    assert 1 <= len(subscriber.bodies("mute")) <= 16 * (1 + 5)
