"""Growth of a call's cost with the backlog, messages in flight, subscriptions and partitions.

All figures are counted, so that two runs give the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..drawing.tables import show
from . import reads
from .designs import DESIGNS
from .lives import BATCH_1_KB, SINGLE_1_KB, SINGLE_64_KB, published_life

COUNTS = (100, 1_000, 10_000)
SUBSCRIBERS = (1, 3, 10, 30, 100)
PARTITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 255)
IDLE = (0, 10, 100, 1_000)


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Counted units; each row begins with the growing number."""

    backlogs: Sequence[tuple[int, float]]
    """Read units of a receive, by waiting messages in one partition."""
    in_flight: Sequence[tuple[int, float, float]]
    """Read units of a first scan, and of a second of scans, by messages in flight in one."""
    others_in_flight: dict[str, Sequence[tuple[int, float]]]
    """Read units of a scan in each other design, by messages in flight."""
    subscriptions: Sequence[tuple[int, float, float, float]]
    """Write units of one message of 1 KB, of each of 16, and of one of 64 KB."""
    partitions: Sequence[tuple[int, float, float, float]]
    """Read units of a receive: nothing waits, one message alone, some in each (means)."""


def run() -> None:
    """Prints the tables up to 10,000 messages."""
    show_growth(measure(COUNTS))
    _show_bounds()


def measure(counts: Sequence[int]) -> Growth:
    """Counts the growth, up to the last of these numbers of messages."""
    return Growth(
        backlogs=list(reads.backlogs(counts)),
        in_flight=list(reads.in_flight(counts)),
        others_in_flight={
            name: [(count, design.look(count, reads.BODY_BYTES, reads.BATCH)) for count in counts]
            for name, design in DESIGNS.items()
            # A scan of an index of keys costs the same as one of an index of all attributes.
            if design.entry_bytes is None
        },
        subscriptions=[(count, *subscriptions(count)) for count in SUBSCRIBERS],
        partitions=[(count, *reads.partitions(count)) for count in PARTITIONS],
    )


def subscriptions(count: int) -> tuple[float, float, float]:
    """Returns write units of one message of 1 KB, of each of 16, and of one of 64 KB."""
    one, _ = published_life(SINGLE_1_KB, "pull", count)
    batch, _ = published_life(BATCH_1_KB, "pull", count)
    large, _ = published_life(SINGLE_64_KB, "pull", count)
    return one, batch / BATCH_1_KB.count, large


def show_growth(growth: Growth) -> None:
    """Prints the counts."""
    show(
        "Read units of one receive, by the backlog of one partition",
        ["backlog", "units"],
        growth.backlogs,
    )
    others = growth.others_in_flight
    show(
        f"Read units by what is in flight in one partition, messages of {reads.BODY_BYTES} bytes",
        [
            "in flight",
            "ours, first look",
            f"ours, a second ({reads.LOOKS_A_SECOND} looks)",
            *(f"{name}, each look" for name in others),
        ],
        [
            [*row, *(units for _, units in looks)]
            for row, *looks in zip(growth.in_flight, *others.values(), strict=True)
        ],
    )
    show(
        "Write units from publishing to the last deletion, by subscriptions that pull",
        ["subscriptions", "one of 1 KB", "16 of 1 KB, each", "one of 64 KB"],
        growth.subscriptions,
    )
    show(
        "Read units of one receive, by partitions",
        ["partitions", "nothing waits", "one waits alone (mean)", "enough wait (mean)"],
        growth.partitions,
    )


def _show_bounds() -> None:
    show(
        "Read units of calls with a bound of their own, by the messages of one partition",
        ["messages", "GET of the queue", "repeat of a receive", "look at as many held groups"],
        [(count, *reads.shown_and_repeated(count), reads.held_groups(count)) for count in COUNTS],
    )
    show(
        "Until used-up messages of a partition, 16 of a send, are dead letters; a receive a second",
        ["messages", "seconds", "read units of each", "write units of each"],
        [(count, *reads.chores(count)) for count in COUNTS],
    )
    swept = [(count, reads.sweep_units(count)) for count in IDLE]
    show(
        "Read units of a minute's sweep, by queues that hold nothing, beside ten that do",
        ["idle queues", "units", "units a queue that holds something"],
        [(count, units, units / reads.BUSY) for count, units in swept],
    )
