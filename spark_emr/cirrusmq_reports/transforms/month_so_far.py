"""The charges of the running month, and of the last day: for a forecast of the month's end."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.times import DAY_MS, iso_month


def month_so_far(usage: DataFrame, to_ms: int) -> DataFrame:
    """Returns columns `account`, `currency`, `so_far` and `last_day`: exact charges.

    `so_far` is for the month of `to_ms`, with its corrections; `last_day` for the last 24 full
    hours before it.
    """
    hour_ms = sf.unix_millis("hour")
    until_ms = to_ms - to_ms % (DAY_MS // 24)
    recent = hour_ms.between(until_ms - DAY_MS, until_ms - 1)
    in_month = sf.col("month") == iso_month(to_ms)
    none = sf.lit(0).cast("decimal(38,19)")
    sums = usage.groupBy("account", "currency").agg(
        sf.sum(sf.when(in_month, sf.col("charge")).otherwise(none)).alias("so_far"),
        sf.sum(sf.when(recent, sf.col("charge")).otherwise(none)).alias("last_day"),
    )
    return sums.where("so_far != 0 OR last_day != 0")
