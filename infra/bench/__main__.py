"""`make bench`: every measurement, or those named on the command line."""

from __future__ import annotations

import sys

from . import delay, imports, isolation, spark_backlog, throughput, units

PARTS = {
    "units": units.run,
    "imports": imports.run,
    "throughput": throughput.run,
    "delay": delay.run,
    "isolation": isolation.run,
    "backlog": spark_backlog.run,
}


def main() -> int:
    """Run the parts that were asked for, or all."""
    asked = sys.argv[1:] or list(PARTS)
    unknown = [name for name in asked if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    for name in asked:
        PARTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
