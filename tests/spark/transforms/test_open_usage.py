from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from tests.spark.transforms.frames import Values, at, frame, rows_of

from cirrusmq_reports.transforms.open_usage import Reach, open_usage

SCHEMA = (
    "account STRING, resource STRING, kind STRING, hour TIMESTAMP, day STRING, month STRING, "
    "count BIGINT, bytes BIGINT, shown_to_ms BIGINT"
)
SHOWN = ("day", "month", "count")


def use(day: str, count: int, month: str | None = None, **more: object) -> Values:
    return {
        "account": "acme",
        "resource": "queue:q",
        "kind": "sent",
        "hour": at(f"{day} 12:00"),
        "day": day,
        "month": month or day[:7],
        "count": count,
        "bytes": 0,
        "shown_to_ms": 5,
        **more,
    }


def usage(spark: SparkSession, *rows: Values) -> DataFrame:
    return frame(spark, SCHEMA, rows)


def reach(first: str, last: str, **more: object) -> Reach:
    return Reach(first_day=first, last_day=last, **more)  # type: ignore[arg-type]


def test_days_that_the_exports_show_replace_the_others(spark: SparkSession) -> None:
    shown = usage(spark, use("2026-11-05", 7), use("2026-11-07", 8))
    earlier = usage(
        spark,
        use("2026-11-04", 1),
        use("2026-11-05", 2),
        use("2026-11-06", 3),
        use("2026-11-08", 4),
    )
    rows = open_usage(shown, earlier, reach("2026-11-05", "2026-11-07"))
    assert rows_of(rows, *SHOWN) == {
        ("2026-11-04", "2026-11", 1),
        ("2026-11-05", "2026-11", 7),
        ("2026-11-07", "2026-11", 8),
        ("2026-11-08", "2026-11", 4),
    }


def test_a_day_that_earlier_reports_know_better_or_that_none_shows_stays(
    spark: SparkSession,
) -> None:
    shown = usage(spark, use("2026-11-05", 1), use("2026-11-07", 8))
    earlier = usage(spark, use("2026-11-05", 9), use("2026-11-06", 3))
    known = reach("2026-11-05", "2026-11-07", kept_days=["2026-11-05"], unseen_days=["2026-11-06"])
    rows = open_usage(shown, earlier, known)
    assert rows_of(rows, *SHOWN) == {
        ("2026-11-05", "2026-11", 9),
        ("2026-11-06", "2026-11", 3),
        ("2026-11-07", "2026-11", 8),
    }


def test_what_changes_a_closed_month_is_usage_of_the_open_one(spark: SparkSession) -> None:
    shown = usage(
        spark,
        use("2026-10-30", 130),
        use("2026-10-31", 100),
        use("2026-10-31", 4, "2026-11"),
        use("2026-11-20", 7),
    )
    earlier = usage(
        spark,
        use("2026-10-02", 50),
        use("2026-10-30", 100),
        use("2026-10-31", 110),
        use("2026-11-20", 5),
    )
    october = {"closed_through": "2026-10", "open_month": "2026-11"}
    rows = open_usage(shown, earlier, reach("2026-10-11", "2026-11-20", **october))
    assert rows_of(rows, *SHOWN) == {
        ("2026-10-30", "2026-11", 30),
        ("2026-10-31", "2026-11", -10 + 4),
        ("2026-11-20", "2026-11", 7),
    }


def test_a_correction_that_was_billed_is_not_billed_again(spark: SparkSession) -> None:
    shown = usage(spark, use("2026-10-30", 130), use("2026-12-20", 7))
    earlier = usage(spark, use("2026-10-30", 100), use("2026-10-30", 30, "2026-11"))
    november = {"closed_through": "2026-11", "open_month": "2026-12"}
    rows = open_usage(shown, earlier, reach("2026-10-15", "2026-12-20", **november))
    assert rows_of(rows, *SHOWN) == {("2026-12-20", "2026-12", 7)}


def test_a_correction_stays_when_no_export_shows_its_day_any_more(spark: SparkSession) -> None:
    earlier = usage(spark, use("2026-10-30", 100), use("2026-10-30", 30, "2026-11"))
    october = {"closed_through": "2026-10", "open_month": "2026-11"}
    rows = open_usage(usage(spark), earlier, reach("2026-11-01", "2026-11-30", **october))
    assert rows_of(rows, *SHOWN) == {("2026-10-30", "2026-11", 30)}
