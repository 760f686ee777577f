from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.spark.bills import whole, window
from tests.spark.job_runs import (
    AT_MS,
    DAY_MS,
    HOUR_MS,
    RATE_CARD,
    Ended,
    Jobs,
    assert_refused,
    page_in,
    rows_in,
    summaries_in,
)
from tests.spark.recount import Item, items_of, recount_amount, recount_usage

from cirrusmq_reports.currencies import rounded
from export_writer import ExportWriter
from synthetic_usage import Usage, change


def make_usage(records: int = 1_500, seed: int = 7) -> Usage:
    return Usage(seed=seed, records=records, at_ms=AT_MS, days=25, items_in_a_file=400)


def succeed(ended: Ended) -> None:
    """October waits: its first ten days are in no export."""
    assert ended.code == 0
    assert all("2026-10 wait" in line for line in ended.errors.splitlines()), ended.errors


def invoices_in(output: Path) -> dict[str, Any]:
    summaries = summaries_in(output, "billing")
    return {account: summary["invoices"] for account, summary in summaries.items()}


def assert_equals_recount(output: Path, items: Iterable[Item]) -> None:
    """Every hour of the Parquet files, and every line of the invoices."""
    sums = recount_usage(items)
    rows = rows_in(output, "usage").collect()
    hours = {
        (row["account"], row["resource"], row["kind"], int(row["hour"].timestamp()) // 3600): row
        for row in rows
    }
    assert len(rows) == len(hours) == len(sums["count"])
    for name in ("count", "bytes"):
        assert {place: row[name] for place, row in hours.items()} == dict(sums[name])
    months: dict[tuple[str, ...], Counter[str]] = {}
    for (account, resource, kind, _), row in hours.items():
        line = months.setdefault((account, row["day"][:7], resource, kind), Counter())
        line.update(count=row["count"], bytes=row["bytes"])
    invoiced = {
        (account, invoice["month"], line["resource"], line["kind"]): line
        for account, invoices in invoices_in(output).items()
        for invoice in invoices
        for line in invoice["lines"]
        if line["kind"] != "rounding"
    }
    assert invoiced == {
        place: {
            "resource": place[2],
            "kind": place[3],
            "correction": None,
            "count": sums_of_line["count"],
            "bytes": sums_of_line["bytes"],
            "amount": recount_amount(
                place[3], sums_of_line["count"], sums_of_line["bytes"], RATE_CARD
            ),
        }
        for place, sums_of_line in months.items()
    }
    exact: dict[tuple[str, str], Decimal] = {}
    for (account, month, _, _), line in invoiced.items():
        before = exact.get((account, month), Decimal(0))
        exact[account, month] = before + Decimal(line["amount"])
    assert {place: rounded(total, "USD") for place, total in exact.items()} == {
        (account, invoice["month"]): Decimal(invoice["total"])
        for account, invoices in invoices_in(output).items()
        for invoice in invoices
    }


@pytest.mark.long
@pytest.mark.usefixtures("as_deployed")
def test_the_job_equals_a_plain_recount(tmp_path: Path, jobs: Jobs) -> None:
    export = make_usage().export(tmp_path)
    assert jobs.bill(tmp_path / "out", [export], "--accept-gaps").code == 0
    assert_equals_recount(tmp_path / "out", items_of(export))
    for summary in summaries_in(tmp_path / "out", "billing").values():
        assert set(summary) == {
            "from",
            "to",
            "generated_at",
            "time_zone",
            "gaps",
            "invoices",
            "unusual",
        }
        assert summary["time_zone"] == "UTC"
        (gap,) = summary["gaps"]
        assert gap == {"from": "2026-10-01T00:00:00.000Z", "to": "2026-10-11T08:00:00.000Z"}
        assert summary["from"] == "2026-10-01T00:00:00.000Z"
        assert summary["to"] == "2026-11-20T08:00:00.000Z"
        assert [invoice["month"] for invoice in summary["invoices"]] == ["2026-10", "2026-11"]
        for invoice in summary["invoices"]:
            assert set(invoice) == {
                "month",
                "currency",
                "closed",
                "closes_at",
                "forecast",
                "lines",
                "total",
                "number",
                "type",
                "refers_to",
            }
            assert invoice["closed"] == (invoice["month"] == "2026-10")
            total = sum(Decimal(line["amount"]) for line in invoice["lines"])
            assert (Decimal(invoice["total"]), invoice["currency"]) == (total, "USD")


@pytest.mark.long  # as transforms/test_versions.py
def test_order_copies_and_repetitions_change_no_total(tmp_path: Path, jobs: Jobs) -> None:
    usage = make_usage()
    plain = usage.export(tmp_path / "plain")
    items = [f'{{"Item":{item}}}' for item in usage.items()]
    random.Random(3).shuffle(items)
    writer = ExportWriter(root=tmp_path / "odd", table="Usage", at_ms=AT_MS)
    writer.write_files(items, files=5)
    first = next(writer.data.iterdir())
    copy = first.with_name(f"copy-of-{first.name}")
    copy.write_bytes(first.read_bytes())
    writer.list_file(first, 300)
    writer.list_file(copy, 300)
    writer.write_file(items[:70])
    odd = writer.finish()
    output = tmp_path / "out"
    succeed(jobs.bill(output, [odd, plain, odd]))
    assert_equals_recount(output, items_of(plain))


@pytest.mark.long
def test_overlapping_windows_count_once(tmp_path: Path, jobs: Jobs) -> None:
    written = list(make_usage().written())
    cut_ms = AT_MS - 2 * DAY_MS
    full = ExportWriter(root=tmp_path, table="Usage", at_ms=cut_ms)
    full.write_files([f'{{"Item":{item}}}' for item, at_ms in written if at_ms < cut_ms], files=2)
    exports = [full.finish()]
    for since_ms, to_ms in (
        (cut_ms - HOUR_MS, cut_ms + DAY_MS),
        (cut_ms + DAY_MS // 2, AT_MS + 60_000),
    ):
        writer = ExportWriter(root=tmp_path, table="Usage", at_ms=to_ms, since_ms=since_ms)
        inside = [(item, at_ms) for item, at_ms in written if since_ms <= at_ms < to_ms]
        writer.write_files([change(item, at_ms) for item, at_ms in inside], files=3)
        exports.append(writer.finish())
    succeed(jobs.bill(tmp_path / "out", exports))
    everything = (json.loads(item) for item, _ in written)
    assert_equals_recount(tmp_path / "out", everything)


def test_a_time_shown_by_no_export_is_refused(tmp_path: Path, jobs_without_spark: Jobs) -> None:
    second = window(tmp_path, "2026-11-21 00:00", "2026-11-21 12:00", [])
    full = whole(tmp_path, "2026-11-20 07:00", [])
    said = f"{second}: no export shows the changes from 2026-11-20T07:00"
    for exports in ([full, second], [second, full]):
        ended = jobs_without_spark.bill(tmp_path / "out", exports)
        assert_refused(ended, said, "to 2026-11-21T00:00")


@pytest.mark.long
@pytest.mark.usefixtures("planned_as_deployed")
def test_an_empty_export_gives_an_empty_report(tmp_path: Path, jobs: Jobs) -> None:
    succeed(jobs.bill(tmp_path / "out", [whole(tmp_path, "2026-11-20 08:00", [])]))
    assert summaries_in(tmp_path / "out", "billing") == {}
    assert "no usage" in page_in(tmp_path / "out", "billing").read_text()


@pytest.mark.usefixtures("as_deployed")
@pytest.mark.long
def test_a_million_records_equal_a_plain_recount(tmp_path: Path, jobs: Jobs) -> None:
    usage = Usage(seed=11, records=1_000_000, at_ms=AT_MS, days=35)
    export = usage.export(tmp_path)
    succeed(jobs.bill(tmp_path / "out", [export, export]))
    assert_equals_recount(tmp_path / "out", items_of(export))
