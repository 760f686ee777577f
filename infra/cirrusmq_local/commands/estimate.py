"""Estimates a load's cost in an account, from units of the embedded engine and measured calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cirrusmq_local.commands import prices
from cirrusmq_local.commands.load import Outcome, make_body

SEND_BYTES = 4_194_304
"""Maximum bytes of a send or publish, and of one message."""
URLS = {"http": {"endpoint": "http://127.0.0.1:9/"}}
LOOK_UNITS = 0.5
"""Read units of a scan of an empty partition."""


def life_units(size: int, batch: int, attributes: dict[str, Any]) -> tuple[float, float]:
    """Return (write units, read units) of a message in a queue with these attributes, caches warm.

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
        written, read = world.units(lambda: _live(client, bodies))
        world.engine.close()
    return written / batch, read / batch


def kind_units(size: int, batch: int) -> dict[str, tuple[float, float]]:
    """Return (write units, read units) of the table of messages for one message, by the meter's
    kinds: `delivered` to a queue or group, `posted` to a URL.

    Counted in a service in memory; a batch that does not fit into one send is made smaller.
    """
    from cirrusmq_local.testing import World

    bodies = [make_body(number, size) for number in range(max(1, min(batch, SEND_BYTES // size)))]
    with _unlogged():
        world = World()
        client = world.client("bench")
        client.put("/queues/bench", {"max_message_bytes": SEND_BYTES, "partitions": 1})
        client.put("/topics/bench", {"max_message_bytes": SEND_BYTES})
        _queued_units(world, client, bodies)
        counted = _queued_units(world, client, bodies)  # with warm caches
        for protocol, kind in (("pull", "delivered"), ("http", "posted")):
            subscription = f"/topics/bench/subscriptions/{protocol}"
            client.put(subscription, {"protocol": protocol} | URLS.get(protocol, {}))
            _published_units(world, client, bodies, kind)
            counted |= _published_units(world, client, bodies, kind)
            client.delete(subscription)
        world.engine.close()
    return {kind: (w / len(bodies), r / len(bodies)) for kind, (w, r) in counted.items()}


def _queued_units(world: Any, client: Any, bodies: list[str]) -> dict[str, tuple[float, float]]:
    counted = {"sent": _units(world, lambda: client.send("bench", *bodies))}
    held: list[dict[str, Any]] = []
    counted["received"] = _units(world, lambda: held.extend(client.receive("bench")))
    asked = {"receipts": [message["receipt"] for message in held]}
    path = "/queues/bench/messages/delete"
    return counted | {"deleted": _units(world, lambda: client.post(path, asked))}


def _published_units(
    world: Any, client: Any, bodies: list[str], delivered: str
) -> dict[str, tuple[float, float]]:
    messages = {"messages": [{"body": body} for body in bodies]}
    published = _units(world, lambda: client.post("/topics/bench/messages", messages))
    return {"published": published, delivered: _units(world, world.settle)}


def _units(world: Any, call: Callable[[], object]) -> tuple[float, float]:
    """Return (write units, read units) of the table of messages."""
    world.engine.reset_capacity()
    call()
    used = world.engine.capacity()["by_table"].get(world.tables.messages, {})
    return float(used.get("write_units", 0.0)), float(used.get("read_units", 0.0))


@contextmanager
def _unlogged() -> Iterator[None]:
    """Disable the audit log of the functions."""
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
    """Return dollars by line of the bill. A function's time is the whole measured call."""
    calls = outcome.calls
    made = sum(len(each.seconds) + len(each.failed) for each in calls.values())
    seconds = {kind: sum(each.seconds) for kind, each in calls.items()}
    gb_seconds = (
        seconds["delete"] * prices.CALL_GB + (seconds["send"] + seconds["receive"]) * prices.HOT_GB
    )
    reads = outcome.sent * units[1] + outcome.empty_receives * partitions * LOOK_UNITS
    amounts = {
        "writes": outcome.sent * units[0] * prices.WRITE_UNITS_PER_MILLION,
        "reads": reads * prices.READ_UNITS_PER_MILLION,
        "HTTP API": made * prices.HTTP_API_PER_MILLION,
        "Lambda calls": made * prices.LAMBDA_REQUESTS_PER_MILLION,
        "Lambda time": gb_seconds * prices.LAMBDA_GB_SECOND * prices.MILLION,
    }
    return {line: amount / prices.MILLION for line, amount in amounts.items()}
