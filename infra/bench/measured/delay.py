"""The delay of a message: to a waiting consumer, beside other queues, and to a URL."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx

from ..drawing.tables import middle, show
from ..rivals import NotInstalled, Service, all_services
from ..rivals.servers import our_stack
from .subscriber import TAKEN, delays, subscriber

MESSAGES = 60
"""Messages for each waiting consumer."""
PAUSE_SECONDS = 0.1
"""Pause between two messages, so that the consumer waits again."""
PUSHED = 200
HEADS = ("median, ms", "95 %, ms", "slowest, ms")


def run() -> None:
    """Prints both tables."""
    rows: list[Sequence[object]] = []
    for service in all_services():
        try:
            with service.running() as place:
                rows.append((service.name, *_summary(_waited(service, place))))
        except NotInstalled as missing:
            print(f"not measured, not installed: {missing}")
    show(
        f"From the start of a send to a waiting consumer, {MESSAGES} messages one by one",
        ["queue", *HEADS],
        rows,
    )
    print("\nSKIP LOCKED looks every 20 ms, ours after 50 ms and more; procrastinate listens.")
    show(
        f"From publishing to the subscriber's URL, {PUSHED} messages one after the other",
        HEADS,
        [_summary(_pushed())],
    )


def _summary(found: list[float]) -> tuple[float, float, float]:
    ordered = sorted(found)
    return middle(ordered), ordered[int(0.95 * len(ordered))], ordered[-1]


def _waited(service: Service, place: Any) -> list[float]:
    """Returns milliseconds; each body is the time of its send."""
    found: list[float] = []

    def consume() -> None:
        with contextlib.closing(service.queue(place, "delay")) as consumer:
            consumer.consume(
                MESSAGES,
                lambda body: found.append(1_000 * (time.perf_counter() - float(body))),
            )

    with contextlib.closing(service.queue(place, "delay")) as sender:
        sender.create()
        waiting = threading.Thread(target=consume, daemon=True)
        waiting.start()
        for _ in range(MESSAGES):
            time.sleep(PAUSE_SECONDS)
            sender.send([repr(time.perf_counter())])
        waiting.join(timeout=60)
    if len(found) < MESSAGES:
        raise TimeoutError(f"{service.name}: {len(found)} of {MESSAGES} messages came")
    return found


def _pushed() -> list[float]:
    """Returns milliseconds from the publish call to the subscriber's request."""
    with (
        subscriber() as at,
        our_stack() as stack,
        httpx.Client(base_url=stack.url, headers=stack.headers) as http,
    ):
        http.put("/topics/bench", json={}).raise_for_status()
        body = {"protocol": "http", "endpoint": at.url(TAKEN)}
        http.put("/topics/bench/subscriptions/web", json=body).raise_for_status()
        return delays(http, "bench", at, PUSHED)
