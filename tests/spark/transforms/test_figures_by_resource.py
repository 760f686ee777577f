from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, frame, rows_of

from cirrusmq_reports.columns import BAD_RECORD
from cirrusmq_reports.figures import REASON_COLUMNS, RECEIVE_COLUMNS, SIZE_COLUMNS
from cirrusmq_reports.transforms.figures_by_resource import figures_by_resource

COUNTS = ("kept", "active", "delayed", "rewindable", "dead", "expired", "bytes")
SCHEMA = ", ".join(
    (
        "key STRING, age BIGINT",
        *(f"{name} BIGINT" for name in (*COUNTS, "oldest_age_seconds")),
        *(f"{name} BIGINT" for name in (*REASON_COLUMNS, *RECEIVE_COLUMNS, *SIZE_COLUMNS)),
        "retrying BOOLEAN, probe_sent_ms BIGINT",
    )
)
NOW = 1_000_000


def counted(key: str, age: int | None, kept: int, **more: object) -> Values:
    zero = dict.fromkeys((*COUNTS, *REASON_COLUMNS, *RECEIVE_COLUMNS, *SIZE_COLUMNS), 0)
    return {**zero, "key": key, "age": age, "kept": kept, "oldest_age_seconds": age, **more}


def test_partitions_and_ages_of_a_resource_are_added_up(spark: SparkSession) -> None:
    rows = frame(
        spark,
        SCHEMA,
        [
            counted("Q#q#0", 4, 3, active=1, delayed=1, bytes=30, receives_0=3),
            counted("Q#q#0", 8, 2, active=2, bytes=20, receives_1=2),
            counted("R#q#0", None, 0, rewindable=7),
            counted("Q#q#12", 9, 5, active=4, bytes=50, dead=5, expired=1),
            counted("Q#other#0", 1, 1, active=1),
        ],
    )
    shown = ("id", "active", "inactive", "delayed", "rewindable", "dead", "expired", "bytes")
    figures = figures_by_resource(rows, NOW)
    assert rows_of(figures, *shown, "receives_0", "receives_1", "oldest_age_seconds") == {
        ("q", 7, 2, 1, 7, 5, 1, 100, 3, 2, 9),
        ("other", 1, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    }


def test_percentiles_are_the_ages_that_so_many_do_not_exceed(spark: SparkSession) -> None:
    rows = [counted("Q#q#0", age, 1) for age in range(1, 51)]
    rows += [counted("Q#q#1", age, 1) for age in range(51, 101)]
    rows += [counted("Q#one#0", 7, 1), counted("R#none#0", None, 0, rewindable=1)]
    figures = figures_by_resource(frame(spark, SCHEMA, rows), NOW)
    ages = ("p50_age_seconds", "p95_age_seconds", "p99_age_seconds")
    assert rows_of(figures, "id", *ages) == {
        ("q", 50, 95, 99),
        ("one", 7, 7, 7),
        ("none", None, None, None),
    }


def test_the_hottest_partition_is_the_first_of_those_with_the_most(spark: SparkSession) -> None:
    rows = [counted(f"Q#q#{place}", 1, kept) for place, kept in ((3, 4), (1, 4), (2, 1))]
    rows.append(counted("Q#empty#5", None, 0))
    figures = figures_by_resource(frame(spark, SCHEMA, rows), NOW)
    assert rows_of(figures, "id", "hottest_partition", "hottest_partition_share") == {
        ("q", 1, 0.4444),
        ("empty", None, None),
    }


def test_a_probe_has_an_age_only_while_its_subscription_retries(spark: SparkSession) -> None:
    rows = [
        counted("Q#one#0", 1, 1),
        counted("Q#two#0", 1, 1, retrying=False, probe_sent_ms=NOW - 9_000),
        counted("Q#three#0", 1, 1, retrying=True, probe_sent_ms=NOW - 5_999),
    ]
    figures = figures_by_resource(frame(spark, SCHEMA, rows), NOW)
    assert rows_of(figures, "id", "retrying", "probe_age_seconds") == {
        ("one", False, None),
        ("two", False, None),
        ("three", True, 5),
    }


def test_a_key_that_names_no_partition_ends_the_job(spark: SparkSession) -> None:
    rows = frame(spark, SCHEMA, [counted("Q#q", 1, 1)])
    with pytest.raises(PySparkException, match=BAD_RECORD):
        figures_by_resource(rows, NOW).collect()
