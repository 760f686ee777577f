"""The counted use and the prices that the manual's calculator reads: `infra/manual/costs.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cirrusmq_local.commands import prices

from . import waiting
from .cost import KINDS, WORKLOADS, Kind, Usage, cases
from .lives import Workload
from .months import TERMS, kept_dollars
from .polls import idle_units

FILE = Path(__file__).parents[2] / "manual/costs.json"
DIGITS = 6


def run() -> None:
    """Counts, and writes the file."""
    found = counted(KINDS, WORKLOADS)
    content = {"prices": price_list(), "waiting": month_of_waiting(), "cases": found}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"\n{FILE.name}: {len(found)} cases")


def counted(kinds: Sequence[Kind], workloads: Sequence[Workload]) -> list[dict[str, Any]]:
    """Returns each case with the use of one message, and a rival's dollars for a million."""
    return [
        {
            "name": f"{case.kind.title}; {case.messages}",
            "use": use_of_one(case.usage),
            "rival": case.kind.rival,
            "theirs": round(case.theirs, DIGITS),
        }
        for case in sorted(cases(kinds, workloads), key=lambda case: kinds.index(case.kind))
    ]


def use_of_one(usage: Usage) -> dict[str, float]:
    """Returns the use of one message."""
    whole = {
        "write_units": usage.write_units,
        "read_units": usage.read_units,
        "calls": usage.calls,
        "functions": usage.calls + usage.invocations,
        "gb_seconds": usage.gb_seconds,
        "puts": usage.puts,
        "gets": usage.gets,
    }
    return {name: round(amount / usage.messages, DIGITS) for name, amount in whole.items()}


def price_list() -> dict[str, Any]:
    """Returns prices in dollars: units, calls and requests for a million, memory for a GB second.

    `kept_gigabyte`: for a GB that is in the table all month. `terms`: their discounts.
    """
    kms = prices.KMS_SHARE * prices.KMS_REQUESTS_PER_MILLION
    return {
        "write_units": prices.WRITE_UNITS_PER_MILLION,
        "read_units": prices.READ_UNITS_PER_MILLION,
        "provisioned_write_units": prices.provisioned_per_million(prices.WRITE_UNIT_HOUR, 1.0),
        "provisioned_read_units": prices.provisioned_per_million(prices.READ_UNIT_HOUR, 1.0),
        "calls": prices.HTTP_API_PER_MILLION,
        "functions": prices.LAMBDA_REQUESTS_PER_MILLION,
        "gb_second": prices.LAMBDA_GB_SECOND,
        "puts": prices.S3_PUTS_PER_MILLION + kms,
        "gets": prices.S3_GETS_PER_MILLION + kms,
        "kept_gigabyte": round(sum(kept_dollars(1.0).values()), DIGITS),
        "terms": {
            name: {"tables": off, "functions": prices.LAMBDA_PLAN_OFF}
            for name, off in TERMS.items()
        },
    }


def month_of_waiting() -> float:
    """Returns dollars for a consumer that waits all month without a message."""
    units = idle_units(waiting.PARTITIONS)
    return round(sum(waiting.month_dollars(prices.HOT_GB, units).values()), 4)
