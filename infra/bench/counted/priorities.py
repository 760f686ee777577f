"""Units of sends and receives in queues with priorities, by number of partitions."""

from __future__ import annotations

from cirrusmq_local.testing.world import Client, World

LEVELS = 16


def priority_rows() -> list[tuple[str, float, float]]:
    """Returns (call, write units, read units) over all tables: cached attributes."""
    rows = []
    for partitions in (1, 4, 16):
        name = f"{partitions} partition{'s' if partitions > 1 else ''}"
        rows += [
            (f"send one message, {name}", *_sent(partitions)),
            (f"receive one, {name}, within 0.5 s of a look", *_received(partitions, 0)),
            (f"receive one, {name}, a second after a look", *_received(partitions, 1)),
            (f"receive one that came alone, {name}", *_received_alone(partitions)),
            (f"look at an empty queue, {name}", *_looked(partitions)),
        ]
    return rows


def _sent(partitions: int) -> tuple[float, float]:
    world, alice = _queue(partitions)
    return world.units(lambda: alice.send("work", "x" * 100, priority=LEVELS))


def _received(partitions: int, seconds: float) -> tuple[float, float]:
    """Returns mean units of four receives of one message, that time apart."""
    world, alice = _queue(partitions)
    for number in range(40 * partitions):
        alice.send("work", "x" * 100, priority=number % LEVELS + 1)
    world.clock.pass_seconds(5)
    alice.receive("work", 1)
    written = read = 0.0
    for _ in range(4):
        world.clock.pass_seconds(seconds)
        # Attributes of the queue are read again each second, here beside the count.
        alice.get("/queues/work")
        units = world.units(lambda: alice.receive("work", 1))
        written, read = written + units[0], read + units[1]
    return written / 4, read / 4


def _received_alone(partitions: int) -> tuple[float, float]:
    """Returns mean units of the receives of 64 messages that come a minute after each other."""
    world, alice = _queue(partitions)
    written = read = 0.0
    for _ in range(64):
        world.clock.pass_seconds(60)
        alice.send("work", "x" * 100, priority=LEVELS)
        alice.get("/queues/work")
        units = world.units(lambda: alice.receive("work", 1))
        written, read = written + units[0], read + units[1]
    return written / 64, read / 64


def _looked(partitions: int) -> tuple[float, float]:
    world, alice = _queue(partitions)
    return world.units(lambda: alice.receive("work", 1))


def _queue(partitions: int) -> tuple[World, Client]:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"priorities": LEVELS, "partitions": partitions})
    alice.send("work", "first")
    alice.receive("work")
    return world, alice
