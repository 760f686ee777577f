"""The entries of usage records, a row each."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import refuse, refuse_saying, whole
from cirrusmq_reports.schemas import LAST_MINUTE, USAGE_LIVES_DAYS
from cirrusmq_reports.times import DAY_MS, iso_time


def usage_entries(items: DataFrame, to_ms: int) -> DataFrame:
    """Column `item` of Usage → one row an entry of a usage record.

    Columns `account`, `resource`, `kind`, `minute`, `count`, `bytes`, `attempts`, `written_ms`.
    Counters, which are in the same table, are left out. `to_ms` is the end of the exports: they
    can show no use after it.
    """
    records = items.where(sf.substring("item.pk.S", 1, 2) == "U#")
    lacking = sf.col("item.records.L").isNull() | whole("item.expires_at").isNull()
    sound = records.where(refuse(lacking))
    written_ms = whole("item.expires_at") * 1000 - USAGE_LIVES_DAYS * DAY_MS
    exploded = sound.select(
        written_ms.alias("written_ms"), sf.explode("item.records.L").alias("entry")
    )
    entries = exploded.select("written_ms", "entry.M.*")
    countable = entries.where(
        refuse(sf.expr("attempts IS NOT NULL AND try_cast(attempts.N AS BIGINT) IS NULL"))
    )
    rows = countable.select(
        sf.col("account.S").alias("account"),
        sf.col("resource.S").alias("resource"),
        sf.col("kind.S").alias("kind"),
        whole("minute").alias("minute"),
        whole("count").alias("count"),
        whole("bytes").alias("bytes"),
        sf.coalesce(whole("attempts"), sf.lit(0)).alias("attempts"),
        "written_ms",
    )
    later = sf.when(sf.col("minute") * 60_000 > to_ms, _after(to_ms).cast("boolean"))
    return rows.where(refuse(sf.expr(_LACKING))).where(sf.coalesce(later, sf.lit(True)))


def _after(to_ms: int) -> Column:
    minute = sf.date_format(sf.timestamp_seconds(sf.col("minute") * 60), "yyyy-MM-dd HH:mm")
    words = (
        sf.lit("usage of"), "account", "resource", "kind", sf.lit("at"), minute,
        sf.lit(f"is after {iso_time(to_ms)}, the end of the exports"),
    )  # fmt: skip
    return refuse_saying(sf.concat_ws(" ", *words))


_LACKING = (
    "account IS NULL OR resource IS NULL OR kind IS NULL OR count IS NULL OR bytes IS NULL "
    f"OR minute IS NULL OR minute NOT BETWEEN 0 AND {LAST_MINUTE}"
)
