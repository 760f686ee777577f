from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.transforms.frames import Values, frame, ms, rows_of

from cirrusmq_reports.transforms.usage_by_hour import usage_by_hour

SCHEMA = (
    "account STRING, resource STRING, kind STRING, minute BIGINT, count BIGINT, bytes BIGINT, "
    "attempts BIGINT, written_ms BIGINT"
)


def entry(used: str, written: str | None = None, **more: object) -> Values:
    return {
        "account": "acme",
        "resource": "queue:q",
        "kind": "sent",
        "minute": ms(used) // 60_000,
        "count": 1,
        "bytes": 10,
        "attempts": 0,
        "written_ms": ms(written or used),
        **more,
    }


def by_hour(spark: SparkSession, *entries: Values) -> DataFrame:
    return usage_by_hour(frame(spark, SCHEMA, entries), close_days=3)


def test_entries_of_an_hour_are_added_up(spark: SparkSession) -> None:
    rows = by_hour(
        spark,
        entry("2026-11-20 08:00", count=5),
        entry("2026-11-20 08:59", count=-2, bytes=-4),
        entry("2026-11-20 09:00"),
        entry("2026-11-20 09:00", kind="received"),
        entry("1970-01-01 00:00"),
    )
    assert rows_of(rows, "kind", "hour", "day", "month", "count", "bytes") == {
        ("sent", "2026-11-20 08:00", "2026-11-20", "2026-11", 3, 6),
        ("sent", "2026-11-20 09:00", "2026-11-20", "2026-11", 1, 10),
        ("received", "2026-11-20 09:00", "2026-11-20", "2026-11", 1, 10),
        ("sent", "1970-01-01 00:00", "1970-01-01", "1970-01", 1, 10),
    }


@pytest.mark.parametrize(
    ("used", "written", "month"),
    [
        ("2026-10-31 23:59", "2026-11-01 00:01", "2026-10"),
        ("2026-10-31 23:59", "2026-11-03 23:59", "2026-10"),
        ("2026-10-31 23:59", "2026-11-04 00:00", "2026-11"),
        ("2026-10-05 12:00", "2026-12-02 00:00", "2026-12"),
        ("2026-12-31 12:00", "2027-01-04 00:00", "2027-01"),
        ("2026-11-05 12:00", "2026-11-05 12:00", "2026-11"),
    ],
)
def test_use_that_is_written_down_late_is_billed_in_the_month_of_the_writing(
    spark: SparkSession, used: str, written: str, month: str
) -> None:
    rows = by_hour(spark, entry(used, written))
    assert rows_of(rows, "day", "month") == {(used[:10], month)}


def test_posts_to_a_url_are_usage_also_where_none_was_a_delivery(spark: SparkSession) -> None:
    rows = by_hour(
        spark,
        entry("2026-11-20 08:00", kind="delivered", count=0, bytes=0, attempts=7),
        entry("2026-11-20 09:00", kind="delivered", count=2, attempts=3),
    )
    assert rows_of(rows, "kind", "hour", "count", "bytes") == {
        ("attempted", "2026-11-20 08:00", 7, 0),
        ("attempted", "2026-11-20 09:00", 3, 0),
        ("delivered", "2026-11-20 09:00", 2, 10),
    }


def test_what_adds_up_to_nothing_is_left_out(spark: SparkSession) -> None:
    rows = by_hour(spark, entry("2026-11-20 08:00"), entry("2026-11-20 08:01", count=-1, bytes=-10))
    assert rows.count() == 0
