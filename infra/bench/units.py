"""Write and read units, counted by Amazon's rules: what a message costs, and how it grows."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterable
from typing import Any

from cirrusmq_local.testing import Client, World

from .table import show

_RANDOM = random.Random(7)


def run() -> None:
    """Print the tables."""
    show(
        "Units of a message's life: sent, received, deleted (in whole batches)",
        ["what", "messages", "write units", "per message", "read units"],
        [
            _life("one message of 100 bytes", 1, lambda: _text(100)),
            _life("one message of 1 KB", 1, lambda: _text(1_024)),
            _life("one message of 64 KiB, incompressible", 1, lambda: _binary(65_536)),
            _life("16 messages of 40 bytes", 16, lambda: _text(40)),
            _life("16 messages of 1 KB", 16, lambda: _text(1_024)),
            _life("one message of 100 bytes, deduplicated", 1, lambda: _text(100), True),
        ],
    )
    show(
        "Units of a published message's whole life, 20 subscriptions",
        ["what", "messages", "write units", "bound"],
        [
            _published("one message of 64 KiB", "pull", lambda: _binary(65_536), 1, 68 + 60),
            _published("16 messages of 40 bytes, to queues", "queue", lambda: _text(40), 16, 80),
        ],
    )
    show(
        "Read units of one receive, by what waits or is in flight in one partition",
        ["messages", "backlog", "in flight, first look", "in flight, units a second"],
        [_growth(count) for count in (100, 1_000, 10_000)],
    )


def _life(what: str, count: int, make: Callable[[], dict[str, Any]], once: bool = False) -> Any:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work")
    messages = [make() for _ in range(count)]
    if once:
        messages = [message | {"deduplication_id": "one"} for message in messages]
    world.engine.reset_capacity()
    assert alice.post("/queues/work/messages", {"messages": messages}).status == 201
    held = alice.receive("work")
    receipts = [message["receipt"] for message in held]
    gone = alice.post("/queues/work/messages/delete", {"receipts": receipts}).json["deleted"]
    assert len(gone) == count
    used = world.engine.capacity()
    written = used["write_units"]
    return what, count, written, written / count, used["read_units"]


def _published(
    what: str, protocol: str, make: Callable[[], dict[str, Any]], count: int, bound: int
) -> Any:
    world = World()
    alice = world.client("alice")
    alice.put("/topics/news")
    for number in range(20):
        _subscribe(alice, protocol, number)
    messages = [make() for _ in range(count)]
    world.engine.reset_capacity()
    alice.post("/topics/news/messages", {"messages": messages})
    world.run_stream("fan_out")
    for number in range(20):
        place = f"/queues/in{number}" if protocol == "queue" else _subscription(number)
        held = alice.post(f"{place}/messages/receive", {"max": 16}).json["messages"]
        receipts = [message["receipt"] for message in held]
        gone = alice.post(f"{place}/messages/delete", {"receipts": receipts}).json["deleted"]
        assert len(gone) == count
    return what, count, world.engine.capacity()["write_units"], bound


def _subscribe(client: Client, protocol: str, number: int) -> None:
    body = {"protocol": protocol}
    if protocol == "queue":
        client.put(f"/queues/in{number}")
        body["endpoint"] = f"in{number}"
    client.put(_subscription(number), body)


def _subscription(number: int) -> str:
    return f"/topics/news/subscriptions/sub{number}"


def _growth(count: int) -> Any:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1, "visibility_timeout_seconds": 3_600})
    for _ in range(count):
        alice.send("work", "x" * 40)
    backlog = _read_units(world, [lambda: alice.receive("work", 1)])
    while len(alice.receive("work")) == 16:
        pass
    first = _read_units(world, [lambda: alice.receive("work", 1)])
    alone = World()
    other = alone.client("alice")
    other.put("/queues/work", {"partitions": 1})
    more = _per_second(world, alice) - _per_second(alone, other)
    return count, backlog, first, more


def _per_second(world: World, client: Client) -> float:
    """Read units a second of a consumer that looks five times a second."""
    seconds = 120
    calls: list[Callable[[], object]] = []
    for _ in range(seconds * 5):
        calls += [lambda: world.clock.pass_seconds(0.2), lambda: client.receive("work", 1)]
    return _read_units(world, calls) / seconds


def _read_units(world: World, calls: Iterable[Callable[[], object]]) -> float:
    before = world.engine.capacity()["read_units"]
    for call in calls:
        call()
    return float(world.engine.capacity()["read_units"] - before)


def _text(size: int) -> dict[str, Any]:
    return {"body": "".join(_RANDOM.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))}


def _binary(size: int) -> dict[str, Any]:
    return {"body_base64": base64.b64encode(_RANDOM.randbytes(size)).decode()}
