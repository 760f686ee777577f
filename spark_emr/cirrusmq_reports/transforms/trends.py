"""Trends of backlogs: from figures of several times to growth per hour and time to drain."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

_MS_PER_HOUR = 3_600_000


def with_trends(figures: DataFrame, times: DataFrame, at_ms: int, limit: int) -> DataFrame:
    """Returns the rows of `figures`, which are of the time `at_ms`, with three more columns.

    `times` has `id`, `at_ms` and `messages`, also for this time. `backlog_by_time` is a list of
    (`at_ms`, `messages`) over the last `limit` times, oldest first. `growth_per_hour` (messages,
    negative if the backlog shrinks) compares with the newest time at least an hour ago, or with
    the last one. `hours_to_drain` is at that rate; null if the backlog does not shrink.
    """
    newest_first = Window.partitionBy("id").orderBy(sf.desc("at_ms"))
    ranked = times.where(sf.col("at_ms") <= at_ms).withColumn(
        "rank", sf.row_number().over(newest_first)
    )
    point = sf.struct("at_ms", "messages")
    is_now, long_enough = sf.col("at_ms") == at_ms, sf.col("at_ms") <= at_ms - _MS_PER_HOUR
    series = ranked.groupBy("id").agg(
        sf.sort_array(sf.collect_list(sf.when(sf.col("rank") <= limit, point))).alias(
            "backlog_by_time"
        ),
        sf.max(sf.when(is_now, sf.col("messages"))).alias("messages"),
        sf.max(sf.when(long_enough, point)).alias("hour_ago"),
        sf.max(sf.when(~is_now, point)).alias("last"),
    )
    reference = sf.coalesce("hour_ago", "last")
    compared = series.withColumn("reference", reference)
    hours = (sf.lit(at_ms) - sf.col("reference.at_ms")) / _MS_PER_HOUR
    growth = (sf.col("messages") - sf.col("reference.messages")) / hours
    rated = compared.withColumn("growth_per_hour", sf.round(growth, 2))
    drain = sf.when(sf.col("messages") == 0, sf.lit(0.0)).when(
        sf.col("growth_per_hour") < 0, sf.round(-sf.col("messages") / sf.col("growth_per_hour"), 2)
    )
    trends = rated.withColumn("hours_to_drain", drain)
    shown = trends.select("id", "backlog_by_time", "growth_per_hour", "hours_to_drain")
    return figures.join(shown, "id", "left")
