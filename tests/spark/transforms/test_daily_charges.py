from __future__ import annotations

from decimal import Decimal

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, at, frame, rows_of

from cirrusmq_reports.transforms.billed_volumes import billed_volumes
from cirrusmq_reports.transforms.charged_usage import USAGE_SCHEMA
from cirrusmq_reports.transforms.daily_charges import daily_charges


def use(hour: str, count: int, charge: str = "0", **more: object) -> Values:
    return {
        "account": "acme",
        "resource": "queue:q",
        "kind": "sent",
        "hour": at(hour),
        "day": hour[:10],
        "month": hour[:7],
        "count": count,
        "bytes": 1_000 * count,
        "currency": "USD",
        "charge": Decimal(charge),
        **more,
    }


def test_charges_of_a_day_are_those_of_its_resources_and_hours(spark: SparkSession) -> None:
    usage = frame(
        spark,
        USAGE_SCHEMA,
        [
            use("2026-11-05 08:00", 1, "0.5"),
            use("2026-11-05 09:00", 2, "0.25", resource="queue:other"),
            use("2026-11-05 09:00", 4, "8", kind="kept"),
            use("2026-11-05 09:00", 5, "7", currency="CNY"),
            use("2026-11-06 09:00", 6, "1", account="globex"),
        ],
    )
    columns = ("day", "account", "kind", "currency", "count", "charge")
    assert rows_of(daily_charges(usage), *columns) == {
        ("2026-11-05", "acme", "sent", "USD", 3, Decimal("0.75")),
        ("2026-11-05", "acme", "kept", "USD", 4, Decimal("8")),
        ("2026-11-05", "acme", "sent", "CNY", 5, Decimal("7")),
        ("2026-11-06", "globex", "sent", "USD", 6, Decimal("1")),
    }


def test_volumes_are_billed_to_the_month_of_the_use(spark: SparkSession) -> None:
    """In messages, but in bytes for what is kept: the units that tiers have."""
    closed = frame(
        spark,
        USAGE_SCHEMA,
        [
            use("2026-10-31 08:00", 3),
            use("2026-10-30 08:00", 4, month="2026-11", resource="queue:other"),
            use("2026-11-02 08:00", 5),
            use("2026-11-02 08:00", 6, kind="kept"),
        ],
    )
    columns = ("account", "kind", "used_month", "billed_volume")
    assert rows_of(billed_volumes(closed), *columns) == {
        ("acme", "sent", "2026-10", 7),
        ("acme", "sent", "2026-11", 5),
        ("acme", "kept", "2026-11", 6_000),
    }
