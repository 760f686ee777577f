"""Trends of backlogs: from figures of several times to growth per hour and time to drain."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

_MS_PER_HOUR = 3_600_000


def with_trends(points: DataFrame, at_ms: int, most: int) -> DataFrame:
    """The rows of `points` at `at_ms`, with three columns more.

    `points` has the columns of `named_figures` and `at_ms`. `backlog_by_time` is a list of
    (`at_ms`, `messages`) over the last `most` times, oldest first. `growth_per_hour` (messages,
    negative when it shrinks) compares with the newest time at least an hour ago, or else the last
    one. `hours_to_drain` is at that rate; null when the backlog does not shrink.
    """
    kept = sf.col("active") + sf.col("inactive") + sf.col("delayed")
    newest_first = Window.partitionBy("id").orderBy(sf.desc("at_ms"))
    ranked = points.where(sf.col("at_ms") <= at_ms).select(
        "*", kept.alias("messages"), sf.row_number().over(newest_first).alias("rank")
    )
    long_enough = sf.col("at_ms") <= at_ms - _MS_PER_HOUR
    point = sf.struct("at_ms", "messages")
    shown = sf.when(sf.col("rank") <= most, point)
    of_resource = Window.partitionBy("id")
    now = ranked.select(
        "*",
        sf.sort_array(sf.collect_list(shown).over(of_resource)).alias("backlog_by_time"),
        sf.coalesce(
            sf.max(sf.when(long_enough, point)).over(of_resource),
            sf.max(sf.when(sf.col("at_ms") < at_ms, point)).over(of_resource),
        ).alias("reference"),
    ).where(sf.col("at_ms") == at_ms)
    hours = (sf.col("at_ms") - sf.col("reference.at_ms")) / _MS_PER_HOUR
    growth = (sf.col("messages") - sf.col("reference.messages")) / hours
    rated = now.withColumn("growth_per_hour", sf.round(growth, 2))
    drain = sf.when(sf.col("messages") == 0, sf.lit(0.0)).when(
        sf.col("growth_per_hour") < 0, sf.round(-sf.col("messages") / sf.col("growth_per_hour"), 2)
    )
    return rated.withColumn("hours_to_drain", drain).drop("messages", "rank", "reference")
