"""What tests find in a queue at their end."""

from __future__ import annotations

from cirrusmq_client import Client


def bodies(client: Client, queue: str) -> list[str]:
    """Takes all messages of a queue."""
    found: list[str] = []
    while received := client.receive(queue, 16, wait_seconds=0.5):
        client.delete(queue, [each.receipt for each in received])
        found += [each.text for each in received]
    return sorted(found)
