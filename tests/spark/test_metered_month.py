"""A month of two accounts, killed in its midst, with nights late, missing and repeated.

The judge is the list of calls that were answered. It reads no table and no export.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from tests.spark.bills import documents, invoices
from tests.spark.job_runs import REPOSITORY, Jobs, rows_in

from cirrusmq_reports.times import iso_month

STINTS = (3, 5, 4, 6, 5, 4, 6)
"""Days of each process; all but the last are killed while they meter."""
Place = tuple[str, str, str, str]
GAUGES = ("kept", "rewindable")


def live(folder: Path, seed: int) -> list[Path]:
    """The exports of all nights, in order."""
    for number, days in enumerate(STINTS):
        kill = ["kill"] if number < len(STINTS) - 1 else []
        command = [sys.executable, "-m", "tests.spark.metered_days", str(folder), str(days)]
        command += [str(seed * 100 + number), *kill]
        # Each answer is a line of the audit.
        ended = subprocess.run(command, cwd=REPOSITORY, check=False, stdout=subprocess.DEVNULL)
        assert ended.returncode == (-signal.SIGKILL if kill else 0)
    text = (folder / "exports.jsonl").read_text()
    return [Path(json.loads(line)) for line in text.splitlines()]


def called(folder: Path) -> Counter[Place]:
    """Account, month, resource and kind → messages of the calls that were answered."""
    counts = Counter[Place]()
    for line in (folder / "calls.jsonl").read_text().splitlines():
        account, place, kind, count, at_ms = json.loads(line)
        counts[account, iso_month(at_ms), place, kind] += count
    return +counts


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_the_bills_of_a_month_equal_the_calls(tmp_path: Path, jobs: Jobs, seed: int) -> None:
    folder, output = tmp_path / "world", tmp_path / "out"
    folder.mkdir()
    nights = live(folder, seed)
    drawn = random.Random(seed)

    assert jobs.bill(output, nights[:1], "--accept-gaps").code == 0
    left, given = nights[1:], nights[:1]
    while left:
        # A night that is missing is given with one of the next, in any order, and some again.
        taken = left[: drawn.randint(1, 8)]
        late = [each for each in taken[:-1] if drawn.random() < 0.2]
        own = [each for each in taken if each not in late] + drawn.sample(given, 1)
        drawn.shuffle(own)
        code = jobs.bill(output, own).code
        assert code == 0 or late
        if code:
            assert jobs.bill(output, [*late, *own]).code == 0
        given += [*own, *(late if code else ())]
        left = [each for each in left if each not in given]

    counts = called(folder)
    assert {account for account, *_ in counts} == {"acme", "globex"}
    assert {month for _, month, *_ in counts} == {"2026-11", "2026-12"}
    usage = Counter[Place]()
    for row in rows_in(output, "usage").collect():
        usage[row["account"], row["month"], row["resource"], row["kind"]] += row["count"]
    assert {place: count for place, count in usage.items() if place[3] not in GAUGES} == counts
    billed = Counter[Place]()
    for account in ("acme", "globex"):
        issued = documents(output, account)
        assert [each["month"] for each in issued if Decimal(each["total"])] in ([], ["2026-11"])
        for invoice in invoices(output, account):
            for line in invoice["lines"]:
                if line["kind"] not in (*GAUGES, "rounding"):
                    month = line["correction"] or invoice["month"]
                    billed[account, month, line["resource"], line["kind"]] += line["count"]
    assert billed == counts
