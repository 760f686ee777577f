"""Parts of months that are long over become one: no record is lost, and none is billed again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.spark.bills import MILLION, documents, state, totals, use, whole
from tests.spark.job_runs import DAY_MS, Jobs, fingerprints, rows_in
from tests.spark.test_swaps import Killed
from tests.spark.transforms.frames import ms

from cirrusmq_reports import publication
from cirrusmq_reports.billing_plan import shown_days
from cirrusmq_reports.folding import FOLD_DAYS, Fold, folds, kept_parts, oldest_kept, within
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.publication import FOLDED, Part
from cirrusmq_reports.times import closes_ms, iso_day, iso_month, month_ms, next_month

FIRST_MS = ms("2025-01-01 01:00")
NIGHTS = 400
LINES_MOST = 330
"""76 nights with two days of writing and a month or two of usage, and a part a month of both."""


def as_folded(fold: Fold, now: int) -> Part:
    """The part that a run writes in the place of these."""
    count = sum(part.row_count for part in fold.parts)
    return Part(fold.table, fold.month, f"{now:05d}{FOLDED}", count, fold.parts[0].sequence)


def test_a_pointer_stays_short_and_loses_no_part() -> None:
    parts: list[Part] = []
    made, closed, longest = Counter[tuple[str, str]](), dict[str, int](), 0
    previous_closed, previous_ms, oldest = dict[str, int](), 0, ""
    for night in range(NIGHTS):
        now, at_ms = night + 1, FIRST_MS + night * DAY_MS
        found = folds(parts, previous_closed, previous_ms)
        gone = {part for each in found for part in each.parts}
        assert len(gone) == sum(len(each.parts) for each in found), "no part is in two folds"
        parts = [part for part in parts if part not in gone]
        parts += [as_folded(each, now) for each in found]
        # A night shows the end of the day before and the begin of its own.
        days = {iso_day(at_ms - DAY_MS), iso_day(at_ms)}
        named = {("ledger", day) for day in days} | {("usage", day[:7]) for day in days}
        parts += [Part(table, name, f"{now:05d}", 1, now) for table, name in named]
        made.update((table, name[:7]) for table, name in named)
        due = [month for (_, month) in made if closes_ms(month, 3) <= at_ms]
        if set(due) - set(closed):
            closed = dict.fromkeys(due, now)
        previous_closed, previous_ms = dict(closed), at_ms
        oldest = oldest_kept(at_ms, 13)
        ledger = [part for part in parts if part.dataset == "ledger"]
        assert kept_parts(ledger, oldest) == ledger or night > 380
        longest = max(longest, len(parts))
        # Every day that was written is found, in its own part or its month's.
        written = {iso_day(FIRST_MS + each * DAY_MS) for each in range(night + 1)}
        assert all(within(ledger, [day]) for day in written)

    counts = Counter[tuple[str, str]]()
    for part in parts:
        counts[part.dataset, part.part[:7]] += part.row_count
    assert counts == made
    assert longest <= LINES_MOST, longest
    assert sum(part.part == "2025-03" for part in parts) == 2


@pytest.mark.parametrize(
    ("closed", "to", "sequences", "folded"),
    [
        ({"2026-09": 9}, "2026-11-15 00:00", [1, 2, 3], True),
        ({"2026-09": 9}, "2026-11-13 23:00", [1, 2, 3], False),
        ({}, "2026-11-15 00:00", [1, 2, 3], False),
        ({"2026-09": 2}, "2026-11-15 00:00", [1, 2, 3], True),
        ({"2026-09": 1}, "2026-11-15 00:00", [1, 2, 3], False),
        ({"2026-09": 9}, "2026-11-15 00:00", [0, 0, 3], False),
    ],
    ids=["over", "too early", "open", "one not on documents", "two not", "of an old release"],
)
def test_usage_is_folded_when_it_is_on_documents(
    closed: dict[str, int], to: str, sequences: list[int], folded: bool
) -> None:
    parts = [Part("usage", "2026-09", f"r{place}", 1, each) for place, each in enumerate(sequences)]
    found = folds(parts, closed, ms(to))
    assert bool(found) == folded
    for each in found:
        assert {part.sequence for part in each.parts} == {
            number for number in sequences if number <= closed["2026-09"]
        }


def test_a_folded_month_is_written_again_for_many_strays_alone() -> None:
    days = [Part("ledger", f"2026-09-{day:02}", "r", 1, 3) for day in range(1, 12)]
    month = Part("ledger", "2026-09", f"r{FOLDED}", 30, 2)
    closed, to_ms = {"2026-09": 9}, ms("2027-01-01 00:00")
    assert folds([month, *days[:9]], closed, to_ms) == []
    (found,) = folds([month, *days], closed, to_ms)
    assert len(found.parts) == 12
    assert folds([month], closed, to_ms) == []


def test_the_oldest_kept_month() -> None:
    assert oldest_kept(ms("2026-11-20 00:00"), 13) == "2025-10"
    assert oldest_kept(ms("2026-11-20 00:00"), 11) == "2025-12"
    parts = [Part("ledger", name, "r", 1) for name in ("2025-09-30", "2025-10", "2025-10-01")]
    assert kept_parts(parts, "2025-10") == parts[1:]
    assert month_ms(next_month("2025-10")) + FOLD_DAYS * DAY_MS == ms("2025-12-16 00:00")
    assert iso_month(0) == "1970-01"


def test_an_export_is_compared_with_the_days_in_its_reach() -> None:
    """However long the ledger is. A window shows a night, and what TTL removes in it."""
    at_ms = ms("2026-11-20 01:00")
    days = [iso_day(at_ms - ago * DAY_MS) for ago in range(400)]
    ledger = [Part("ledger", day, "r", 1, 1) for day in days]

    def compared(since_ms: int | None) -> list[int]:
        export = Export(
            folder="f", table="t", table_id="t", at_ms=at_ms, since_ms=since_ms, files=()
        )
        return sorted(days.index(part.part) for part in within(ledger, shown_days([export])))

    assert compared(None) == [*range(52)]
    assert compared(at_ms - DAY_MS) == [0, 1, 2, 38, 39, 40, 41, 42, 43]


SEPTEMBER = [
    use(f"s{day}", f"2026-09-{day:02} 05:00", MILLION, written=f"2026-09-{day:02} 05:00")
    for day in (2, 15, 28)
]
LATER = [use("o1", "2026-10-20 05:00", MILLION), use("n1", "2026-11-14 05:00", MILLION)]


@pytest.mark.long
def test_a_record_of_a_folded_month_is_billed_once(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    issuing = whole(tmp_path, "2026-10-04 01:00", SEPTEMBER)
    over = whole(tmp_path, "2026-11-15 01:00", LATER)
    # TTL is late by more days than are looked for at once.
    late = whole(tmp_path, "2026-11-16 01:00", [*SEPTEMBER, *LATER])
    assert jobs.bill(output, [issuing]).code == 0
    assert jobs.bill(output, [over], "--accept-gaps").code == 0
    assert len(_names(output, "ledger")) == 5
    issued = fingerprints(output / "documents")
    with monkeypatch.context() as patch:
        patch.setattr(publication, "swap", _kill)
        with pytest.raises(Killed):
            jobs.bill(output, [late])
    assert len(_names(output, "ledger")) == 5

    new = use("n2", "2026-11-16 05:00", MILLION)
    last = whole(tmp_path, "2026-11-17 01:00", [*SEPTEMBER, *LATER, new])
    assert jobs.bill(output, [last]).code == 0
    again = jobs.bill(output, [late])
    assert (again.code, "nothing new" in again.errors) == (0, True)

    assert _names(output, "ledger") == ["2026-09", "2026-10-20", "2026-11-14", "2026-11-16"]
    assert _names(output, "usage") == ["2026-09", "2026-10", "2026-11", "2026-11"]
    rows = rows_in(output, "ledger")
    assert rows.count() == rows.select("record").distinct().count() == 6
    assert _of_september(output) == [MILLION] * 3
    assert {name: fingerprints(output / "documents")[name] for name in issued} == issued
    assert [each["number"] for each in documents(output)] == ["INV-acme-000001", "INV-acme-000002"]
    assert totals(output)[-1] == ("2026-11", "0.80", None)


def _names(output: Path, table: str) -> list[str]:
    lines = (output / "current/billing.json").read_text().splitlines()[1:]
    return sorted(line["part"] for line in map(json.loads, lines) if line["dataset"] == table)


def _of_september(output: Path) -> list[int]:
    """The counts of the rows of September."""
    rows = rows_in(output, "usage").where("month = '2026-09'").collect()
    return sorted(row["count"] for row in rows)


def _kill(*arguments: object) -> None:
    raise Killed


@pytest.mark.long
def test_records_from_before_the_ledger_are_set_aside(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    few = ("--ledger-months", "4", "--accept-gaps")
    assert jobs.bill(output, [whole(tmp_path, "2026-10-04 01:00", SEPTEMBER)]).code == 0
    again = [use("x1", "2027-02-10 05:00", MILLION), *SEPTEMBER[:1]]
    assert jobs.bill(output, [whole(tmp_path, "2027-02-11 01:00", again[:1])], *few).code == 0
    assert state(output)["ledger_from"] == "2026-10"
    assert _names(output, "ledger") == ["2027-02-10"]

    # A backup of long ago was restored.
    restored = whole(tmp_path, "2027-02-12 01:00", again)
    ended = jobs.bill(output, [restored], *few)

    assert ended.code == 0
    assert "1 entries of usage are set aside: it was written before the first" in ended.errors
    (kept,) = rows_in(output, "quarantine").collect()
    assert sum(_of_september(output)) == 3 * MILLION

    ended = jobs.bill(output, [restored], *few, "--release", bytes(kept["record"]).hex())
    assert ended.code == 0
    assert "set aside" not in ended.errors
    assert sum(_of_september(output)) == 4 * MILLION
