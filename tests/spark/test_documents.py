"""Invoices are issued once, when their month closes; what comes later is on a note."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from tests.spark.bills import (
    MILLION,
    card_with,
    documents,
    state,
    totals,
    use,
    whole,
    window,
)
from tests.spark.job_runs import Jobs, assert_refused, fingerprints, page_in, rows_in

BEGIN = use("begin", "2026-10-02 05:00", 0)
"""So that a whole export of the fourth of November shows all of October."""
OCTOBER = [BEGIN, use("o", "2026-10-20 05:00", 10 * MILLION)]
NOVEMBER = [use("n", "2026-11-05 05:00", 20 * MILLION)]


@pytest.mark.long
def test_an_invoice_is_issued_by_the_first_run_after_its_close(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    early = whole(tmp_path, "2026-11-03 23:00", OCTOBER)
    assert jobs.bill(output, [early]).code == 0
    assert totals(output) == [("2026-10", "4.00", None)]
    assert documents(output) == []

    night = window(tmp_path, "2026-11-03 23:00", "2026-11-04 01:00", [])
    ended = jobs.bill(output, [night])

    # The export of the third reaches back to the 24th of September.
    assert (ended.code, ended.errors) == (0, "")
    assert totals(output) == [("2026-10", "4.00", "INV-acme-000001")]
    (made,) = documents(output)
    assert made["period"]["from"] == "2026-10-01T00:00:00.000Z"
    assert (made["type"], made["currency"], made["total"]) == ("invoice", "USD", "4.00")
    (line,) = made["lines"]
    assert (line["quantity"], line["list_unit_price"], line["charge"]) == (
        10 * MILLION,
        "0.0000004",
        "4",
    )
    assert made["exports"] == sorted([early.name, night.name])
    names = {path.name for path in (output / "documents/acme").iterdir()}
    assert names == {f"INV-acme-000001.{end}" for end in ("json", "csv", "html")}
    issued = fingerprints(output / "documents")

    later = whole(tmp_path, "2026-11-06 01:00", [*OCTOBER, *NOVEMBER])
    assert jobs.bill(output, [later]).code == 0
    assert totals(output) == [("2026-10", "4.00", "INV-acme-000001"), ("2026-11", "8.00", None)]
    assert fingerprints(output / "documents") == issued


@pytest.mark.long
def test_an_invoice_waits_for_times_shown_by_no_export(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    late = whole(tmp_path, "2026-11-20 01:00", [*OCTOBER, *NOVEMBER])

    ended = jobs.bill(output, [late])

    assert (ended.code, "the invoices of 2026-10 wait" in ended.message) == (0, True)
    assert "no export shows 2026-10-01 to 2026-10-11" in ended.message
    assert documents(output) == []
    assert (
        "The invoices of 2026-10 and of all later months wait"
        in page_in(output, "billing").read_text()
    )
    # An export that was kept aside shows it.
    early = whole(tmp_path, "2026-10-20 12:00", OCTOBER)
    assert jobs.bill(output, [early]).code == 0
    assert totals(output)[0] == ("2026-10", "4.00", "INV-acme-000001")
    assert documents(output)[0]["gaps"] == []


@pytest.mark.long
def test_accepted_gaps_are_on_the_invoice(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    late = whole(tmp_path, "2026-11-20 01:00", [*OCTOBER, *NOVEMBER])

    ended = jobs.bill(output, [late], "--accept-gaps")

    assert (ended.code, ended.message) == (
        0,
        "the use of 2026-10-01 to 2026-10-11 is missing: no export shows it",
    )
    assert documents(output)[0]["gaps"] == ["2026-10-01 to 2026-10-11"]
    (gap,) = json.loads(next((output / "runs").rglob("accounts/acme.json")).read_text())["gaps"]
    assert gap["from"] == "2026-10-01T00:00:00.000Z"


@pytest.mark.parametrize(("each", "total"), [(12_000, "4.80"), (12_500, "5.00")])
@pytest.mark.long
def test_a_thousand_small_lines_are_rounded_once(
    tmp_path: Path, jobs: Jobs, each: int, total: str
) -> None:
    items = [use(f"q{n}", "2026-11-10 05:00", each, resource=f"queue:q{n}") for n in range(1_000)]
    assert jobs.bill(tmp_path / "out", [whole(tmp_path, "2026-11-20 08:00", items)]).code == 0
    assert totals(tmp_path / "out") == [("2026-11", total, None)]


@pytest.mark.long
def test_a_charge_below_a_cent_waits_for_the_next_invoice(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    little = [BEGIN, use("l", "2026-10-20 05:00", 12_000)]
    assert jobs.bill(output, [whole(tmp_path, "2026-11-04 01:00", little)]).code == 0
    assert documents(output) == []
    assert totals(output) == [("2026-11", "0.00", None)]

    more = [*little[1:], use("m", "2026-11-20 05:00", 12_000)]
    assert jobs.bill(output, [whole(tmp_path, "2026-11-29 01:00", more)]).code == 0
    assert jobs.bill(output, [whole(tmp_path, "2026-12-04 01:00", more[1:])]).code == 0

    (made,) = documents(output)
    assert [(line["used_month"], line["charge"]) for line in made["lines"]] == [
        ("2026-10", "0.0048"),
        ("2026-11", "0.0048"),
        (None, "0.0004"),
    ]
    assert made["total"] == "0.01"
    lines = rows_in(output, "document_lines").collect()
    assert sum(row["charge"] for row in lines) == Decimal("0.01")


@pytest.mark.long
def test_a_price_of_an_issued_invoice_cannot_be_edited(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    first = whole(tmp_path, "2026-11-04 01:00", OCTOBER)
    assert jobs.bill(output, [first]).code == 0
    before = fingerprints(output)
    later = whole(tmp_path, "2026-11-06 01:00", [*OCTOBER, *NOVEMBER])

    edited = card_with(tmp_path)
    edited.write_text(edited.read_text().replace("sent: 0.40", "sent: 4.00"))
    within = card_with(tmp_path, ("2026-10-15", "4.00", "USD"))
    for card, day in ((edited, "2020-01-01"), (within, "2026-10-15")):
        ended = jobs.bill(output, [later], card=card)
        assert_refused(ended, f"prices: {day}: issued documents")
    assert fingerprints(output) == before

    dated = card_with(tmp_path, ("2026-11-01", "4.00", "CNY"), begin='seller:\n  name: "A, B"\n')
    assert jobs.bill(output, [later], card=dated).code == 0
    assert totals(output) == [("2026-10", "4.00", "INV-acme-000001"), ("2026-11", "80.00", None)]
    assert fingerprints(output / "documents") == {
        name.removeprefix("documents/"): digest
        for name, digest in before.items()
        if name.startswith("documents/")
    }


@pytest.mark.long
def test_an_open_month_takes_new_prices_without_a_new_export(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    export = whole(tmp_path, "2026-11-06 01:00", NOVEMBER)
    assert jobs.bill(output, [export]).code == 0

    dearer = card_with(tmp_path, ("2026-11-01", "4.00", "USD"))
    assert jobs.bill(output, [export], card=dearer).code == 0

    assert totals(output) == [("2026-11", "80.00", None)]


@pytest.mark.long
def test_parties_are_copied_into_a_document(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    parties = (
        'number_prefix: XY\nseries: issuer\nseller:\n  name: "CirrusMQ, Ltd."  # ours\n'
        'buyers:\n  acme:\n    name: "Acme & Sons"\n    tax_id: DE123\n'
    )
    first = whole(tmp_path, "2026-11-04 01:00", OCTOBER)
    assert jobs.bill(output, [first], card=card_with(tmp_path, begin=parties)).code == 0

    (made,) = documents(output)
    assert made["number"] == "XY-000001"
    assert made["seller"] == {"name": "CirrusMQ, Ltd."}
    assert made["buyer"] == {"account": "acme", "name": "Acme & Sons", "tax_id": "DE123"}
    assert "Acme &amp; Sons" in (output / "documents/acme/XY-000001.html").read_text()


@pytest.mark.long
def test_an_adjustment_is_on_the_next_document_once(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    given = tmp_path / "adjustments.jsonl"
    entry = {
        "id": "A-1", "account": "acme", "month": "2026-10", "kind": "goodwill", "currency": "USD",
        "amount": "-1.50", "reason": "an outage",
    }  # fmt: skip
    given.write_text(f"{json.dumps(entry)}\n")
    first = whole(tmp_path, "2026-11-04 01:00", OCTOBER)
    assert jobs.bill(output, [first]).code == 0
    later = whole(tmp_path, "2026-11-10 01:00", [*OCTOBER, *NOVEMBER])
    for _ in range(2):
        assert jobs.bill(output, [later], "--adjustments", str(given)).code == 0
        assert totals(output)[1:] == [("2026-11", "6.50", None)]
    last = whole(tmp_path, "2026-12-04 01:00", NOVEMBER)
    assert jobs.bill(output, [last], "--adjustments", str(given)).code == 0

    assert totals(output)[1:] == [("2026-11", "6.50", "INV-acme-000002")]
    (line,) = [line for line in documents(output)[1]["lines"] if line["reason"]]
    assert (line["charge"], line["used_month"], line["reason"]) == ("-1.5", "2026-10", "an outage")
    given.write_text(json.dumps(entry | {"amount": "-9"}))
    assert jobs.bill(output, [last], "--adjustments", str(given)).code == 2


@pytest.mark.long
def test_a_closed_invoice_is_kept_after_it_has_left_the_answer(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    assert jobs.bill(output, [whole(tmp_path, "2026-11-04 01:00", OCTOBER)]).code == 0
    issued = fingerprints(output / "documents")
    late = use("late", "2028-01-19 05:00", MILLION)

    export = whole(tmp_path, "2028-01-20 01:00", [late])
    assert jobs.bill(output, [export], "--accept-gaps").code == 0

    assert totals(output) == [("2028-01", "0.40", None)]
    assert fingerprints(output / "documents") == issued
    assert rows_in(output, "document_lines").count() == 1
    assert state(output)["closed"]["2026-10"] > 0


@pytest.mark.long
def test_closed_invoices_of_an_earlier_release_become_documents(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    spark = jobs.session()
    old = spark.sql(
        "SELECT 'acme' account, '2026-10' month, 'USD' currency, 'queue:q' resource, 'sent' kind, "
        "CAST(NULL AS STRING) correction, 10000000L count, 0L bytes, "
        "CAST('3.99' AS DECIMAL(38,6)) amount, 'r0' run"
    )
    old.write.parquet(str(output / "tables/invoice_lines/r0/part=2026-10"))
    (output / "current").mkdir()
    lines = [
        {"report": "billing", "run": "r0", "to_ms": 1, "closed_through": "2026-10", "gaps": []},
        {"report": "billing", "dataset": "invoice_lines", "part": "2026-10", "run": "r0",
         "row_count": 1},
    ]  # fmt: skip
    (output / "current/billing.json").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    some = window(tmp_path, "2026-11-09 01:00", "2026-11-10 01:00", [])
    ended = jobs.bill(output, [some])
    assert_refused(ended, "needs one whole export")

    export = whole(tmp_path, "2026-11-10 01:00", [*OCTOBER, *NOVEMBER])
    assert jobs.bill(output, [export]).code == 0
    assert totals(output) == [
        ("2026-10", "3.99", "legacy-acme-2026-10-USD"),
        ("2026-11", "8.00", None),
    ]
    (made,) = documents(output)
    assert (made["total"], made["lines"][0]["charge"]) == ("3.99", "3.99")
    # What is shown later of October is on a note behind it.
    missed = use("m", "2026-10-28 05:00", MILLION)
    again = whole(tmp_path, "2026-11-11 01:00", [*OCTOBER, *NOVEMBER, missed])
    assert jobs.bill(output, [again]).code == 0
    assert totals(output)[1:] == [("2026-11", "8.40", None)]
