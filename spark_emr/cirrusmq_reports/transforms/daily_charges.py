"""Sums charges by day."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf


def daily_charges(usage: DataFrame) -> DataFrame:
    """Returns columns `day`, `kind`, `currency`, `count`, `charge`, for the page's charts."""
    return usage.groupBy("day", "kind", "currency").agg(
        sf.sum("count").alias("count"), sf.sum("charge").alias("charge")
    )
