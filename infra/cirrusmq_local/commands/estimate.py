"""What a load cost in an account: units counted on the embedded engine, calls as they were made."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cirrusmq_local.commands import prices
from cirrusmq_local.commands.load import Outcome, make_body

CALL_GB, RECEIVE_GB = 0.5, 0.25
"""Memory of the functions, as the template gives it."""
LOOK_UNITS = 0.5
"""Read units of looking at an empty partition."""


def life_units(size: int, batch: int, attributes: dict[str, Any]) -> tuple[float, float]:
    """(write units, read units) of a message of a queue with these attributes, caches warm.

    A batch is sent, received and deleted in a service in memory, which counts by DynamoDB's rules.
    """
    from cirrusmq_local.testing import World

    with _unlogged():
        world = World()
        client = world.client("bench")
        reply = client.put("/queues/bench", attributes)
        if reply.status != 201:
            raise ValueError(reply.json["detail"])
        bodies = [make_body(number, size) for number in range(batch)]
        _live(client, bodies)
        world.engine.reset_capacity()
        _live(client, bodies)
        counted = world.engine.capacity()
        world.engine.close()
    return float(counted["write_units"]) / batch, float(counted["read_units"]) / batch


@contextmanager
def _unlogged() -> Iterator[None]:
    """Without the audit that the functions log."""
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _live(client: Any, bodies: list[str]) -> None:
    client.send("bench", *bodies)
    left = len(bodies)
    while left:
        held = client.receive("bench")
        receipts = [message["receipt"] for message in held]
        client.post("/queues/bench/messages/delete", {"receipts": receipts})
        left -= len(held)


def dollars(outcome: Outcome, units: tuple[float, float], partitions: int) -> dict[str, float]:
    """By line. Functions are billed for the time that the calls took here, the way included."""
    calls = outcome.calls
    made = sum(len(each.seconds) + len(each.failed) for each in calls.values())
    seconds = {kind: sum(each.seconds) for kind, each in calls.items()}
    gb_seconds = (seconds["send"] + seconds["delete"]) * CALL_GB + seconds["receive"] * RECEIVE_GB
    reads = outcome.sent * units[1] + outcome.empty_receives * partitions * LOOK_UNITS
    amounts = {
        "writes": outcome.sent * units[0] * prices.WRITE_UNITS_PER_MILLION,
        "reads": reads * prices.READ_UNITS_PER_MILLION,
        "HTTP API": made * prices.HTTP_API_PER_MILLION,
        "Lambda calls": made * prices.LAMBDA_REQUESTS_PER_MILLION,
        "Lambda time": gb_seconds * prices.LAMBDA_GB_SECOND * prices.MILLION,
    }
    return {line: amount / prices.MILLION for line, amount in amounts.items()}
