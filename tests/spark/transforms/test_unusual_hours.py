from __future__ import annotations

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, at, frame, ms, rows_of

from cirrusmq_reports.transforms.unusual_hours import unusual_hours

SCHEMA = (
    "account STRING, resource STRING, kind STRING, hour TIMESTAMP, day STRING, month STRING, "
    "count BIGINT"
)
NOW = "2026-11-30 08:00"


def use(hour: str, count: int, resource: str = "queue:q", kind: str = "sent") -> Values:
    return {
        "account": "acme",
        "resource": resource,
        "kind": kind,
        "hour": at(hour),
        "day": hour[:10],
        "month": hour[:7],
        "count": count,
    }


def test_an_hour_far_above_the_busiest_of_four_weeks_is_unusual(spark: SparkSession) -> None:
    rows = [
        *[use(f"2026-11-{day:02} 10:00", 500 + day) for day in range(2, 29)],
        use("2026-10-30 10:00", 50_000),  # five weeks ago
        use("2026-11-29 09:00", 1_584),  # three times the 28th
        use("2026-11-29 10:00", 1_585),
        use("2026-11-30 07:00", 800),
        use("2026-11-30 07:00", 900, kind="received"),
        use("2026-11-30 07:00", 9_000_000, kind="kept"),
    ]
    found = unusual_hours(frame(spark, SCHEMA, rows), ms(NOW))
    assert rows_of(found, "resource", "kind", "hour", "count", "usual_most") == {
        ("queue:q", "sent", "2026-11-29 10:00", 1_585, 528)
    }


def test_new_or_small_use_is_not_unusual(spark: SparkSession) -> None:
    rows = [
        *[use(f"2026-11-{day:02} 10:00", 1, "queue:new") for day in range(23, 29)],
        use("2026-11-30 06:00", 90_000, "queue:new"),
        *[use(f"2026-11-{day:02} 10:00", 1, "queue:small") for day in range(2, 29)],
        use("2026-11-30 06:00", 999, "queue:small"),
        use("2026-11-30 06:00", 90_000, "queue:first"),
    ]
    assert unusual_hours(frame(spark, SCHEMA, rows), ms(NOW)).count() == 0
