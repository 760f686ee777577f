"""Monthly dollars with everything included: an idle deployment, and the messages' part.

Beside the units and calls of `cost`, this counts log lines, and exports, backup and storage of the
tables. Messages are single ones of 1 KB, received soon.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cirrusmq_local.cloud.cloudformation import StackTemplate
from cirrusmq_local.commands import prices

from ..drawing.tables import show
from . import bill, own_lives, waiting
from .cost import (
    METER_RECORDS,
    USED_AT_BEST,
    Usage,
    carried_usage,
    gathered_usage,
    sqs_dollars,
    sqs_gathered_dollars,
)
from .lingers import lingered
from .lives import (
    BATCH_1_KB,
    SINGLE_1_KB,
    Workload,
    carried_life,
    gathered_life,
    grouped_life,
    handed_life,
    metering_units,
)
from .own_lives import own_life
from .waiting import MONTH_SECONDS

MONTHS = (1, 10, 100, 1_000)
"""Millions of messages."""
ACCESS_BYTES = {"short": 120, "full": 250, "off": 0}
"""Assumed: log bytes of a call, by the parameter AccessLog."""
METER_LOG_BYTES = 900
"""Assumed: log bytes of a batch, which has up to 1,000 changes."""
CHANGES = 3
USAGE_BYTES = 400
"""Assumed: size of a usage record, which is stored for 40 days, exported and backed up."""
OPEN_SECONDS = 60
"""Assumed, unless given: time for which a message, 1 KB and its keys, waits and is in flight."""
STORED_BYTES = 1_300
Lines = dict[str, float]


TERMS = {
    "savings plans": prices.TABLE_PLAN_OFF,
    "reserved 1 year": prices.RESERVED_OFF[1],
    "reserved 3 years": prices.RESERVED_OFF[3],
}
"""Discount on tables' units by term; savings plans are for tables on demand."""


def kept_dollars(gigabytes: float) -> Lines:
    """Returns dollars for a month of stored messages, which each night exports in full."""
    return {
        "exports": gigabytes * bill.NIGHTS * prices.EXPORT_GB,
        "storage, backup": gigabytes * (prices.TABLE_GB_MONTH + prices.BACKUP_GB_MONTH),
    }


def whole_dollars(
    usage: Usage,
    *,
    used: float | None,
    direct: bool,
    access: str = "short",
    open_seconds: float = OPEN_SECONDS,
) -> Lines:
    """Returns a month's dollars for a million messages, everything included, by line.

    open_seconds: time for which a message waits and is in flight.
    """
    lines = usage.dollars(used)
    calls = usage.calls / usage.messages * prices.MILLION
    if direct:
        lines["HTTP API"] = 0.0
    batches = CHANGES * prices.MILLION / METER_RECORDS
    logged = batches * METER_LOG_BYTES + (0 if direct else calls * ACCESS_BYTES[access])
    recorded = batches * USAGE_BYTES / prices.GB
    stored = prices.MILLION * STORED_BYTES * open_seconds / MONTH_SECONDS / prices.GB
    lines["logs"] = bill.log_dollars(logged)
    # A night exports the whole table of messages, and a day's changes of usage, old and new.
    exports = 3 * recorded * prices.EXPORT_GB
    usage_kept = recorded * 40 / prices.MONTH_DAYS
    others = usage_kept * (prices.TABLE_GB_MONTH + prices.BACKUP_GB_MONTH)
    kept = kept_dollars(stored)
    return lines | {
        "exports": kept["exports"] + exports,
        "storage, backup": kept["storage, backup"] + others,
    }


def with_terms(lines: Lines, tables_off: float) -> Lines:
    """Returns the lines with a discount for tables, and a savings plan for Lambda's time."""
    off = {"writes": tables_off, "reads": tables_off, "Lambda time": prices.LAMBDA_PLAN_OFF}
    return {name: amount * (1 - off.get(name, 0.0)) for name, amount in lines.items()}


def least_units_dollars() -> float:
    """Returns a month's dollars for the minimum provisioned units of the template's defaults."""
    found = StackTemplate(bill.TEMPLATE, "cirrusmq", "us-east-1").document["Parameters"]
    hours = MONTH_SECONDS / 3_600
    dollars = 0.0
    for table in ("DirectoryUnits", "MessagesUnits", "UsageUnits"):
        reads, _, writes, _, _ = map(int, found[table]["Default"].split(","))
        dollars += reads * prices.READ_UNIT_HOUR + writes * prices.WRITE_UNIT_HOUR
    return dollars * hours


def month_dollars(lines: Lines, millions: int, *, least: float = 0.0) -> float:
    """Returns a month's dollars for messages and the idle deployment, in a separate account.

    Below 1,000 changes a minute the meter has a batch a minute, shared by fewer changes. `least`:
    minimum dollars for tables, whatever is used.
    """
    tables = (lines["writes"] + lines["reads"]) * millions
    others = sum(lines.values()) * millions - tables
    minutes = MONTH_SECONDS / 60
    idle_batches = max(0.0, minutes - CHANGES * millions * prices.MILLION / METER_RECORDS)
    batch = metering_units() * prices.WRITE_UNITS_PER_MILLION + prices.LAMBDA_REQUESTS_PER_MILLION
    meter = idle_batches * batch / prices.MILLION + bill.log_dollars(idle_batches * METER_LOG_BYTES)
    return max(tables, least) + others + meter + sum(bill.idle_dollars(free=True).values())


def singles() -> Usage:
    """Returns the use of messages that are sent, received and deleted one by one."""
    return carried_usage(SINGLE_1_KB, carried_life(SINGLE_1_KB), metering_units())


def gathered() -> Usage:
    """Returns the use of messages that are sent one by one and received by sixteen."""
    life = gathered_life(BATCH_1_KB)
    return gathered_usage(BATCH_1_KB, life, metering_units(), BATCH_1_KB.count)


def own_usage(workload: Workload, *, apart: bool = False) -> Usage:
    """Messages of which no call goes by a function, but for the meter's."""
    units = own_life(workload, apart=apart)
    meters = CHANGES * (workload.count if apart else 1) / METER_RECORDS
    return Usage(
        messages=workload.count,
        write_units=units[0] + meters * metering_units(),
        read_units=units[1],
        calls=0,
        invocations=meters,
        gb_seconds=meters * waiting.CALL_SECONDS * prices.CALL_GB,
    )


def grouped(**attributes: bool) -> Usage:
    """Returns the use of messages, one by one, in a queue with groups."""
    return carried_usage(SINGLE_1_KB, grouped_life(**attributes), metering_units())


def handed() -> Usage:
    """Returns the use of messages sent one by one to a function that takes 0.1 s for each."""
    writes, reads = handed_life(SINGLE_1_KB, waiting.PARTITIONS)
    waits = waiting.HANDLER_SECONDS[0] * prices.PUSH_GB
    return Usage(
        messages=1,
        write_units=writes + metering_units() * CHANGES / METER_RECORDS,
        read_units=reads,
        calls=1,
        invocations=2 + CHANGES / METER_RECORDS,
        gb_seconds=waits + waiting.HANDING_GB_SECONDS,
    )


ROWS: tuple[tuple[str, Callable[[], Usage], float], ...] = (
    ("one by one", singles, sqs_dollars(1_024, batches=False)),
    ("sent one by one, received by 16", gathered, sqs_gathered_dollars()),
    (
        "sent soon by 16 producers, received by 16",
        partial(lingered, BATCH_1_KB),
        sqs_dollars(1_024, batches=True),
    ),
    ("ordered, one by one", partial(grouped, ordered=True), 3 * prices.SQS_FIFO_PER_MILLION),
    ("fair, one by one", partial(grouped, fair=True), 3 * prices.SQS_FAIR_PER_MILLION),
    ("to a function of 0.1 s, one by one", handed, sqs_dollars(1_024, batches=False)),
)


WAYS: tuple[tuple[str, float | None, bool, float | None], ...] = (
    ("API, on demand", None, False, None),
    ("direct, on demand", None, True, None),
    ("direct, on demand, savings plans", None, True, TERMS["savings plans"]),
    ("direct, 70 %", USED_AT_BEST, True, None),
    ("direct, 70 %, reserved 1 year", USED_AT_BEST, True, TERMS["reserved 1 year"]),
    ("direct, 70 %, reserved 3 years", USED_AT_BEST, True, TERMS["reserved 3 years"]),
)
"""Name, used share of provisioned units, True for direct calls, and a term's table discount."""


OWN_ROWS: tuple[tuple[str, Callable[[], Usage], float], ...] = (
    ("one by one", partial(own_usage, SINGLE_1_KB), sqs_dollars(1_024, batches=False)),
    (
        "sent one by one, received by 16",
        partial(own_usage, BATCH_1_KB, apart=True),
        sqs_gathered_dollars(),
    ),
    ("batches of 16", partial(own_usage, BATCH_1_KB), sqs_dollars(1_024, batches=True)),
)
OWN_WAYS: tuple[tuple[str, float | None, float | None], ...] = (
    ("on demand", None, None),
    ("on demand, savings plans", None, TERMS["savings plans"]),
    ("70 %", USED_AT_BEST, None),
    ("70 %, reserved 1 year", USED_AT_BEST, TERMS["reserved 1 year"]),
    ("70 %, reserved 3 years", USED_AT_BEST, TERMS["reserved 3 years"]),
)
"""Name, share of provisioned units in use, and what a term takes off tables."""


def own_dollars(usage: Usage, used: float | None, off: float | None) -> Lines:
    """A million messages in the caller's own process, with everything, by line."""
    lines = whole_dollars(usage, used=used, direct=True)
    return lines if off is None else with_terms(lines, off)


def show_own() -> None:
    """Print what a million messages cost that a client handles in its own process."""
    rows: list[list[str]] = []
    heads: list[str] = []
    for name, count, theirs in OWN_ROWS:
        usage = count()
        for where, used, off in OWN_WAYS:
            lines = own_dollars(usage, used, off)
            heads = list(lines)
            amounts = (*lines.values(), sum(lines.values()), theirs)
            rows.append([f"{name}; {where}", *(f"{each:,.2f}" for each in amounts)])
    show(
        "Dollars for a million messages in the caller's own process, everything in them",
        ["messages", *heads, "in all", "SQS"],
        rows,
    )


def run() -> None:
    """Prints the cost of a million messages with everything included, and of whole months."""
    rows: list[list[str]] = []
    months: list[list[str]] = []
    heads: list[str] = []
    for name, count, theirs in ROWS:
        usage = count()
        for where, used, direct, off in WAYS:
            lines = whole_dollars(usage, used=used, direct=direct)
            least = least_units_dollars() if used else 0.0
            if off is not None:
                lines, least = with_terms(lines, off), least * (1 - off)
            heads = list(lines)
            amounts = (*lines.values(), sum(lines.values()), theirs)
            rows.append([f"{name}; {where}", *(f"{each:,.2f}" for each in amounts)])
            sums = [month_dollars(lines, millions, least=least) for millions in MONTHS]
            months.append([f"{name}; {where}", *(f"{each:,.2f}" for each in sums)])
    show(
        "Dollars for a million messages of 1 KB, everything in them",
        ["messages", *heads, "in all", "SQS"],
        rows,
    )
    show(
        "Dollars a month, the idle deployment's among them, by millions of messages",
        ["messages", *map(str, MONTHS)],
        months,
    )
    show_own()
    own_lives.run()
