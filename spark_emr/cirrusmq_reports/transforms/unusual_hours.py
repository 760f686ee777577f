"""Hours of the last day in which a resource was used far more than in the four weeks before."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.rate_card import OPERATIONS
from cirrusmq_reports.times import DAY_MS

TIMES_AS_MUCH = 3
MIN_COUNT = 1_000
MIN_DAYS = 7
_WEEKS = 4
RULE = (
    f"An hour of the last day is unusual if it has {MIN_COUNT:,} messages or more, and more than "
    f"{TIMES_AS_MUCH} times those of the busiest hour that the resource had in the {_WEEKS} weeks "
    f"before; it must have been used on {MIN_DAYS} days of them."
)


def unusual_hours(usage: DataFrame, to_ms: int) -> DataFrame:
    """Returns columns `account`, `resource`, `kind`, `hour`, `count`, `usual_most`, by RULE.

    ::

        four weeks before to_ms, by the hour          the last day
        ▂▃▅▂▁▂▄▆▃▂▁▁▂▅▃▂▁▂▃▅  the highest: ▆          ▃▂█▂     █ > 3 x ▆: unusual
    """
    hourly = usage.where(sf.col("kind").isin(*OPERATIONS))
    sums = hourly.groupBy("account", "resource", "kind", "hour").agg(
        sf.sum("count").alias("count"), sf.max("day").alias("day")
    )
    last_day = sf.timestamp_millis(sf.lit(to_ms - DAY_MS))
    weeks_ago = sf.timestamp_millis(sf.lit(to_ms - DAY_MS - _WEEKS * 7 * DAY_MS))
    before = sums.where((sf.col("hour") >= weeks_ago) & (sf.col("hour") < last_day))
    usual = before.groupBy("account", "resource", "kind").agg(
        sf.max("count").alias("usual_most"), sf.count_distinct("day").alias("days")
    )
    known = usual.where(sf.col("days") >= MIN_DAYS).drop("days")
    recent = sums.where((sf.col("hour") >= last_day) & (sf.col("count") >= MIN_COUNT))
    compared = recent.drop("day").join(known, ["account", "resource", "kind"])
    return compared.where(sf.col("count") > TIMES_AS_MUCH * sf.col("usual_most"))
