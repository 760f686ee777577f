"""Dollars a month for a consumer that waits, at the prices of `prices`.

A poll of 20 s follows the other. Its function waits for nearly all of that time, and Lambda bills
waiting as work: memory is what it costs. Reads are counted (`polls`), the month has 30 days.
"""

from __future__ import annotations

from . import prices
from .polls import POLL_SECONDS, idle_units

MONTH_SECONDS = 30 * 86_400
MEMORY_GB = {"512 MB": 0.5, "256 MB": 0.25}
PARTITIONS = 4


def month_dollars(memory_gb: float, units_of_a_poll: float) -> dict[str, float]:
    """What one consumer costs that waits all month and gets nothing, by line."""
    polls = MONTH_SECONDS / POLL_SECONDS
    calls = prices.HTTP_API_PER_MILLION + prices.LAMBDA_REQUESTS_PER_MILLION
    return {
        "Lambda time": MONTH_SECONDS * memory_gb * prices.LAMBDA_GB_SECOND,
        "reads": polls * units_of_a_poll * prices.READ_UNITS_PER_MILLION / prices.MILLION,
        "calls": polls * calls / prices.MILLION,
    }


def rows() -> list[list[str]]:
    """The lines of each memory size, and their sum."""
    units = idle_units(PARTITIONS)
    found = []
    for name, memory_gb in MEMORY_GB.items():
        lines = month_dollars(memory_gb, units)
        found.append([name, *(f"{each:,.2f}" for each in (*lines.values(), sum(lines.values())))])
    return found
