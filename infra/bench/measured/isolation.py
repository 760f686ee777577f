"""The effect of one subscription's failures on another one of the same topic."""

from __future__ import annotations

import httpx

from cirrusmq_local.testing import Subscriber

from ..drawing.tables import middle, show
from ..rivals.servers import our_stack
from .subscriber import REFUSED, TAKEN, delays, subscriber

MESSAGES = 150
WAITING = 1_000
BATCH = 10


def run() -> None:
    """Prints B's delays without A, and while A fails on a backlog, in one run."""
    with (
        subscriber() as at,
        our_stack() as stack,
        httpx.Client(base_url=stack.url, headers=stack.headers, timeout=30) as http,
    ):
        http.put("/topics/bench", json={}).raise_for_status()
        _subscribe(http, "healthy", at.url(TAKEN))
        delays(http, "bench", at, 20)  # the start-up at the first messages is not measured
        alone = delays(http, "bench", at, MESSAGES)
        _subscribe(http, "failing", at.url(REFUSED))
        _publish_backlog(http, at)
        beside = delays(http, "bench", at, MESSAGES)
        shown = http.get("/topics/bench/subscriptions/failing").json()
    assert shown["state"] == "retrying", shown
    show(
        f"B's delay from publishing to its URL, {MESSAGES} messages one after the other",
        ["A", "median, ms", "p99, ms", "A's waiting messages"],
        [
            ("does not exist", *_summary(alone), 0),
            ("fails", *_summary(beside), shown["counts"]["active"]),
            ("ratio", middle(beside) / middle(alone), "", ""),
        ],
    )


def _publish_backlog(http: httpx.Client, at: Subscriber) -> None:
    """Publishes messages that A refuses; all of them reach B."""
    sent = []
    for _ in range(WAITING // BATCH):
        batch = {"messages": [{"body": "waits"}] * BATCH}
        answer = http.post("/topics/bench/messages", json=batch).raise_for_status().json()
        sent += [each["id"] for each in answer["messages"]]
    at.wait_for(sent)


def _subscribe(http: httpx.Client, name: str, endpoint: str) -> None:
    body = {"protocol": "http", "endpoint": endpoint}
    http.put(f"/topics/bench/subscriptions/{name}", json=body).raise_for_status()


def _summary(found: list[float]) -> tuple[float, float]:
    ordered = sorted(found)
    return middle(ordered), ordered[int(0.99 * len(ordered))]
