"""`python -m infra.prose`: no package has more of a counted turn of phrase than it had.

`--write` lowers the ceilings to what is there now; no run raises one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec

from .counting import CLAUSES, PATTERNS, count

CEILINGS = Path(__file__).with_name("ceilings.json")
COUNTED = (*PATTERNS, CLAUSES)
Counts = Mapping[str, Mapping[str, int]]
"""By package and turn of phrase."""


def exceeded(counts: Counts, ceilings: Counts) -> list[str]:
    """A line for each turn of phrase that a package has more often than its ceiling allows."""
    return [
        f'{package}: {found[name]} times "{name}", at most {limit}'
        for package, found in sorted(counts.items())
        for name in COUNTED
        if found[name] > (limit := ceilings.get(package, {}).get(name, 0))
    ]


def lowered(counts: Counts, ceilings: Counts) -> dict[str, dict[str, int]]:
    """The ceilings of the packages that there are, none above what is there now."""
    return {
        package: {
            name: min(found[name], ceilings.get(package, {}).get(name, 0))
            for name in COUNTED
            if found[name] and ceilings.get(package, {}).get(name, 0)
        }
        for package, found in sorted(counts.items())
        if package in ceilings
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m infra.prose", description=__doc__)
    parser.add_argument("--write", action="store_true", help="lower the ceilings to what is there")
    given = parser.parse_args(arguments)
    counts, ceilings = count(), msgspec.json.decode(CEILINGS.read_bytes())
    told = exceeded(counts, ceilings)
    for line in told:
        print(line)
    if told:
        print("CONTRIBUTING.md says how sentences read here; the ceilings only fall.")
        return 1
    if given.write:
        written = msgspec.json.encode(lowered(counts, ceilings))
        CEILINGS.write_bytes(msgspec.json.format(written, indent=1) + b"\n")
    total = sum(counts.values(), Counter())
    rates = ", ".join(f"{name} {total[name] / total['words'] * 1e4:.1f}" for name in PATTERNS)
    print(f"in 10,000 words: {rates}; {total[CLAUSES]} {CLAUSES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
