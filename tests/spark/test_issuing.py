"""Numbers, rounding and notes: pure, without Spark."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from tests.spark.job_runs import RATE_CARD

from cirrusmq_reports.adjustments import read_adjustments
from cirrusmq_reports.coverage import ScannedRange, holes, union, without
from cirrusmq_reports.currencies import rounded, shown
from cirrusmq_reports.document_files import files_of
from cirrusmq_reports.documents import (
    CARRIED,
    Header,
    Series,
    document,
    issue,
    least_charges,
)
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.rate_card import RateCard, read_rate_card
from cirrusmq_reports.session import partitions_for

Totals = Mapping[tuple[str, str, str], Decimal]


def series(*, by_account: bool = True, last: Mapping[str, int] | None = None) -> Series:
    invoices = {("a", "2026-09", "USD"): "INV-a-000004"}
    return Series(prefix="INV", by_account=by_account, last=last or {}, invoices=invoices)


def told(headers: list[Header]) -> list[tuple[str, str, str, str, str | None]]:
    return [
        (each.number, each.type, each.month, str(each.total), each.refers_to) for each in headers
    ]


@pytest.mark.parametrize(
    ("amount", "currency", "expected"),
    [
        ("0.005", "USD", "0.01"),
        ("-0.005", "USD", "-0.01"),
        ("0.0049999", "USD", "0.00"),
        ("-0.0049", "USD", "0.00"),
        ("2.5", "JPY", "3"),
        ("-2.5", "JPY", "-3"),
        ("0.0005", "KWD", "0.001"),
        ("1.00005", "CLF", "1.0001"),
    ],
)
def test_amounts_are_rounded_half_away_from_zero(amount: str, currency: str, expected: str) -> None:
    assert str(rounded(Decimal(amount), currency)) == expected


def test_amounts_are_shown_with_all_places() -> None:
    assert shown(Decimal("4.8000"), "USD") == "4.80"
    assert shown(Decimal("0.0048"), "USD") == "0.0048"
    assert shown(Decimal(7), "JPY") == "7"
    assert shown(Decimal("-0.00"), "USD") == "0.00"


def test_each_account_has_a_series_without_gaps_in_the_order_of_months() -> None:
    totals: Totals = {
        ("b", "USD", "2026-10"): Decimal(3),
        ("a", "USD", "2026-11"): Decimal(2),
        ("a", "USD", "2026-10"): Decimal(1),
        ("a", "USD", "note 2026-09"): Decimal("0.5"),
        ("a", "CNY", "note 2026-08"): Decimal("-0.5"),
    }
    months = ["2026-10", "2026-11"]

    issued = issue(totals, months, series(last={"a": 6}), "2026-12-04")

    assert told(issued) == [
        ("INV-a-000007", "invoice", "2026-10", "1.00", None),
        ("INV-a-000008", "credit_note", "2026-08", "-0.50", None),
        ("INV-a-000009", "debit_note", "2026-09", "0.50", "INV-a-000004"),
        ("INV-b-000001", "invoice", "2026-10", "3.00", None),
        ("INV-a-000010", "invoice", "2026-11", "2.00", None),
    ]
    one = issue(totals, months, series(by_account=False, last={"": 41}), "2026-12-04")
    assert [each.number for each in one] == [f"INV-{n:06d}" for n in range(42, 47)]


def test_months_closed_together_or_one_by_one_have_the_same_documents() -> None:
    totals: Totals = {
        ("a", "USD", CARRIED): Decimal("0.003"),
        ("a", "USD", "2026-10"): Decimal("0.001"),
        ("a", "USD", "2026-11"): Decimal("0.001"),
        ("b", "USD", "2026-10"): Decimal(5),
        ("b", "USD", "2026-11"): Decimal(6),
    }
    both = issue(totals, ["2026-10", "2026-11"], series(), "x")

    first = issue(
        {key: total for key, total in totals.items() if key[2] != "2026-11"},
        ["2026-10"],
        series(),
        "x",
    )
    carried = {("a", "USD", CARRIED): Decimal("0.004")}
    november = {key: total for key, total in totals.items() if key[2] == "2026-11"}
    second = issue({**carried, **november}, ["2026-11"], series(last={"b": 1}), "x")

    assert told(both) == told([*first, *second])
    assert told(both)[-2:][0][:4] == ("INV-a-000001", "invoice", "2026-11", "0.01")


def test_below_a_minor_unit_nothing_is_issued() -> None:
    totals: Totals = {
        ("a", "USD", "2026-10"): Decimal("0.0049"),
        ("a", "USD", "note 2026-09"): Decimal("-0.004"),
        ("a", "JPY", "2026-10"): Decimal("0.49"),
    }
    assert issue(totals, ["2026-10"], series(), "x") == []


def header_of(sum: str, rounding: str, total: str, **more: Any) -> Header:
    """The header of an invoice of October, or of another document with these fields."""
    fields: dict[str, Any] = {"number": "INV-a-000001", "type": "invoice", "refers_to": None}
    return Header(
        **(fields | more), ordinal=1, account="a", month="2026-10", closed="2026-10",
        currency="USD", sum=Decimal(sum), rounding=Decimal(rounding), total=Decimal(total),
        issued="2026-11-04",
    )  # fmt: skip


def test_lines_of_a_document_add_up_to_its_total() -> None:
    header = header_of("0.147", "0.003", "0.15")
    line = {
        "resource": "queue:q", "kind": "sent", "quantity": 12_250,
        "unit_price": Decimal("0.000012"), "paid": Decimal("1.0000"), "charge": Decimal("0.147"),
    }  # fmt: skip
    made = document(header, [line], {"name": "Us"}, {"account": "a"}, {"code": "2", "gaps": []})

    assert [each["charge"] for each in made["lines"]] == ["0.147", "0.003"]
    assert made["lines"][1]["kind"] == "rounding"
    assert (made["sum"], made["rounding"], made["total"]) == ("0.147", "0.003", "0.15")
    rows = list(csv.DictReader(io.StringIO(files_of(made)["csv"].decode())))
    assert sum(Decimal(row["charge"]) for row in rows) == Decimal("0.15")
    assert Decimal(rows[0]["quantity"]) * Decimal(rows[0]["list_unit_price"]) == Decimal("0.147")


def test_the_page_of_a_document_says_price_discount_and_reason() -> None:
    header = header_of(
        "-1.15", "0", "-1.15", number="INV-a-000002", type="credit_note", refers_to="INV-a-000001"
    )
    used = {
        "resource": "queue:q", "kind": "kept", "tier": 1, "used_month": "2026-10",
        "quantity": 1_000_000, "unit_price": Decimal("0.0000004"), "paid": Decimal("0.875"),
        "charge": Decimal("0.35"),
    }  # fmt: skip
    credit = {
        "resource": "adjustment:A-1", "kind": "credit", "used_month": "2026-10",
        "charge": Decimal("-1.5"), "reason": "an <outage>",
    }  # fmt: skip
    seller = {"name": "Us", "payment_terms": "30 days"}
    gaps = {"gaps": ["2026-10-01 to 2026-10-11", "2026-10-20"]}
    made = document(header, [used, credit], seller, {"account": "a"}, {"code": "2", **gaps})
    page = re.sub(r"<[^>]+>", "|", files_of(made)["html"].decode())

    assert "|Credit note INV-a-000002|" in page
    assert "|refers to||INV-a-000001|" in page
    assert "|name: Us, payment terms: 30 days|" in page
    assert "|2026-10-01 to 2026-11-01, without that day|" in page
    assert "|use that is missing||2026-10-01 to 2026-10-11, 2026-10-20|" in page
    assert "|charge (USD)|" in page
    line = "queue:q||kept||2026-10||1||1,000,000 byte hours||0.0000004||12.5 %||0.35|"
    assert line in page
    assert "adjustment:A-1||credit: an &lt;outage&gt;||2026-10||||||||||-1.5|" in page
    assert "-1.15 USD" in page


def test_stretches() -> None:
    one, two, three = ScannedRange(0, 5), ScannedRange(5, 9), ScannedRange(12, 20)
    assert union([three, two, one]) == [ScannedRange(0, 9), three]
    assert holes([three, one]) == [ScannedRange(5, 12)]
    assert without(ScannedRange(3, 15), [one, three]) == [ScannedRange(5, 12)]
    assert without(ScannedRange(3, 15), []) == [ScannedRange(3, 15)]
    assert without(ScannedRange(3, 4), [one]) == []


GIVEN = (
    '{"id": "1", "account": "a", "month": "2026-10", "kind": "goodwill", "currency": "USD", '
    '"amount": "-5.5", "reason": "an outage"}'
)
BY_QUANTITY = (
    '{"id": "1", "account": "a", "month": "2026-10", "kind": "sent", "quantity": "-5", '
    '"reason": "sent twice by us"}'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "not a JSON object"),
        (GIVEN.replace("-5.5", "5,5"), "amount: 5,5 is not"),
        (GIVEN.replace("-5.5", "0.00"), "other than 0"),
        (GIVEN.replace("2026-10", "2026-13"), "month: 2026-13"),
        (GIVEN.replace("USD", "usd"), "currency: usd"),
        (GIVEN.replace("an outage", " "), "reason:   is not a text"),
        (GIVEN.replace("goodwill", "tax"), "kind: tax is a line that documents have"),
        (BY_QUANTITY.replace("sent", "goodwill"), "kind: goodwill has no price"),
        (BY_QUANTITY.replace("-5", "0"), "quantity: 0 is not a whole number other than 0"),
        (BY_QUANTITY.replace('"id"', '"currency": "USD", "id"'), "its names are not"),
        (GIVEN.replace("reason", "why"), "its names are not"),
        (GIVEN.replace('"kind"', '"quantity": 5, "kind"'), "its names are not"),
        (f"{GIVEN}\n{GIVEN.replace('5.5', '6')}", "the id 1 is of another"),
    ],
)
def test_a_wrong_adjustment_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match="file") as refused:
        read_adjustments("file", text)
    assert said in str(refused.value)


def test_a_shuffle_has_partitions_of_near_one_size() -> None:
    sizes = (0, 100 << 20, 10 << 30, 1 << 40)
    assert [partitions_for(size, 4) for size in sizes] == [4, 6, 640, 20_000]


def card() -> RateCard:
    """Tax and a minimum charge, other ones from November on."""
    text = RATE_CARD.read_text()
    entry = text[text.index("  - from") :]
    taxed = (
        "    tax:\n      name: VAT\n      percent: {}\n      accounts:\n        free: 0\n"
        "    minimum_charge:\n      amount: {}\n      accounts:\n        free: 0\n"
    )
    later = entry.replace("2020-01-01", "2026-11-30") + taxed.format("7.5", "8")
    return read_rate_card("card", text + taxed.format("19", "5.00") + later)


def test_tax_is_of_the_rounded_sum_and_rounded_alike() -> None:
    totals: Totals = {
        ("a", "USD", "2026-10"): Decimal("1.005"),
        ("a", "USD", "note 2026-09"): Decimal("-0.995"),
        ("a", "USD", "2026-11"): Decimal("0.30"),
        ("free", "USD", "2026-10"): Decimal("1.005"),
        ("small", "USD", "2026-10"): Decimal("0.004"),
    }
    issued = issue(totals, ["2026-10", "2026-11"], series(), "x", card().terms)

    told_of = {
        (each.account, each.month): (str(each.sum), str(each.rounding), str(each.tax), each.total)
        for each in issued
    }
    assert told_of == {
        ("a", "2026-10"): ("1.005", "0.005", "0.19", Decimal("1.20")),
        ("a", "2026-09"): ("-0.995", "-0.005", "-0.19", Decimal("-1.19")),
        # 7.5 % of 0.30 are 0.0225.
        ("a", "2026-11"): ("0.30", "0.00", "0.02", Decimal("0.32")),
        ("free", "2026-10"): ("1.005", "0.005", "0.00", Decimal("1.01")),
    }
    made = document(issued[0], [{"kind": "sent", "charge": Decimal("1.005")}], {}, {}, {})
    assert made["tax"] == {"name": "VAT", "percent": "19", "of": "1.01", "amount": "0.19"}
    assert [(line["kind"], line["charge"]) for line in made["lines"]] == [
        ("sent", "1.005"),
        ("rounding", "0.005"),
        ("tax", "0.19"),
    ]
    free = next(each for each in issued if each.account == "free")
    assert document(free, [], {}, {}, {})["tax"]["amount"] == "0.00"


def test_use_is_filled_up_to_the_minimum_and_late_use_takes_its_place() -> None:
    used: Totals = {
        ("a", "USD", "2026-10"): Decimal("1.25"),
        ("b", "USD", "2026-10"): Decimal(0),
        ("c", "USD", "2026-10"): Decimal(5),
        ("free", "USD", "2026-10"): Decimal(1),
        ("a", "EUR", "2026-10"): Decimal(1),
        ("a", "USD", CARRIED): Decimal(1),
        ("a", "USD", "2026-11"): Decimal(1),
    }
    assert least_charges(used, {}, card().terms) == {
        ("a", "USD", "2026-10"): Decimal("3.75"),
        ("b", "USD", "2026-10"): Decimal(5),
        ("a", "USD", "2026-11"): Decimal(7),
    }
    note = ("a", "USD", "note 2026-10")
    before = {("a", "USD", "2026-10"): (Decimal("1.25"), Decimal("3.75"))}
    for late, line in (("0.75", "-0.75"), ("3.75", "-3.75"), ("9", "-3.75"), ("-0.25", "0.25")):
        assert least_charges({note: Decimal(late)}, before, card().terms)[note] == Decimal(line)
