from __future__ import annotations

from decimal import Decimal

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, frame, rows_of

from cirrusmq_reports.transforms.daily_charges import daily_charges

SCHEMA = "day STRING, kind STRING, currency STRING, count BIGINT, charge DECIMAL(38,19)"


def use(hour: str, count: int, charge: str = "0", **more: object) -> Values:
    row = {"day": hour[:10], "kind": "sent", "currency": "USD", "count": count}
    return {**row, "charge": Decimal(charge), **more}


def test_charges_of_a_day_are_those_of_its_resources_and_hours(spark: SparkSession) -> None:
    usage = frame(
        spark,
        SCHEMA,
        [
            use("2026-11-05 08:00", 1, "0.5"),
            use("2026-11-05 09:00", 2, "0.25"),
            use("2026-11-05 09:00", 4, "8", kind="kept"),
            use("2026-11-05 09:00", 5, "7", currency="CNY"),
            use("2026-11-06 09:00", 6, "1"),
        ],
    )
    columns = ("day", "kind", "currency", "count", "charge")
    assert rows_of(daily_charges(usage), *columns) == {
        ("2026-11-05", "sent", "USD", 3, Decimal("0.75")),
        ("2026-11-05", "kept", "USD", 4, Decimal("8")),
        ("2026-11-05", "sent", "CNY", 5, Decimal("7")),
        ("2026-11-06", "sent", "USD", 6, Decimal("1")),
    }
