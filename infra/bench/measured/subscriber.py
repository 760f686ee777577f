"""Measures the delay of messages to a subscriber by HTTP."""

from __future__ import annotations

import time

import httpx

from cirrusmq_local.testing import Delivery, Subscriber

REFUSED = "refused"
TAKEN = "taken"


def subscriber() -> Subscriber:
    """Returns a subscriber that takes posts to `url(TAKEN)` and answers 500 at `url(REFUSED)`."""

    def answer(delivery: Delivery) -> int:
        return 204 if delivery.path == TAKEN else 500

    return Subscriber(answer, now_ms=lambda: 1_000 * time.perf_counter())


def delays(http: httpx.Client, topic: str, at: Subscriber, count: int) -> list[float]:
    """Milliseconds from the publish call to the subscriber's request, one message after another."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        answer = http.post(f"/topics/{topic}/messages", json={"messages": [{"body": "x"}]})
        message_id = answer.raise_for_status().json()["messages"][0]["id"]
        (delivery,) = at.wait_for([message_id])
        found.append(delivery.at_ms - 1_000 * began)
    return found
