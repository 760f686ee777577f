"""Sums of usage, by the hour and the month that it is billed in."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.times import DAY_MS

_MINUTES_PER_DAY, _MINUTES_PER_HOUR = 1_440, 60


def usage_by_hour(entries: DataFrame, close_days: int) -> DataFrame:
    """Columns `account`, `resource`, `kind`, `hour` (its start, UTC), `day`, `month`, and sums.

    `month` is that of the use, or, where it was written down only when that month was closed
    already, the month of the writing::

        use of October  | Oct                | Nov .. 4      | Nov 4 ..
        written                 ^ October        ^ October     ^ November: a correction

    Posts to URLs become usage of their own: the kind `attempted`.
    """
    used = _month_number(sf.floor(sf.col("minute") / _MINUTES_PER_DAY))
    lately = sf.floor((sf.col("written_ms") - close_days * DAY_MS) / DAY_MS)
    written = sf.floor(sf.col("written_ms") / DAY_MS)
    billed = sf.when(_month_number(lately) > used, _month_number(written)).otherwise(used)
    places = entries.select(
        "account",
        "resource",
        "kind",
        sf.floor(sf.col("minute") / _MINUTES_PER_HOUR).alias("hour_number"),
        billed.alias("month_number"),
        "count",
        "bytes",
        "attempts",
    )
    sums = places.groupBy("account", "resource", "kind", "hour_number", "month_number").agg(
        *[sf.sum(name).alias(name) for name in ("count", "bytes", "attempts")]
    )
    posts = sf.struct(
        sf.lit("attempted").alias("kind"),
        sf.col("attempts").alias("count"),
        sf.lit(0).cast("bigint").alias("bytes"),
    )
    use = sf.explode(sf.array(sf.struct("kind", "count", "bytes"), posts)).alias("use")
    rows = sums.select("account", "resource", "hour_number", "month_number", use)
    hour = sf.timestamp_seconds(sf.col("hour_number") * 3600)
    return rows.where("use.count != 0 OR use.bytes != 0").select(
        "account",
        "resource",
        "use.kind",
        hour.alias("hour"),
        sf.date_format(hour, "yyyy-MM-dd").alias("day"),
        _month_text(sf.col("month_number")).alias("month"),
        "use.count",
        "use.bytes",
    )


def _month_number(day: Column) -> Column:
    """Months since the year 0, of a day since 1970."""
    date = sf.date_from_unix_date(day.cast("int"))
    return sf.year(date) * 12 + sf.month(date) - 1


def _month_text(number: Column) -> Column:
    year = sf.lpad(sf.floor(number / 12).cast("string"), 4, "0")
    return sf.concat_ws("-", year, sf.lpad((number % 12 + 1).cast("string"), 2, "0"))
