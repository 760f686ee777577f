from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.spark.transforms.frames import frame

from cirrusmq_reports.transforms.trends import with_trends

HOUR_MS = 3_600_000
NOW = 100 * HOUR_MS
SCHEMA = "id STRING, at_ms BIGINT, messages BIGINT"


@pytest.mark.parametrize(
    ("points", "growth", "drain"),
    [
        ([(0, 6), (-1, 9), (-2, 14)], -3.0, 2.0),
        ([(0, 9), (-0.5, 1), (-1, 6)], 3.0, None),
        ([(0, 9), (-0.5, 6)], 6.0, None),
        ([(0, 0), (-2, 8)], -4.0, 0.0),
        ([(0, 5), (-1, 5)], 0.0, None),
        ([(0, 5)], None, None),
        ([(0, 4), (1, 99), (-4, 8)], -1.0, 4.0),
    ],
)
def test_growth_is_since_an_hour_ago_or_the_last_time(
    spark: SparkSession,
    points: list[tuple[float, int]],
    growth: float | None,
    drain: float | None,
) -> None:
    rows = [
        {"id": "q", "at_ms": NOW + round(hours * HOUR_MS), "messages": count}
        for hours, count in points
    ]
    figures = frame(spark, "id STRING, name STRING", [{"id": "q", "name": "orders"}])
    (row,) = with_trends(figures, frame(spark, SCHEMA, rows), NOW, 2).collect()
    assert (row["name"], row["growth_per_hour"], row["hours_to_drain"]) == ("orders", growth, drain)
    past = sorted(point for point in points if point[0] <= 0)[-2:]
    assert [point["messages"] for point in row["backlog_by_time"]] == [n for _, n in past]


def test_growth_looks_further_back_than_a_trend_shows(spark: SparkSession) -> None:
    rows = [{"id": "q", "at_ms": NOW - hours * HOUR_MS, "messages": 5} for hours in (0, 1)]
    figures = frame(spark, "id STRING", [{"id": "q"}])
    (row,) = with_trends(figures, frame(spark, SCHEMA, rows), NOW, 1).collect()
    assert (len(row["backlog_by_time"]), row["growth_per_hour"]) == (1, 0.0)
