"""Rows of the ledger, and their sums by the hour."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

USAGE_SCHEMA = (
    "account STRING, resource STRING, resource_id STRING, kind STRING, hour TIMESTAMP, "
    "day STRING, month STRING, count BIGINT, bytes BIGINT"
)


def ledger_rows(entries: DataFrame) -> DataFrame:
    """Returns the columns of LEDGER_SCHEMA: a row by record, resource, kind and hour of entries."""
    hour = sf.timestamp_seconds(sf.floor(sf.col("minute") / 60) * 3600)
    day = sf.date_format(sf.timestamp_millis("written_ms"), "yyyy-MM-dd")
    of_record = ("record", "content", "written_ms", "table_id", "export", "shown_ms")
    return (
        entries.withColumns({"hour": hour, "written_day": day})
        .groupBy(*of_record, "written_day", "account", "resource", "resource_id", "kind", "hour")
        .agg(*[sf.sum(name).alias(name) for name in ("count", "bytes", "attempts")])
    )


def usage_by_hour(ledger: DataFrame) -> DataFrame:
    """Returns the columns of USAGE_SCHEMA: sums by the hour of use.

    Posts to URLs become separate usage: the kind `attempted`.
    """
    places = ("account", "resource", "resource_id", "hour")
    sums = ledger.groupBy(*places, "kind").agg(
        *[sf.sum(name).alias(name) for name in ("count", "bytes", "attempts")]
    )
    posts = sf.struct(
        sf.lit("attempted").alias("kind"),
        sf.col("attempts").alias("count"),
        sf.lit(0).cast("bigint").alias("bytes"),
    )
    use = sf.explode(sf.array(sf.struct("kind", "count", "bytes"), posts)).alias("use")
    rows = sums.select(*places, use).where("use.count != 0 OR use.bytes != 0")
    return (
        rows.groupBy(*places, sf.col("use.kind").alias("kind"))
        .agg(sf.sum("use.count").alias("count"), sf.sum("use.bytes").alias("bytes"))
        .select(
            "account",
            "resource",
            "resource_id",
            "kind",
            "hour",
            sf.date_format("hour", "yyyy-MM-dd").alias("day"),
            sf.date_format("hour", "yyyy-MM").alias("month"),
            "count",
            "bytes",
        )
    )
