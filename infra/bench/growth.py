"""How the cost of a call grows: with the backlog, in flight, with subscriptions and partitions.

`growth` goes to 10,000 messages, `charts` to 100,000, and writes the charts. All is counted, so
that two runs give the same figures and files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cirrusmq.base import ulid
from cirrusmq_local.testing.world import Client, World

from . import bodies
from .charts import Points, draw_bars, draw_lines
from .known_queues import HiddenUntilFilter, KnownQueue, PriorityQueueSample, VisibilityIndex
from .lives import (
    BATCH_1_KB,
    KNOWN_QUEUES,
    SINGLE_1_KB,
    SINGLE_64_KB,
    known_life,
    our_life,
    published_life,
)
from .table import show

CHARTS = Path(__file__).parent / "charts"
COUNTS = (100, 1_000, 10_000)
LONG_COUNTS = (*COUNTS, 100_000)
SUBSCRIBERS = (1, 3, 10, 30, 100)
PARTITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 255)
IDLE = (0, 10, 100, 1_000)
BUSY = 10
LOOKS_A_SECOND = 5
SECONDS = 120
LEASE_SECONDS = 43_200
"""The longest, so that what is in flight stays so."""
ENOUGH = 8
"""Messages for each partition, so that hardly one is empty."""
LOOKS = 100
"""Of which a mean is made."""
BATCH = 16
BODY_BYTES = 100
DESIGNS: dict[str, Callable[[], KnownQueue]] = {
    "index on visibility": VisibilityIndex,
    "AWS sample": PriorityQueueSample,
    "no index, filter": HiddenUntilFilter,
}


def run() -> None:
    """Print the tables up to 10,000 messages."""
    _measure(COUNTS)


def run_charts() -> None:
    """Print the tables up to 100,000 messages, and write the charts."""
    CHARTS.mkdir(exist_ok=True)
    for name, chart in _measure(LONG_COUNTS).items():
        (CHARTS / f"{name}.svg").write_text(chart)
        print(f"wrote {CHARTS.name}/{name}.svg")


def _measure(counts: Sequence[int]) -> dict[str, str]:
    backlog = list(backlogs(counts))
    show(
        "Read units of one receive, by the backlog of one partition", ["backlog", "units"], backlog
    )
    held = list(in_flight(counts))
    known: dict[str, Points] = {
        name: list(known_in_flight(make, counts)) for name, make in DESIGNS.items()
    }
    show(
        f"Read units by what is in flight in one partition, messages of {BODY_BYTES} bytes",
        [
            "in flight",
            "ours, first look",
            f"ours, a second ({LOOKS_A_SECOND} looks)",
            *(f"{name}, each look" for name in DESIGNS),
        ],
        [
            [count, first, second, *(dict(each).get(count, "not tried") for each in known.values())]
            for count, first, second in held
        ],
    )
    show(
        "Read units of calls with a bound of their own, by the messages of one partition",
        ["messages", "GET of the queue", "repeat of a receive", "look at as many held groups"],
        [
            (count, *shown_and_repeated(count), held_groups(count))
            for count in counts
            if count <= COUNTS[-1]
        ],
    )
    fanned = [(count, *subscriptions(count)) for count in SUBSCRIBERS]
    show(
        "Write units from publishing to the last deletion, by subscriptions that pull",
        ["subscriptions", "one of 1 KB", "16 of 1 KB, each", "one of 64 KB"],
        fanned,
    )
    spread = [(count, *partitions(count)) for count in PARTITIONS]
    show(
        "Read units of one receive, by partitions",
        ["partitions", "nothing waits", "one waits alone (mean)", "enough wait (mean)"],
        spread,
    )
    show(
        "Read units of a minute's sweep, by queues that hold nothing, beside ten that do",
        ["idle queues", "units", "units a queue that holds something"],
        [(count, units, units / BUSY) for count, units in ((n, sweep_units(n)) for n in IDLE)],
    )
    looks: dict[str, Points] = {
        "ours": [(count, second / LOOKS_A_SECOND) for count, _, second in held]
    }
    copied = known_life(HiddenUntilFilter, SINGLE_64_KB)[0]
    return {
        "write_units": _draw_lives(),
        "in_flight": draw_lines(
            "Read units of a look into a partition, looking five times a second",
            "messages in flight in the partition",
            looks | known,
            ("ours", *KNOWN_QUEUES),
        ),
        "subscriptions": draw_lines(
            "Write units of one published message of 64 KB, until all have deleted it",
            "subscriptions",
            {
                "ours": [(count, large) for count, _, _, large in fanned],
                "a copy for each": [(count, count * copied) for count in SUBSCRIBERS],
            },
        ),
        "partitions": draw_lines(
            "Read units of one receive",
            "partitions of the queue",
            {
                "nothing waits": [(count, empty) for count, empty, _, _ in spread],
                "one waits alone": [(count, alone) for count, _, alone, _ in spread],
                "enough wait": [(count, enough) for count, _, _, enough in spread],
            },
        ),
    }


def backlogs(counts: Sequence[int]) -> Iterator[tuple[int, float]]:
    """(messages that wait in one partition, read units of a receive)."""
    world, alice = _world_with_queue()
    sent = 0
    for count in counts:
        for _ in range(count - sent):
            alice.send("work", "x" * BODY_BYTES)
        sent = count
        yield count, _read(world, lambda: alice.receive("work", 1))


def in_flight(counts: Sequence[int]) -> Iterator[tuple[int, float, float]]:
    """(messages in flight, read units of a first look, read units a second of looking)."""
    world, alice = _world_with_queue()
    sent = 0
    for count in counts:
        for _ in range(count - sent):
            alice.send("work", "x" * BODY_BYTES)
        while alice.receive("work", visibility_timeout_seconds=LEASE_SECONDS):
            pass
        sent = count
        world.clock.pass_seconds(60)  # receivers have forgotten what they know of the head
        first = _read(world, lambda: alice.receive("work", 1))
        yield count, first, _looking(world, alice)


def shown_and_repeated(count: int) -> tuple[float, float]:
    """Read units of a GET of a queue, and of a receive's repeat 20 receives later."""
    world, alice = _world_with_queue()
    world.client("operator", admin=True)  # a deployment has its secret from its first admin key
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
    """Read units of a look at an ordered queue all of whose groups are held, the dearest of ten."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1, "ordered": True})
    for first in range(0, count, 10):
        groups = [{"body": "x" * BODY_BYTES, "group": str(first + n)} for n in range(10)]
        alice.post("/queues/work/messages", {"messages": groups})
    while alice.receive("work", visibility_timeout_seconds=LEASE_SECONDS, wait_seconds=20):
        pass
    return max(_read(world, lambda: alice.receive("work", BATCH)) for _ in range(10))


def known_in_flight(
    make: Callable[[], KnownQueue], counts: Sequence[int]
) -> Iterator[tuple[int, float]]:
    """(messages in flight, read units of a look for a batch that finds nothing)."""
    queue = make()
    body = bodies.content(bodies.text(BODY_BYTES))
    sent = 0
    for count in counts:
        for _ in range(count - sent):
            queue.lease(queue.send(body))
        sent = count
        queue.table.reset()
        if list(queue.find(BATCH)):
            raise RuntimeError("what is in flight was found")
        yield count, queue.table.units()[1]


def subscriptions(count: int) -> tuple[float, float, float]:
    """Write units of one message of 1 KB, of each of 16, and of one of 64 KB."""
    one, _ = published_life(SINGLE_1_KB, "pull", count)
    batch, _ = published_life(BATCH_1_KB, "pull", count)
    large, _ = published_life(SINGLE_64_KB, "pull", count)
    return one, batch / BATCH_1_KB.count, large


def partitions(count: int) -> tuple[float, float, float]:
    """Read units of a receive: nothing waits, one message alone, some in each (means)."""
    nothing, alone, enough = (receive_units(count, waiting=each) for each in (0, 1, ENOUGH * count))
    return nothing, alone, enough


def receive_units(partition_count: int, *, waiting: int) -> float:
    """Mean read units of a receive of one message without waiting, attributes at hand."""
    world, alice = _world_with_queue(partition_count)
    for _ in range(waiting):
        alice.send("work", "x" * BODY_BYTES)
    alice.receive("work", 1, visibility_timeout_seconds=1)
    used = 0.0
    for _ in range(LOOKS):
        # Long enough for the leases and for what receivers remember about the heads.
        world.clock.pass_seconds(31)
        used += _read(world, lambda: alice.receive("work", 1, visibility_timeout_seconds=1))
    return used / LOOKS


def sweep_units(idle: int) -> float:
    """Read units of a sweep with so many idle queues, half of which give up by age."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/dead")
    by_age = {"dead_letter": {"queue": "dead", "max_age_seconds": LEASE_SECONDS}}
    for number in range(idle):
        alice.put(f"/queues/idle-{number}", by_age if number % 2 else {})
    for number in range(BUSY):
        alice.put(f"/queues/busy-{number}", by_age if number % 2 else {})
        alice.send(f"busy-{number}", "x" * BODY_BYTES)
    world.settle()
    world.clock.pass_seconds(7_200)
    for _ in range(2):  # what has become idle is forgotten, and the hour's gauges are written
        world.run("sweep")
    before = world.engine.capacity()["read_units"]
    world.run("sweep")
    return float(world.engine.capacity()["read_units"] - before)


def _looking(world: World, client: Client) -> float:
    """Read units a second of a consumer that looks five times a second and finds nothing."""

    def look() -> None:
        for _ in range(SECONDS * LOOKS_A_SECOND):
            world.clock.pass_seconds(1 / LOOKS_A_SECOND)
            client.receive("work", 1)

    return _read(world, look) / SECONDS


def _read(world: World, call: Callable[[], object]) -> float:
    """Read units of the table of messages."""
    world.engine.reset_capacity()
    call()
    return float(world.engine.capacity()["by_table"]["Messages"]["read_units"])


def _world_with_queue(partition_count: int = 1) -> tuple[World, Client]:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": partition_count})
    return world, alice


def _draw_lives() -> str:
    panels = {}
    for workload, name in (
        (SINGLE_1_KB, "1 KB, one by one"),
        (BATCH_1_KB, "1 KB, in batches of 16"),
        (SINGLE_64_KB, "64 KB, one by one"),
    ):
        designs = {"ours": our_life(workload)[0]}
        designs |= {other: known_life(make, workload)[0] for other, make in KNOWN_QUEUES.items()}
        panels[name] = {other: units / workload.count for other, units in designs.items()}
    return draw_bars("Write units of a message that is sent, received and deleted", panels)
