"""Write and read units, counted by Amazon's rules: what a message costs, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq_local.testing import World

from . import bodies
from .growth import ENOUGH, receive_units
from .lives import (
    BATCH_64_KB,
    KNOWN_QUEUES,
    SINGLE_64_KB,
    SUBSCRIPTIONS,
    WORKLOADS,
    Workload,
    known_life,
    our_life,
    published_life,
)
from .table import show


def run() -> None:
    """Print the tables."""
    _show_lives()
    _show_reads()
    _show_published()


def _show_lives() -> None:
    lives = {
        workload.name: [
            our_life(workload),
            *(known_life(make, workload) for make in KNOWN_QUEUES.values()),
        ]
        for workload in WORKLOADS
    }
    heads = ["sent, received, deleted", "ours", *KNOWN_QUEUES]
    for kind, place in (("Write", 0), ("Read", 1)):
        rows = [[name, *(units[place] for units in each)] for name, each in lives.items()]
        show(f"{kind} units of messages that travel together, by the queue's design", heads, rows)
    once = our_life(WORKLOADS[0], deduplication_id="one")
    print(f"\nOne of 100 bytes, strictly deduplicated: {once[0]:g} write, {once[1]:g} read units.")


def _show_reads() -> None:
    """Where the read units of small messages come from."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work")
    body = "x" * 100
    first = _read(world, lambda: alice.send("work", body))
    further = _read(world, lambda: alice.send("work", body))
    receipts = [message["receipt"] for message in alice.receive("work")]
    deleted = _read(
        world, lambda: alice.post("/queues/work/messages/delete", {"receipts": receipts})
    )
    rows: list[tuple[object, ...]] = [
        ("first send after a start: the queue's attributes, its count of messages", first),
        ("any further send", further),
        ("delete", deleted),
    ]
    for count in (1, 4, 16):
        rows += [
            (f"receive, {waiting}, partitions: {count}", receive_units(count, waiting=messages))
            for waiting, messages in (
                ("messages wait in each", ENOUGH * count),
                ("one waits alone (mean)", 1),
                ("nothing waits", 0),
            )
        ]
    show("Where read units come from: one call, messages of 100 bytes", ["call", "units"], rows)
    print("\nA look at a partition costs half a unit. Attributes are cached for a second, counts")
    print("for a minute: one unit a second for each queue that an execution environment serves.")


def _show_published() -> None:
    small = Workload(name="16 of 40 bytes", count=16, make=lambda: bodies.text(40))
    rows = []
    for workload, protocol in (
        (SINGLE_64_KB, "pull"),
        (SINGLE_64_KB, "queue"),
        (BATCH_64_KB, "pull"),
        (small, "queue"),
    ):
        written, read = published_life(workload, protocol)
        rows.append((workload.name, protocol, written, read, written / workload.count))
    show(
        f"Units from publishing to the last deletion, {SUBSCRIPTIONS} subscriptions",
        ["published", "to", "write units", "read units", "write units a message"],
        rows,
    )


def _read(world: World, call: Callable[[], Any]) -> float:
    world.engine.reset_capacity()
    call()
    return float(world.engine.capacity()["read_units"])
