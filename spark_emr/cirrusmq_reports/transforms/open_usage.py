"""The usage of the months that are still open, from earlier reports and the exports."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

OPEN_USAGE = ("account", "resource", "kind", "hour", "day", "month", "count", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The days that the exports show, and the month that takes what comes late."""

    first_day: str
    """The first that they show from its beginning on."""
    last_day: str
    kept_days: Collection[str] = ()
    """Of which earlier reports know more."""
    unseen_days: Collection[str] = ()
    """Which no export shows whole."""
    closed_through: str = ""
    """The last month whose invoices an earlier report has closed; "" = none."""
    open_month: str = ""
    """The first month after it."""


def open_usage(shown: DataFrame, earlier: DataFrame, reach: Reach) -> DataFrame:
    """The columns OPEN_USAGE and `shown_to_ms`, of months after `closed_through`.

    Days that the exports show replace those of earlier reports. If a closed month would have
    changed by that, the difference is usage of the open month::

        closed   queue:q sent Nov 5, 12:00    100        (stays)
        shown    queue:q sent Nov 5, 12:00    130
        open     queue:q sent Nov 5, 12:00     30        month = December, day = Nov 5
    """
    day, month = sf.col("day"), sf.col("month")
    is_open = month > reach.closed_through
    fresh = shown.where(~day.isin(*reach.kept_days)) if reach.kept_days else shown
    stays = _stays(reach)
    taken_back = earlier.where(~is_open & ~stays).withColumns(
        {name: -sf.col(name) for name in ("count", "bytes")}
    )
    late = (
        fresh.where(~is_open).unionByName(taken_back).withColumn("month", sf.lit(reach.open_month))
    )
    rows = fresh.where(is_open).unionByName(earlier.where(is_open & stays)).unionByName(late)
    sums = rows.groupBy("account", "resource", "kind", "hour", "day", "month").agg(
        *[sf.sum(name).alias(name) for name in ("count", "bytes")],
        sf.max("shown_to_ms").alias("shown_to_ms"),
    )
    return sums.where("count != 0 OR bytes != 0")


def _stays(reach: Reach) -> Column:
    """Whether a day is as earlier reports have it."""
    day = sf.col("day")
    outside = (day < reach.first_day) | (day > reach.last_day)
    known = {*reach.kept_days, *reach.unseen_days}
    return outside | day.isin(*known) if known else outside
