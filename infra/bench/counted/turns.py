"""Units of sends and receives in fair queues, by number of groups."""

from __future__ import annotations

from cirrusmq_local.testing.world import Client, World

POLL_SECONDS = 20


def turn_rows() -> list[tuple[str, float, float]]:
    """Returns (call, write units, read units) over all tables: cached attributes, 4 partitions."""
    rows = [
        ("send one message of 100 bytes", *_sent(1, 1)),
        ("send 16 of one group", *_sent(16, 1)),
        ("send 16 of 16 groups", *_sent(16, 16)),
        ("receive 16 of one group, sent together", *_received(16, 1)),
        ("receive 16, of four groups or more", *_received(16, 100)),
    ]
    for groups in (1, 100, 1_000):
        rows.append((f"receive one, {groups:,} groups wait", *_received(1, groups)))
    for limit in (16, 256):
        rows.append((f"look at a group that has its {limit} in flight", *_looked(limit)))
    for groups in (0, 1, 100, 1_000):
        rows.append((f"a poll of {POLL_SECONDS} s, {groups:,} groups in flight", *_polled(groups)))
    return rows


def _sent(count: int, groups: int) -> tuple[float, float]:
    world, alice = _queue()
    messages = [{"body": "x" * 100, "group": f"g{n % groups}"} for n in range(count)]
    body = {"messages": messages}
    alice.post("/queues/work/messages", body)
    return world.units(lambda: alice.post("/queues/work/messages", body))


def _received(limit: int, groups: int) -> tuple[float, float]:
    """Returns mean units of four receives of up to `limit` messages."""
    world, alice = _queue()
    for number in range(max(8, groups)):
        alice.send("work", *["x" * 100] * 16, group=f"g{number % groups}")
    world.clock.pass_seconds(5)
    alice.receive("work", limit)

    def receive() -> None:
        for _ in range(4):
            if len(alice.receive("work", limit)) != limit:
                raise RuntimeError("a receive got less than there is")

    written, read = world.units(receive)
    return written / 4, read / 4


def _looked(limit: int) -> tuple[float, float]:
    """Returns units of a receive that gets nothing from a group at its limit."""
    world, alice = _queue(max_in_flight=limit)
    for _ in range(limit + 16):
        alice.send("work", "x" * 100, group="limited")
    while alice.receive("work"):
        pass
    world.clock.pass_seconds(5)
    alice.receive("work", 1)
    return world.units(lambda: alice.receive("work", 1))


def _polled(groups: int) -> tuple[float, float]:
    """Returns units of a poll that gets nothing, while each group has a message in flight."""
    world, alice = _queue()
    for number in range(groups):
        alice.send("work", "x" * 100, group=f"g{number}")
    while alice.receive("work"):
        pass
    world.clock.pass_seconds(5)
    return world.units(lambda: alice.receive("work", 1, wait_seconds=POLL_SECONDS))


def _queue(**attributes: int) -> tuple[World, Client]:
    world = World(seed=1)
    alice = world.client("alice")
    alice.put("/queues/work", {"fair": True, "visibility_timeout_seconds": 43_200, **attributes})
    return world, alice
