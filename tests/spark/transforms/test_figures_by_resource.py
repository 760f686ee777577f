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


def test_a_key_without_a_partition_ends_the_job(spark: SparkSession) -> None:
    rows = frame(spark, SCHEMA, [counted("Q#q", 1, 1)])
    with pytest.raises(PySparkException, match=BAD_RECORD):
        figures_by_resource(rows, NOW).collect()
