from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, at, frame, ms, rows_of

from cirrusmq_reports.billing_summary import Facts, billing_summaries
from cirrusmq_reports.rate_card import ByAccount, Prices
from cirrusmq_reports.transforms.month_so_far import month_so_far

SCHEMA = "account STRING, currency STRING, hour TIMESTAMP, month STRING, charge DECIMAL(38,19)"


def use(hour: str, charge: str, **more: object) -> Values:
    row = {"account": "acme", "currency": "USD", "hour": at(hour), "month": hour[:7]}
    return {**row, "charge": Decimal(charge), **more}


def test_the_last_day_is_of_whole_hours_and_the_month_of_its_charges(
    spark: SparkSession,
) -> None:
    rows = [
        use("2026-11-05 12:00", "10"),
        use("2026-11-19 07:00", "100"),
        use("2026-11-19 08:00", "2"),
        use("2026-11-20 07:00", "4"),
        use("2026-11-20 08:00", "1"),
        use("2026-10-30 12:00", "30", month="2026-11"),
        use("2026-10-30 12:00", "500"),
        use("2026-10-30 12:00", "500", account="other"),
        use("2026-11-20 07:00", "7", currency="CNY"),
    ]
    found = month_so_far(frame(spark, SCHEMA, rows), ms("2026-11-20 08:30"))
    assert rows_of(found, "account", "currency", "so_far", "last_day") == {
        ("acme", "USD", Decimal(147), Decimal(6)),
        ("acme", "CNY", Decimal(7), Decimal(7)),
    }


def line(month: str, charge: str = "12.004") -> Values:
    row = {"account": "acme", "month": month, "number": "", "currency": "USD"}
    used = {"resource": "queue:q", "kind": "sent", "used_month": month}
    return {**row, **used, "count": 1, "bytes": 1, "charge": Decimal(charge)}


def facts_of(so_far: str, last_day: str, **more: Any) -> Facts:
    row = {"account": "acme", "currency": "USD", "so_far": Decimal(so_far)}
    return Facts(
        from_ms=0,
        to_ms=ms("2026-11-20 12:00"),
        generated_ms=0,
        close_days=3,
        gaps=[],
        so_far=[{**row, "last_day": Decimal(last_day)}],
        unusual=[],
        **more,
    )


def test_a_forecast_adds_days_like_the_last_one() -> None:
    facts = facts_of("12.004", "2.5")
    ((_, summary),) = billing_summaries([line("2026-10"), line("2026-11")], [], facts)
    shown = summary["invoices"]
    # Ten days and a half are left.
    assert [each["forecast"] for each in shown] == [None, "38.25"]
    assert [each["total"] for each in shown] == ["12.00", "12.00"]
    assert [line["amount"] for line in shown[0]["lines"]] == ["12.004", "-0.004"]


@pytest.mark.parametrize(
    ("last_day", "total", "forecast"), [("2.5", "23.80", "45.52"), ("0.1", "23.80", "23.80")]
)
def test_a_forecast_has_tax_and_the_minimum_as_the_total_has(
    last_day: str, total: str, forecast: str
) -> None:
    """A budget has not: it is of use."""
    prices = Prices(
        from_ms=0,
        currency="USD",
        tiers={},
        discounts={},
        tax=ByAccount(common=Decimal(19)),
        minimum=ByAccount(common=Decimal(20)),
    )
    budgets = {"acme": Decimal(30)}
    facts = facts_of("12.004", last_day, terms=lambda month: prices, budgets=budgets)

    ((_, summary),) = billing_summaries([line("2026-11")], [], facts)

    (invoice,) = summary["invoices"]
    assert (invoice["total"], invoice["forecast"]) == (total, forecast)
    used = Decimal("12.004") + Decimal(last_day) * Decimal("10.5")
    assert Decimal(summary["budget"]["forecast"]) == round(used, 2)
