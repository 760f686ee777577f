"""A bill with all that a card can say: the views of FOCUS 1.4, judged by its columns and rules."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.spark import focus
from tests.spark.bills import MILLION, card_with, documents, use, whole, window
from tests.spark.job_runs import REPOSITORY, Jobs, page_in, run_of, summaries_in

import adjust

Row = dict[str, Any]
pytestmark = pytest.mark.long
CARD = """\
    free_each_month:
      sent: 8000000
    tiers:
      sent:
        - above: 12000000
          price: 0.20
    discount_percent:
      acme: 12.5
    tax:
      name: "VAT"
      percent: 19
      accounts:
        free: 0
    minimum_charge:
      amount: 1.00
      accounts:
        acme: 0
"""
PARTIES = """\
seller:
  name: "Queues Ltd."
  payment_terms: "30 days"
buyers:
  acme:
    name: "Acme & Sons"
budgets:
  acme: 0.03
  tiny: 5
"""

WITHOUT_BACKLOG = re.compile(r"CREATE OR REPLACE VIEW backlog_\w+ AS\n.*?;\n", re.DOTALL)
"""There are no files of it."""


def resource(kind: str, name: str, id_: str, **document: Any) -> Row:
    text = json.dumps({"id": id_, "account": "acme", "name": name, **document})
    return {
        "pk": {"S": "A#acme"},
        "sk": {"S": f"{kind}#{name}"},
        "document": {"S": text},
    }


def of(id_: str, **more: Any) -> dict[str, Any]:
    return {"id": {"S": id_}, **more}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Path:
    """October closed, then November with a note, adjustments and an open December."""
    root = tmp_path_factory.mktemp("focus")
    jobs, output = Jobs(lambda: spark), root / "out"
    card = card_with(root, begin=PARTIES, end=CARD)
    begin = use("begin", "2026-10-02 05:00", 0)
    october = [
        use("o1", "2026-10-20 05:00", 10 * MILLION, **of("q1")),
        use("o2", "2026-10-20 06:00", 7, kind="kept", bytes={"N": "123456789012"}, **of("q1")),
        use("o3", "2026-10-20 06:00", 999_999, kind="published", resource="topic:t", **of("t1")),
        use("o4", "2026-10-20 06:00", 3, kind="delivered", resource="subscription:t/s", **of("s")),
        use("o5", "2026-10-20 06:00", 1_000, kind="received", account="tiny", **of("q2")),
    ]
    labels = [
        resource("queue", "q", "q1", attributes={"rewind_seconds": 0, "labels": {"team": 'a"b'}}),
        resource("topic", "t", "t1", attributes={"labels": {"team": "news"}}),
        resource("subscription", "s", "s", labels={}),
    ]
    directory = whole(root, "2026-11-04 00:30", labels, "Directory")
    first = whole(root, "2026-11-04 01:00", [begin, *october])
    options = ["--region", "eu-central-1", "--adjustments", f"{root}/adjustments/"]
    named = ["--directory-export", str(directory)]
    assert jobs.bill(output, [first], *options, *named, card=card).code == 0

    for values in (
        ["--kind=sent", "--quantity=-1000000", "--reason=sent twice"],
        ["--kind=credit", "--amount=-0.25", "--reason=an outage"],
        ["--kind=setup", "--amount=3", "--reason=by hand"],
    ):
        given = ["--account=acme", "--month=2026-10", f"--folder={root}/adjustments"]
        assert adjust.main([*given, *values]) == 0
    later = [
        use("l1", "2026-10-21 05:00", 4 * MILLION, **of("q1")),
        use("l2", "2026-10-21 05:00", 2_000, kind="received", account="tiny", **of("q2")),
        use("n1", "2026-11-05 05:00", 9_333_333, **of("q1")),
        # Of before resources had ids.
        use("n2", "2026-11-05 05:00", 50_000, kind="received", resource="queue:old"),
        use("d1", "2026-12-02 05:00", 8_100_001, **of("q1")),
    ]
    second = window(root, "2026-11-04 01:00", "2026-12-04 01:00", later)
    assert jobs.bill(output, [second], *options, card=card).code == 0
    return output


@pytest.fixture
def views(output: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, list[Row]]:
    monkeypatch.chdir(output)
    connection = duckdb.connect()
    connection.execute(WITHOUT_BACKLOG.sub("", (REPOSITORY / "spark_emr/tables.sql").read_text()))
    found = {}
    for name in ("focus_cost_and_usage", "focus_invoice_detail", "focus_billing_period"):
        result = connection.execute(f"SELECT * FROM {name}")
        names = [column[0] for column in result.description or ()]
        found[name] = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    return found


@pytest.mark.parametrize(
    ("view", "columns"),
    [
        ("focus_cost_and_usage", focus.COST_AND_USAGE),
        ("focus_invoice_detail", focus.INVOICE_DETAIL),
        ("focus_billing_period", focus.BILLING_PERIOD),
    ],
)
def test_columns_and_values_are_those_of_the_specification(
    views: Mapping[str, list[Row]], view: str, columns: Mapping[str, focus.Column]
) -> None:
    rows = views[view]
    assert rows
    own = [name for name in rows[0] if not name.startswith("x_")]
    assert own == sorted(name for name, column in columns.items() if focus.is_needed(column))
    assert [*rows[0]][: len(own)] == own
    for name in own:
        values = [row[name] for row in rows]
        if not columns[name].nullable:
            assert None not in values, name
        if columns[name].allowed:
            assert {*values} - {None} <= columns[name].allowed, name


def test_rows_of_an_invoice_add_up_to_its_payable_total(
    views: Mapping[str, list[Row]], output: Path
) -> None:
    made = [*documents(output), *documents(output, "tiny")]
    payable = {each["number"]: Decimal(each["total"]) for each in made}
    assert len(payable) == 4
    for view in ("focus_cost_and_usage", "focus_invoice_detail"):
        sums: dict[str | None, Decimal] = defaultdict(Decimal)
        for row in views[view]:
            sums[row["InvoiceId"]] += row["BilledCost"]
        sums.pop(None, None)
        assert sums == payable
    # The lines are those of the document, by their numbers.
    lines = {
        (each["number"], str(line["line"])): (Decimal(line["charge"]), line["kind"])
        for each in made
        for line in each["lines"]
    }
    assert {
        (row["InvoiceId"], row["InvoiceDetailId"]): row["BilledCost"]
        for row in views["focus_invoice_detail"]
    } == {key: charge for key, (charge, _) in lines.items()}
    taxes = {key[0]: charge for key, (charge, kind) in lines.items() if kind == "tax"}
    assert taxes == {each["number"]: Decimal(each["tax"]["amount"]) for each in made}


def test_quantity_times_price_is_the_charge(views: Mapping[str, list[Row]]) -> None:
    rows = views["focus_cost_and_usage"]
    priced = [row for row in rows if row["PricingQuantity"] is not None]
    assert {row["PricingUnit"] for row in priced} == {"1000000 Messages", "GB-Hours"}
    for row in priced:
        quantity = row["PricingQuantity"]
        assert row["ListUnitPrice"] * quantity == row["ListCost"]
        assert row["ContractedUnitPrice"] * quantity == row["ContractedCost"] == row["BilledCost"]
        assert row["ListUnitPrice"] >= 0
        paid = Decimal("0.875") if row["BillingAccountId"] == "acme" else 1
        assert row["ListUnitPrice"] * paid == row["ContractedUnitPrice"]


def test_columns_depending_on_others(views: Mapping[str, list[Row]], output: Path) -> None:
    of_price: tuple[str, ...] = (
        "SkuId",
        "SkuMeter",
        "SkuPriceDetails",
        "ListUnitPrice",
        "PricingQuantity",
    )
    of_price += ("PricingUnit", "ContractedUnitPrice", "ConsumedQuantity", "ConsumedUnit")
    for row in views["focus_cost_and_usage"]:
        is_usage = row["ChargeCategory"] == "Usage"
        assert (row["SkuPriceId"] is not None) == is_usage
        assert {row[name] is not None for name in of_price} == {is_usage}
        assert (row["ChargeFrequency"] == "Usage-Based") == is_usage
        assert (row["InvoiceId"] is None) == (row["InvoiceDetailId"] is None)
        assert (row["ResourceId"] is None) == (row["ResourceName"] is None)
        assert row["EffectiveCost"] == row["BilledCost"]
        if is_usage:
            assert json.loads(row["SkuPriceDetails"])["x_Tier"] >= 1
        assert row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
        assert (row["HostProviderName"], row["InvoiceIssuerName"]) == ("AWS", "Queues Ltd.")
    made = documents(output)[0]
    assert made["seller"] == {"name": "Queues Ltd.", "payment_terms": "30 days"}
    assert made["buyer"] == {"account": "acme", "name": "Acme & Sons"}
    for row in views["focus_invoice_detail"]:
        assert json.loads(row["InvoiceDetailGrain"])
        assert (row["PaymentTerms"], row["InvoiceIssueStatus"]) == ("30 days", "Issued")


def test_each_kind_of_charge_is_told(views: Mapping[str, list[Row]]) -> None:
    told = {
        (
            row["BillingAccountId"],
            row["BillingPeriodStart"].month,
            row["ChargePeriodStart"].month,
            row["ChargeCategory"],
            row["ChargeClass"],
            row["ChargeDescription"],
        )
        for row in views["focus_cost_and_usage"]
        if row["ChargeDescription"] not in ("rounding",)
    }
    assert told == {
        ("acme", 10, 10, "Usage", None, "sent, tier 1"),
        ("acme", 10, 10, "Usage", None, "sent, tier 2"),
        ("acme", 10, 10, "Usage", None, "kept, tier 1"),
        ("acme", 10, 10, "Usage", None, "published, tier 1"),
        ("acme", 10, 10, "Usage", None, "delivered, tier 1"),
        ("acme", 10, 10, "Tax", None, "VAT"),
        ("tiny", 10, 10, "Usage", None, "received, tier 1"),
        ("tiny", 10, 10, "Adjustment", None, "minimum"),
        ("tiny", 10, 10, "Tax", None, "VAT"),
        # What came later for October, and by hand.
        ("acme", 11, 10, "Usage", "Correction", "sent, tier 2"),
        ("acme", 11, 10, "Usage", "Correction", "sent, tier 3"),
        ("acme", 11, 10, "Tax", "Correction", "VAT"),
        ("acme", 11, 10, "Usage", "Correction", "sent: sent twice"),
        ("acme", 11, 10, "Credit", "Correction", "credit: an outage"),
        ("acme", 11, 10, "Adjustment", "Correction", "setup: by hand"),
        ("acme", 11, 11, "Usage", None, "sent, tier 1"),
        ("acme", 11, 11, "Usage", None, "sent, tier 2"),
        ("acme", 11, 11, "Usage", None, "received, tier 1"),
        ("acme", 11, 11, "Tax", None, "VAT"),
        # Late use of an account that paid the minimum takes its place: no document, carried on.
        ("tiny", 12, 10, "Usage", "Correction", "received, tier 1"),
        ("tiny", 12, 10, "Adjustment", "Correction", "minimum"),
        ("acme", 12, 12, "Usage", None, "sent, tier 1"),
        ("acme", 12, 12, "Usage", None, "sent, tier 2"),
    }


def test_charge_periods_are_days_until_the_use_is_on_a_document(
    views: Mapping[str, list[Row]],
) -> None:
    periods = {
        (
            row["BillingAccountId"],
            bool(row["InvoiceId"]),
            row["ChargePeriodStart"],
            row["ChargePeriodEnd"],
        )
        for row in views["focus_cost_and_usage"]
    }
    october, november = ((datetime(2026, m, 1), datetime(2026, m + 1, 1)) for m in (10, 11))
    assert periods == {
        ("acme", True, *october),
        ("acme", True, *november),
        ("acme", False, datetime(2026, 12, 2), datetime(2026, 12, 3)),
        ("tiny", True, *october),
        # Carried on from a month's lines.
        ("tiny", False, *october),
    }


def test_labels_are_tags_and_the_rest_is_unallocated(views: Mapping[str, list[Row]]) -> None:
    tags: dict[tuple[str | None, str | None], set[str | None]] = defaultdict(set)
    for row in views["focus_cost_and_usage"]:
        tags[row["ResourceType"], row["ResourceName"]].add(row["Tags"])
    teams = {key: {json.loads(each)["team"] for each in tags[key] if each} for key in tags}
    assert teams == {
        ("queue", "q"): {'a"b'},
        ("topic", "t"): {"news"},
        ("subscription", "t/s"): set(),
        (None, None): set(),
    }


def test_periods_are_open_or_closed(views: Mapping[str, list[Row]]) -> None:
    periods = {
        row["BillingPeriodStart"].month: row["BillingPeriodStatus"]
        for row in views["focus_billing_period"]
    }
    assert periods == {10: "Closed", 11: "Closed", 12: "Open"}


def test_an_exceeded_budget_is_told_everywhere(output: Path) -> None:
    (state,) = json.loads((run_of(output, "billing") / "budgets.json").read_text())
    assert state == {
        "account": "acme",
        "month": "2026-12",
        "currency": "USD",
        "amount": "0.03",
        # 100,001 messages at 0.40 a million, less 12.5 %; none in the last 24 hours.
        "spent": "0.04",
        "forecast": "0.04",
        "state": "spent",
    }
    answers = summaries_in(output, "billing")
    assert answers["acme"]["budget"] == {
        name: value for name, value in state.items() if name != "account"
    }
    assert "budget" not in answers["tiny"]
    said = "acme: 0.04 USD of 2026-12 is above its budget of 0.03 USD"
    assert said in page_in(output, "billing").read_text()


def test_an_open_month_is_shown_as_if_it_ended_now(output: Path) -> None:
    december = summaries_in(output, "billing")["acme"]["invoices"][-1]
    assert (december["month"], december["number"], december["total"]) == ("2026-12", None, "0.05")
    assert [(line["kind"], line["amount"]) for line in december["lines"]][-2:] == [
        ("rounding", "0.00499965"),
        ("tax", "0.01"),
    ]
