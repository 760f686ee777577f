"""Draws the manual's charts from the counts of `growth`, up to 100,000 messages.

Two runs write the same files.
"""

from __future__ import annotations

from pathlib import Path

from ..drawing.svg import draw_bars, draw_lines
from . import growth, reads
from .designs import DESIGNS, HIDDEN_UNTIL_FILTER
from .growth import Growth
from .lives import BATCH_1_KB, SINGLE_1_KB, SINGLE_64_KB, Requests, our_life

FOLDER = Path(__file__).parents[1] / "charts"
COUNTS = (*growth.COUNTS, 100_000)


def run() -> None:
    """Prints the tables of the drawn figures, and writes the charts."""
    counted = growth.measure(COUNTS)
    growth.show_growth(counted)
    FOLDER.mkdir(exist_ok=True)
    for name, chart in {
        "write_units": draw_lives(),
        "in_flight": _draw_in_flight(counted),
        "subscriptions": _draw_subscriptions(counted),
        "partitions": _draw_partitions(counted),
    }.items():
        (FOLDER / f"{name}.svg").write_text(chart)
        print(f"wrote {FOLDER.name}/{name}.svg")


def draw_lives() -> str:
    """Draws write units of a message, ours beside other designs."""
    panels = {}
    for workload, name in (
        (SINGLE_1_KB, "1 KB, one by one"),
        (BATCH_1_KB, "1 KB, in batches of 16"),
        (SINGLE_64_KB, "64 KB, one by one (ours: in S3)"),
    ):
        written = {"ours": our_life(workload, Requests())[0]}
        for other, design in DESIGNS.items():
            written[other] = design.life(workload.size, workload.count)[0]
        panels[name] = {other: units / workload.count for other, units in written.items()}
    return draw_bars("Write units of a message that is sent, received and deleted", panels)


def _draw_in_flight(counted: Growth) -> str:
    ours = [(count, second / reads.LOOKS_A_SECOND) for count, _, second in counted.in_flight]
    return draw_lines(
        "Read units of a look into a partition, looking five times a second",
        "messages in flight in the partition",
        {"ours": ours, **counted.others_in_flight},
        ("ours", *DESIGNS),
    )


def _draw_subscriptions(counted: Growth) -> str:
    copied, _ = HIDDEN_UNTIL_FILTER.life(SINGLE_64_KB.size, 1)
    return draw_lines(
        "Write units of one published message of 64 KB, until all have deleted it",
        "subscriptions",
        {
            "ours": [(count, large) for count, _, _, large in counted.subscriptions],
            "a copy for each": [(count, count * copied) for count, *_ in counted.subscriptions],
        },
    )


def _draw_partitions(counted: Growth) -> str:
    spread = counted.partitions
    return draw_lines(
        "Read units of one receive",
        "partitions of the queue",
        {
            "nothing waits": [(count, empty) for count, empty, _, _ in spread],
            "one waits alone": [(count, alone) for count, _, alone, _ in spread],
            "enough wait": [(count, enough) for count, _, _, enough in spread],
        },
    )
