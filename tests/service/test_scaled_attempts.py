"""At a time scale: a client repeats its calls in real time, the service's runs faster."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq.base import ulid
from cirrusmq_local.testing import Client, ManualClock, World

SCALE = 600


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(ManualClock, "scale", float(SCALE))
    return world


def pass_real_seconds(world: World, seconds: float) -> None:
    world.clock.pass_seconds(seconds * SCALE)


def attempt(world: World) -> str:
    return ulid.encode(world.clock.now_ms(), b"attempt..."[:10])


def send(alice: Client, shown: str) -> Any:
    messages = [{"body": "hello"}]
    return alice.post("/queues/orders/messages", {"messages": messages, "attempt": shown})


@pytest.mark.parametrize("seconds", [1, 15, 119])
def test_a_send_that_is_repeated_after_real_seconds_is_stored_once(
    world: World, alice: Client, seconds: float
) -> None:
    alice.put("/queues/orders")
    shown = attempt(world)
    first = send(alice, shown)
    assert first.status == 201
    pass_real_seconds(world, seconds)
    assert send(alice, shown).json == first.json
    assert [each["body"] for each in alice.receive("orders")] == ["hello"]


def test_an_attempt_ends_after_120_real_seconds(world: World, alice: Client) -> None:
    alice.put("/queues/orders")
    shown = attempt(world)
    pass_real_seconds(world, 120.1)
    refused = send(alice, shown)
    assert (refused.status, refused.json["parameter"]) == (400, "attempt")


def test_a_late_try_is_received_however_short_its_life(world: World, alice: Client) -> None:
    """Its key has the time of its attempt, its life begins when it is stored."""
    alice.put("/queues/orders", {"message_retention_seconds": 60})
    shown = attempt(world)
    pass_real_seconds(world, 100)
    assert send(alice, shown).status == 201
    world.clock.pass_seconds(59)
    assert [each["body"] for each in alice.receive("orders")] == ["hello"]


def test_a_message_that_moved_meanwhile_is_not_stored_again(world: World, alice: Client) -> None:
    alice.put("/queues/orders")
    shown = attempt(world)
    first = send(alice, shown)
    (message,) = alice.receive("orders")
    given = {"receipts": [message["receipt"]], "delay_seconds": 3_600}
    assert alice.post("/queues/orders/messages/give-back", given).json["failed"] == []
    pass_real_seconds(world, 10)
    (moved,) = alice.receive("orders")
    alice.post("/queues/orders/messages/delete", {"receipts": [moved["receipt"]]})
    assert alice.receive("orders") == []
    assert send(alice, shown).json == first.json
    assert alice.receive("orders") == []


def test_a_receive_is_repeated_after_real_seconds(world: World, alice: Client) -> None:
    alice.put("/queues/orders", {"visibility_timeout_seconds": 43_200})
    alice.send("orders", "hello")
    shown = {"max": 16, "wait_seconds": 0, "attempt": attempt(world)}
    first = alice.post("/queues/orders/messages/receive", shown)
    assert len(first.json["messages"]) == 1
    pass_real_seconds(world, 1)
    again = alice.post("/queues/orders/messages/receive", {**shown, "repeat": True})
    assert again.json == first.json


def test_a_publish_is_repeated_after_real_seconds(world: World, alice: Client) -> None:
    alice.put("/topics/news")
    alice.put("/topics/news/subscriptions/all", {"protocol": "pull"})
    shown = attempt(world)
    body = {"messages": [{"body": "hello"}], "attempt": shown}
    first = alice.post("/topics/news/messages", body)
    assert first.status == 201, first.text
    pass_real_seconds(world, 1)
    assert alice.post("/topics/news/messages", body).json == first.json
    world.settle()
    received = alice.post("/topics/news/subscriptions/all/messages/receive", {"max": 16})
    assert [each["body"] for each in received.json["messages"]] == ["hello"]
