"""The figures of each queue, receiver and subscription, by its id."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import refuse
from cirrusmq_reports.figures import (
    COUNTS,
    FIGURES,
    PERCENTILES,
    REASON_COLUMNS,
    RECEIVE_COLUMNS,
    SIZE_COLUMNS,
)
from cirrusmq_reports.keys import WELL_FORMED, partition_of_key, resource_of_key


def figures_by_resource(counts: DataFrame, at_ms: int) -> DataFrame:
    """Returns columns `id`, `ages` and FIGURES, from the columns of `counts_by_age`.

    Ages are collected as lists of (`age`, `kept`), at most some hundred for a partition, so that
    wide rows are not sorted by age for three numbers.
    """
    ages = sf.collect_list(sf.when(sf.col("kept") > 0, sf.struct("age", "kept")))
    sums = counts.groupBy("key").agg(*_sums(), ages.alias("ages"))
    by_partition = sums.where(refuse(~sf.expr(WELL_FORMED)))
    parts = by_partition.select(
        "*",
        resource_of_key().alias("id"),
        sf.struct("kept", (-partition_of_key()).alias("place")).alias("heat"),
    )
    by_resource = parts.groupBy("id").agg(
        *_sums(),
        sf.array_sort(sf.flatten(sf.collect_list("ages"))).alias("ages"),
        sf.max(sf.when(sf.col("kept") > 0, sf.col("heat"))).alias("hottest"),
    )
    retrying = sf.coalesce("retrying", sf.lit(False))
    probe_age = sf.floor((sf.lit(at_ms) - sf.col("probe_sent_ms")) / 1000)
    derived = by_resource.withColumns(
        {
            "inactive": sf.col("kept") - sf.col("active") - sf.col("delayed"),
            **{f"p{percent}_age_seconds": percentile(percent) for percent in PERCENTILES},
            "hottest_partition": -sf.col("hottest.place"),
            "hottest_partition_share": sf.round(sf.col("hottest.kept") / sf.col("kept"), 4),
            "retrying": retrying,
            "probe_age_seconds": sf.when(retrying, probe_age),
        }
    )
    return derived.select("id", "ages", *FIGURES)


def percentile(percent: int) -> Column:
    """Returns the age that `percent` of the `kept` messages do not exceed, by bucket of `ages`."""
    return sf.expr(
        f"""aggregate(ages, named_struct('seen', 0L, 'age', CAST(NULL AS BIGINT)),
            (sum, entry) -> IF(sum.age IS NOT NULL, sum, named_struct(
                'seen', sum.seen + entry.kept,
                'age', IF((sum.seen + entry.kept) * 100 >= kept * {percent}, entry.age, NULL)))
        ).age"""
    )


def _sums() -> list[Column]:
    added = (*COUNTS, "kept", *REASON_COLUMNS, *RECEIVE_COLUMNS, *SIZE_COLUMNS)
    newest = ("oldest_age_seconds", "retrying", "probe_sent_ms")
    return [
        *[sf.sum(name).alias(name) for name in added if name != "inactive"],
        *[sf.max(name).alias(name) for name in newest],
    ]
