"""Sums of usage, by the hour."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf


def usage_by_hour(entries: DataFrame) -> DataFrame:
    """Sums by `account`, `resource`, `kind` and `hour` (its start, UTC), with its `day`."""
    hour = sf.timestamp_seconds(sf.floor(sf.col("minute") / 60) * 3600)
    sums = entries.withColumn("hour", hour).groupBy("account", "resource", "kind", "hour")
    totals = sums.agg(*[sf.sum(name).alias(name) for name in ("count", "bytes", "attempts")])
    return totals.withColumn("day", sf.date_format("hour", "yyyy-MM-dd"))
