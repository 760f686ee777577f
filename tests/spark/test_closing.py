"""Dated prices, closed months, corrections, gaps, and a bill for which there is no room."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.failing_writes import DiskFull
from tests.spark.job_runs import (
    RATE_CARD,
    Jobs,
    fingerprints,
    page_in,
    rows_in,
    run_of,
    summaries_in,
)
from tests.spark.transforms.frames import ms

from export_writer import ExportWriter

DAY_MS = 86_400_000
MILLION = 1_000_000


def use(key: str, used: str, count: int, written: str | None = None, kind: str = "sent") -> str:
    entry = {
        "account": {"S": "acme"},
        "resource": {"S": "queue:q"},
        "kind": {"S": kind},
        "minute": {"N": str(ms(used) // 60_000)},
        "count": {"N": str(count)},
        "bytes": {"N": "0"},
    }
    item = {
        "pk": {"S": "U#0"},
        "sk": {"S": key},
        "records": {"L": [{"M": entry}]},
        "expires_at": {"N": str((ms(written or used) + 40 * DAY_MS) // 1000)},
    }
    return json.dumps(item)


def export_of(root: Path, at: str, items: Iterable[str]) -> Path:
    writer = ExportWriter(root=root, table="Usage", at_ms=ms(at))
    writer.write_file([f'{{"Item":{item}}}' for item in items])
    return writer.finish()


def card_with(folder: Path, *more: tuple[str, str, str]) -> Path:
    """The shipped card, and its prices again: from a day on, with another price and currency."""
    text = RATE_CARD.read_text()
    entry = text[text.index("  - from") :]
    for day, price, currency in more:
        dated = entry.replace("2020-01-01", day).replace("sent: 0.40", f"sent: {price}")
        text += dated.replace("USD", currency)
    path = folder / f"card-{len(list(folder.glob('card-*')))}.yaml"
    path.write_text(text)
    return path


def invoices(output: Path) -> dict[tuple[str, str], dict[str, Any]]:
    found = summaries_in(output, "billing")["acme"]["invoices"]
    return {(invoice["month"], invoice["currency"]): invoice for invoice in found}


def lines(invoice: dict[str, Any]) -> list[tuple[str | None, int, str]]:
    return [(line["correction"], line["count"], line["amount"]) for line in invoice["lines"]]


def test_a_changed_price_changes_no_invoice_of_before(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    november = use("n", "2026-11-05 12:00", 30 * MILLION)
    first = export_of(tmp_path, "2026-11-20 08:00", [november])
    assert jobs.bill(output, [first]).code == 0
    assert {place: each["total"] for place, each in invoices(output).items()} == {
        ("2026-11", "USD"): "12.00"
    }
    december = use("d", "2026-12-02 06:00", MILLION)
    second = export_of(tmp_path, "2026-12-06 08:00", [november, december])
    dearer = card_with(tmp_path, ("2026-12-01", "4.00", "CNY"))
    assert jobs.bill(output, [second], card=dearer).code == 0
    shown = {("2026-11", "USD"): "12.00", ("2026-12", "CNY"): "4.00"}
    assert {place: each["total"] for place, each in invoices(output).items()} == shown
    rows = {(row["month"], row["currency"]) for row in rows_in(output, "usage").collect()}
    assert rows == set(shown)
    # Now that November is closed, a price that is changed without a day changes it no more either.
    changed = card_with(tmp_path)
    changed.write_text(changed.read_text().replace("sent: 0.40", "sent: 9.00"))
    third = export_of(tmp_path, "2026-12-07 08:00", [november, december])
    assert jobs.bill(output, [third], card=changed).code == 0
    again = invoices(output)
    assert again["2026-11", "USD"]["total"] == "12.00"
    assert again["2026-12", "USD"]["total"] == "9.00"
    states = [(each["closed"], each["closes_at"]) for each in again.values()]
    assert states == [(True, "2026-12-04T00:00:00.000Z"), (False, "2027-01-04T00:00:00.000Z")]


def test_what_comes_after_the_close_is_a_correction_of_the_open_month(
    tmp_path: Path, jobs: Jobs
) -> None:
    output = tmp_path / "out"
    in_time = use("a", "2026-11-30 23:00", 10 * MILLION, "2026-12-03 12:00")
    late = use("b", "2026-11-30 23:00", 5 * MILLION, "2026-12-05 12:00")
    unseen = use("c", "2026-11-29 10:00", MILLION)
    december = use("d", "2026-12-05 06:00", MILLION)
    first = export_of(tmp_path, "2026-12-05 08:00", [in_time, december])
    assert jobs.bill(output, [first]).code == 0
    november = invoices(output)["2026-11", "USD"]
    assert lines(november) == [(None, 10 * MILLION, "4.00")]
    second = export_of(tmp_path, "2026-12-06 08:00", [in_time, late, unseen, december])
    for _ in range(2):
        assert jobs.bill(output, [second]).code == 0
        assert invoices(output)["2026-11", "USD"] == november
        assert lines(invoices(output)["2026-12", "USD"]) == [
            (None, MILLION, "0.40"),
            ("2026-11", 6 * MILLION, "2.40"),
        ]
    files = run_of(output, "billing") / "invoices"
    assert [str(path.relative_to(files)) for path in sorted(files.rglob("*.csv"))] == [
        "2026-11/acme-USD.csv",
        "2026-12/acme-USD.csv",
    ]
    assert (files / "2026-12/acme-USD.csv").read_text().splitlines() == [
        "month,account,currency,resource,kind,correction,count,bytes,amount",
        "2026-12,acme,USD,queue:q,sent,,1000000,0,0.40",
        "2026-12,acme,USD,queue:q,sent,2026-11,6000000,0,2.40",
        "2026-12,acme,USD,total,,,,,2.80",
    ]


def test_lost_usage_is_refused_or_told(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    seen = use("a", "2026-10-01 06:00", 10 * MILLION)
    assert jobs.bill(output, [export_of(tmp_path, "2026-10-01 08:00", [seen])]).code == 0
    before = fingerprints(output)
    fresh = use("c", "2026-11-20 06:00", 11 * MILLION)
    later = export_of(tmp_path, "2026-11-20 08:00", [fresh])
    ended = jobs.bill(output, [later])
    assert ended.code == 2
    assert "the use of 2026-10-01 to 2026-10-11 would be missing" in ended.message
    assert fingerprints(output) == before
    ended = jobs.bill(output, [later], "--accept-gaps")
    assert (ended.code, ended.message) == (
        0,
        "the use of 2026-10-01 to 2026-10-11 is missing: no export shows it",
    )
    assert summaries_in(output, "billing")["acme"]["gaps"] == [
        {"from": "2026-10-01T08:00:00.000Z", "to": "2026-10-11T08:00:00.000Z"}
    ]
    assert (
        "The use of 2026-10-01 to 2026-10-11 is missing" in page_in(output, "billing").read_text()
    )
    assert [lines(each) for each in invoices(output).values()] == [
        [(None, 10 * MILLION, "4.00")],
        [(None, 11 * MILLION, "4.40")],
    ]


@pytest.mark.long
def test_a_full_disk_at_any_write_of_a_bill_replaces_nothing(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    item = use("a", "2026-11-05 12:00", MILLION)
    assert jobs.bill(output, [export_of(tmp_path, "2026-11-20 08:00", [item])]).code == 0
    before = fingerprints(output)
    more = use("b", "2026-11-20 12:00", MILLION)
    later = export_of(tmp_path, "2026-11-21 08:00", [item, more])
    disk = DiskFull(monkeypatch)
    room = 0
    while True:
        disk.left = room
        ended = jobs.bill(output, [later])
        if ended.code == 0:
            break
        assert (ended.code, "No space left on device" in ended.message) == (2, True)
        seen = fingerprints(output)
        assert {path: seen.get(path) for path in before} == before
        # A pointer may have been on its way: what it names is then not removed.
        if "current/" not in ended.message:
            assert seen == before
        room += 1
    assert room == 6, "two tables, a summary, an invoice, the page, the pointer"
    assert lines(invoices(output)["2026-11", "USD"]) == [(None, 2 * MILLION, "0.80")]
