"""`cirrusmq bench --advise`: the cheaper way to pay for a stack's tables, by metered hours."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from cirrusmq_local.cloud.cloudformation import read
from cirrusmq_local.cloud.template import TEMPLATE
from cirrusmq_local.commands import metered, prices
from cirrusmq_local.commands.advice import Advice, advise
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import fail, print_json, print_record, tell
from cirrusmq_local.commands.estimate import kind_units

ASSUMED = """
units of messages by DynamoDB's rules, for messages of the mean size in sends of {batch} (--batch);
empty receives and the sweep are not metered; each hour is billed at its highest capacity; Directory
and Usage count with their lowest capacity as provisioned, and with nothing on demand
"""


def print_advice(usage_table: str | None, batch: int, data: Path, as_json: bool) -> None:
    """Read the stack's records, compare and print; exits with 1 if nothing is metered yet."""
    if usage_table is None:
        items = metered.from_machine(connect(data))
    else:
        items = metered.from_account(usage_table)
    found = list(metered.events(items))
    if not found:
        fail("nothing is metered yet", "the meter counts a call up to a minute later")
    size = max(1, metered.mean_size(found))
    minutes = metered.units_by_minute(found, kind_units(size, batch))
    given = advise(minutes, least_units("Messages"), least_units("Directory", "Usage"))
    record = _record(given, size)
    if as_json:
        print_json(record | {"bounds": [asdict(each) for each in given.bounds]})
        return
    print_record(record, as_json)
    print(f"Capacity={given.cheaper} is cheaper for these hours.")
    tell("assumed: " + ASSUMED.format(batch=batch))


def least_units(*tables: str) -> tuple[int, int]:
    """Lowest read and write units of these tables, from the template's parameters."""
    parameters = read(TEMPLATE)["Parameters"]
    units = [parameters[f"{table}Units"]["Default"].split(",") for table in tables]
    return sum(int(each[0]) for each in units), sum(int(each[2]) for each in units)


def _record(given: Advice, size: int) -> dict[str, object]:
    reads, writes = given.bounds
    numbers = (reads.least, reads.limit, writes.least, writes.limit, round(100 * writes.target))
    return {
        "hours": given.hours,
        "bytes_of_a_message": size,
        "dollars_on_demand": round(given.on_demand, 6),
        "dollars_on_demand_savings_plan": round(given.on_demand * (1 - prices.TABLE_PLAN_OFF), 6),
        "dollars_provisioned": round(given.provisioned, 6),
        **{
            f"dollars_reserved_{years}_years": round(given.provisioned * (1 - off), 6)
            for years, off in prices.RESERVED_OFF.items()
        },
        "percent_of_paid_write_units_in_use": round(100 * given.used, 1),
        "break_even_percent": round(100 * prices.BREAK_EVEN, 1),
        "percent_throttled_at_first": round(100 * given.throttled, 2),
        "MessagesUnits": ",".join(map(str, numbers)),
        "cheaper": given.cheaper,
    }
