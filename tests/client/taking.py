"""What tests make and find at their end: names, consumers, messages that are left."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cirrusmq_client import Client
from cirrusmq_client.sources import Source


def unused(kind: str) -> str:
    """A name that no other test has."""
    return f"{kind}-{uuid.uuid4().hex[:20]}"


def drain(client: Client, source: str | Source) -> list[str]:
    """Takes all messages of a source; their texts, in the order of their receives."""
    found: list[str] = []
    while received := client.receive(source, 16, wait_seconds=0.5):
        client.delete(source, [each.receipt for each in received])
        found += [each.text for each in received]
    return found


def bodies(client: Client, queue: str) -> list[str]:
    """Takes all messages of a queue."""
    return sorted(drain(client, queue))


def left(client: Client, queue: str) -> int:
    """How many messages a queue has, in any state."""
    counts = client.show_queue(queue)["counts"]
    return counts["active"] + counts["inactive"] + counts["delayed"]


@contextmanager
def consuming(*consumers: Any) -> Iterator[None]:
    """Consumers that run; at the end all are told to stop before the first one is waited for."""
    for each in consumers:
        each.start()
    yield
    for each in consumers:
        each.stop()
    for each in consumers:
        each.join()
