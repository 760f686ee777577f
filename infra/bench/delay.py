"""How long a published message takes to a subscriber's URL, on one machine."""

from __future__ import annotations

import httpx

from .servers import our_stack
from .subscriber import TAKEN, delays, subscriber
from .table import middle, show

MESSAGES = 200


def run() -> None:
    """Print the table: from the publish call's start to the subscriber's request."""
    with (
        subscriber() as at,
        our_stack() as stack,
        httpx.Client(base_url=stack.url, headers=stack.headers) as http,
    ):
        http.put("/topics/bench", json={}).raise_for_status()
        body = {"protocol": "http", "endpoint": at.url(TAKEN)}
        http.put("/topics/bench/subscriptions/web", json=body).raise_for_status()
        found = sorted(delays(http, "bench", at, MESSAGES))
    show(
        f"From publishing to the subscriber's URL, {MESSAGES} messages one after the other",
        ["median, ms", "p99, ms", "slowest, ms"],
        [(middle(found), found[int(0.99 * MESSAGES)], found[-1])],
    )
