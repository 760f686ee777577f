from __future__ import annotations

from decimal import Decimal

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, at, frame, ms, rows_of

from cirrusmq_reports.billing_summary import Facts, billing_summaries
from cirrusmq_reports.transforms.month_so_far import month_so_far

SCHEMA = "account STRING, currency STRING, hour TIMESTAMP, month STRING, charge DECIMAL(38,19)"


def use(hour: str, charge: str, **more: object) -> Values:
    row = {"account": "acme", "currency": "USD", "hour": at(hour), "month": hour[:7]}
    return {**row, "charge": Decimal(charge), **more}


def test_the_last_day_is_of_whole_hours_and_the_month_of_what_it_bills(
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


def test_a_forecast_adds_days_like_the_last_one() -> None:
    def line(month: str) -> Values:
        row = {"account": "acme", "month": month, "number": "", "currency": "USD"}
        used = {"resource": "queue:q", "kind": "sent", "used_month": month}
        return {**row, **used, "count": 1, "bytes": 1, "charge": Decimal("12.004")}

    so_far = {"account": "acme", "currency": "USD"}
    facts = Facts(
        from_ms=0,
        to_ms=ms("2026-11-20 12:00"),
        generated_ms=0,
        close_days=3,
        gaps=[],
        documents={},
        so_far=[{**so_far, "so_far": Decimal("12.004"), "last_day": Decimal("2.5")}],
        unusual=[],
    )
    ((_, summary),) = billing_summaries([line("2026-10"), line("2026-11")], facts)
    shown = summary["invoices"]
    # Ten days and a half are left.
    assert [each["forecast"] for each in shown] == [None, "38.25"]
    assert [each["total"] for each in shown] == ["12.00", "12.00"]
    assert [line["amount"] for line in shown[0]["lines"]] == ["12.004", "-0.004"]
