"""Read units of single calls, by backlog, messages in flight and partitions, and of a sweep.

Each count has a separate world, so that two runs give the same figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cirrusmq.base import ulid
from cirrusmq_lambda import figures
from cirrusmq_local.testing.world import Client, World

BODY_BYTES = 100
BATCH = 16
ENOUGH = 8
"""Messages for each partition, so that almost none is empty."""
BUSY = 10
"""Queues with messages at a sweep."""
LOOKS_A_SECOND = 5
_SECONDS = 120
_LOOKS = 100
"""Number of scans for a mean."""
_LEASE_SECONDS = 43_200
"""Maximum lease, so that messages stay in flight."""


def backlogs(counts: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Yields (waiting messages in one partition, read units of a receive)."""
    world, alice = _world_with_queue()
    sent = 0
    for count in counts:
        for _ in range(count - sent):
            alice.send("work", "x" * BODY_BYTES)
        sent = count
        yield count, _read(world, lambda: alice.receive("work", 1))


def in_flight(counts: Sequence[int]) -> Iterator[tuple[int, float, float]]:
    """Yields (messages in flight, read units of a first scan, read units of a second of scans)."""
    world, alice = _world_with_queue()
    sent = 0
    for count in counts:
        for _ in range(count - sent):
            alice.send("work", "x" * BODY_BYTES)
        while alice.receive("work", visibility_timeout_seconds=_LEASE_SECONDS):
            pass
        sent = count
        world.clock.pass_seconds(60)  # receivers' cached heads have expired
        first = _read(world, lambda: alice.receive("work", 1))
        yield count, first, _looking(world, alice)


def shown_and_repeated(count: int) -> tuple[float, float]:
    """Returns read units of a queue's GET, and of a repeated receive 20 receives later."""
    world, alice = _world_with_queue()
    for _ in range(count):
        alice.send("work", "x" * BODY_BYTES)
    world.run_stream("meter")
    shown = _read(world, lambda: alice.get("/queues/work"))
    token = ulid.encode(world.clock.now_ms(), world.random.randbytes(10))
    alice.receive("work", BATCH, attempt=token)
    for _ in range(20):
        alice.receive("work", BATCH)
    repeat = _read(world, lambda: alice.receive("work", BATCH, attempt=token, repeat=True))
    return shown, repeat


def held_groups(count: int) -> float:
    """Returns the maximum read units of ten scans of an ordered queue with all groups leased."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1, "ordered": True})
    for first in range(0, count, 10):
        groups = [{"body": "x" * BODY_BYTES, "group": str(first + n)} for n in range(10)]
        alice.post("/queues/work/messages", {"messages": groups})
    while alice.receive("work", visibility_timeout_seconds=_LEASE_SECONDS, wait_seconds=20):
        pass
    return max(_read(world, lambda: alice.receive("work", BATCH)) for _ in range(10))


def chores(count: int) -> tuple[float, float, float]:
    """Returns seconds until used-up messages are dead letters, and each one's read and write units.

    `count`: used-up messages of one partition, from which a consumer receives each second.
    """
    world, alice = _world_with_queue()
    alice.put("/queues/dead")
    alice.patch("/queues/work", {"dead_letter": {"queue": "dead", "max_receives": 1}})
    for _ in range(count // BATCH):
        alice.send("work", *["x" * BODY_BYTES] * BATCH)
    while alice.receive("work", visibility_timeout_seconds=600):
        pass
    world.clock.pass_seconds(600)
    begun_ms = world.clock.now_ms()

    def move() -> None:
        while not alice.receive("work", BATCH) and world.invoked:
            world.settle()
            world.clock.pass_seconds(1)

    write, read = world.units(move)
    return (world.clock.now_ms() - begun_ms) / 1000, read / count, write / count


def partitions(count: int) -> tuple[float, float, float]:
    """Returns mean read units of a receive: of no message, of one, of some in each partition."""
    nothing, alone, enough = (receive_units(count, waiting=each) for each in (0, 1, ENOUGH * count))
    return nothing, alone, enough


def receive_units(partition_count: int, *, waiting: int) -> float:
    """Returns mean read units of a receive of one message without a wait, attributes cached."""
    world, alice = _world_with_queue(partition_count)
    for _ in range(waiting):
        alice.send("work", "x" * BODY_BYTES)
    alice.receive("work", 1, visibility_timeout_seconds=1)
    used = 0.0
    for _ in range(_LOOKS):
        # Longer than the leases and the life of receivers' cached heads.
        world.clock.pass_seconds(31)
        used += _read(world, lambda: alice.receive("work", 1, visibility_timeout_seconds=1))
    return used / _LOOKS


def sweep_units(idle: int) -> float:
    """Returns read units of a sweep with `idle` idle queues, half with a maximum age."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/dead")
    by_age = {"dead_letter": {"queue": "dead", "max_age_seconds": _LEASE_SECONDS}}
    for number in range(idle):
        alice.put(f"/queues/idle-{number}", by_age if number % 2 else {})
    for number in range(BUSY):
        alice.put(f"/queues/busy-{number}", by_age if number % 2 else {})
        alice.send(f"busy-{number}", "x" * BODY_BYTES)
    world.settle()
    world.clock.pass_seconds(7_200)
    for _ in range(2):  # idle queues' counters are removed, and the hour's gauges are written
        world.run("sweep")
    figures.send_to(lambda values: None)  # so that the sweep reads for them, as in an account
    try:
        return world.units(lambda: world.run("sweep"))[1]
    finally:
        figures.send_to(None)


def _looking(world: World, client: Client) -> float:
    """Returns read units per second of a consumer that scans five times and finds nothing."""

    def look() -> None:
        for _ in range(_SECONDS * LOOKS_A_SECOND):
            world.clock.pass_seconds(1 / LOOKS_A_SECOND)
            client.receive("work", 1)

    return _read(world, look) / _SECONDS


def _read(world: World, call: Callable[[], object]) -> float:
    """Returns read units of the table of messages."""
    world.engine.reset_capacity()
    call()
    return float(world.engine.capacity()["by_table"]["Messages"]["read_units"])


def _world_with_queue(partition_count: int = 1) -> tuple[World, Client]:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": partition_count})
    return world, alice
