"""Dollars for waiting: a consumer that polls, and a function that waits for another one.

Polls of 20 s follow each other. The function waits for almost all of that time, and Lambda bills
the wait as work, by memory. Reads are counted (`polls`), the month has 30 days. A queue that
invokes a function costs nothing while it is empty; for each batch `call` waits until the function
has finished.
"""

from __future__ import annotations

from cirrusmq_local.commands import prices

from .lives import BATCH_1_KB, SINGLE_1_KB, Workload, handed_life
from .polls import POLL_SECONDS, idle_units

MONTH_SECONDS = 30 * 86_400
MEMORY_GB = {"512 MB": 0.5, "256 MB": 0.25}
PARTITIONS = 4
CALL_SECONDS = 0.025
"""Assumed for each of our calls, without the time for which `call` waits for the function."""
HANDING_GB_SECONDS = CALL_SECONDS * (prices.CALL_GB + prices.HOT_GB + prices.PUSH_GB)
"""For the three calls by which a batch is sent, seen by `fan_out` and passed on."""
HANDLER_SECONDS = (0.1, 1.0)
"""Times of the function for a batch."""


def month_dollars(memory_gb: float, units_of_a_poll: float) -> dict[str, float]:
    """Returns dollars, by line, for a consumer that waits all month without a message."""
    polls = MONTH_SECONDS / POLL_SECONDS
    calls = prices.HTTP_API_PER_MILLION + prices.LAMBDA_REQUESTS_PER_MILLION
    return {
        "Lambda time": MONTH_SECONDS * memory_gb * prices.LAMBDA_GB_SECOND,
        "reads": polls * units_of_a_poll * prices.READ_UNITS_PER_MILLION / prices.MILLION,
        "calls": polls * calls / prices.MILLION,
    }


def rows() -> list[list[str]]:
    """Returns the lines of each memory size, and their sum."""
    units = idle_units(PARTITIONS)
    found = []
    for name, memory_gb in MEMORY_GB.items():
        lines = month_dollars(memory_gb, units)
        found.append([name, *(f"{each:,.2f}" for each in (*lines.values(), sum(lines.values())))])
    return found


def handed_dollars(workload: Workload, handler_seconds: float) -> dict[str, float]:
    """Returns dollars, by line, for a million messages sent to a queue with a function.

    Each batch is sent by a call, seen by `fan_out`, and passed on by `call`; the function's own
    time is not included.
    """
    write_units, read_units = handed_life(workload, PARTITIONS)
    lines = {
        "writes": write_units * prices.WRITE_UNITS_PER_MILLION,
        "reads": read_units * prices.READ_UNITS_PER_MILLION,
        "HTTP API": prices.HTTP_API_PER_MILLION,
        "Lambda calls": 3 * prices.LAMBDA_REQUESTS_PER_MILLION,
        "Lambda time": HANDING_GB_SECONDS * prices.LAMBDA_GB_SECOND * prices.MILLION,
        "waiting for the function": handler_seconds
        * prices.PUSH_GB
        * prices.LAMBDA_GB_SECOND
        * prices.MILLION,
    }
    return {name: amount / workload.count for name, amount in lines.items()}


def handed_rows() -> list[list[str]]:
    """Returns the lines of single messages and of batches, by the function's time."""
    found = []
    for name, workload in (("singles", SINGLE_1_KB), ("batches of 16", BATCH_1_KB)):
        for seconds in HANDLER_SECONDS:
            lines = handed_dollars(workload, seconds)
            amounts = [f"{each:,.2f}" for each in (*lines.values(), sum(lines.values()))]
            found.append([f"1 KB, {name}, {seconds:g} s a batch", *amounts])
    return found
