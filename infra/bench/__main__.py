"""`make bench`: the parts of the default, or those named on the command line."""

from __future__ import annotations

import logging
import sys
import time

from .counted import (
    busy_partition,
    calculator,
    charts,
    cost,
    fair,
    fills,
    growth,
    heat,
    months,
    polls,
    quotas,
    units,
)
from .measured import (
    backlog_cpu,
    bill_answers,
    call_cpu,
    calls,
    cells,
    client,
    cold,
    delay,
    dialect_cpu,
    imports,
    isolation,
    memory,
    night_cpu,
    push_cpu,
    push_parts,
    throughput,
    wheel,
)


def _all_costs() -> None:
    cost.run()
    months.run()


DEFAULT = {
    "units": units.run,
    "cost": _all_costs,
    "growth": growth.run,
    "polls": polls.run,
    "calls": calls.run,
    "imports": imports.run,
    "throughput": throughput.run,
    "delay": delay.run,
    "isolation": isolation.run,
    "client": client.run,
}
BY_NAME_ALONE = {
    "heat": heat.run,
    "quotas": quotas.run,
    "calculator": calculator.run,
    "charts": charts.run,
    "busy_partition": busy_partition.run,
    "fair": fair.run,
    "fills": fills.run,
    "backlog_cpu": backlog_cpu.run,
    "cells": cells.run,
    "bill_answers": bill_answers.run,
    "night_cpu": night_cpu.run,
    "cold": cold.run,
    "memory": memory.run,
    "call_cpu": call_cpu.run,
    "push_cpu": push_cpu.run,
    "push_parts": push_parts.run,
    "dialect_cpu": dialect_cpu.run,
    "wheel": wheel.run,
}
"""Parts that take longer and run only by name."""
PARTS = DEFAULT | BY_NAME_ALONE
WITH_OPTIONS = {"quotas": quotas.run, "cells": cells.run}
"""Parts that take the words behind their name as options."""


def main() -> int:
    """Runs the named parts, or the default; two take the options behind their names."""
    asked = sys.argv[1:] or list(DEFAULT)
    if asked[0] in WITH_OPTIONS:
        logging.disable(logging.INFO)
        WITH_OPTIONS[asked[0]](asked[1:])
        return 0
    unknown = [name for name in asked if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    logging.disable(logging.INFO)  # the functions log their calls
    for name in asked:
        print(f"\n## {name}")
        began = time.monotonic()
        PARTS[name]()
        print(f"\n{name} took {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
