"""The messages of parcels, a row each."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import refuse, whole


def messages(items: DataFrame) -> DataFrame:
    """One row a message: `key` of its partition, `v`, `w`, `r`, `z`, and its parcel's times in ms.

    A retry schedule is a row without `v`, with `retrying` and `probe_sent_ms`: one reading serves
    both.
    """
    parcels = items.select("item.*").select(
        _key().alias("key"),
        sf.substring("pk.S", 1, 1).isin("Q", "R").alias("is_parcel"),
        (sf.substring("pk.S", 1, 1) == "R").alias("archived"),
        sf.col("d").isNotNull().alias("is_dead"),
        whole("t").alias("sent_ms"),
        whole("x").alias("expires_ms"),
        (whole("expires_at") * 1000).alias("kept_until_ms"),
        (sf.col("state.S") == "retrying").alias("retrying"),
        whole("probe_sent").alias("probe_sent_ms"),
        sf.col("v.L").alias("visible"),
        sf.col("w.L").alias("waits"),
        sf.col("r.L").alias("receives"),
        sf.col("z.L").alias("sizes"),
    )
    sound = parcels.where("key IS NOT NULL").where(refuse(sf.expr(_UNEQUAL_LISTS)))
    entries = sound.select("*", sf.posexplode_outer("visible").alias("place", "entry"))
    numbers = entries.select(
        "key",
        "place",
        "is_parcel",
        "archived",
        "is_dead",
        "sent_ms",
        "expires_ms",
        "kept_until_ms",
        "retrying",
        "probe_sent_ms",
        whole("entry").alias("v"),
        sf.when(sf.col("waits").isNull(), sf.lit(0)).otherwise(_entry("waits")).alias("w"),
        _entry("receives").alias("r"),
        _entry("sizes").alias("z"),
    )
    return numbers.where(refuse(sf.expr(_LACKING)))


_UNEQUAL_LISTS = (
    "is_parcel AND (visible IS NULL OR size(receives) != size(visible) "
    "OR size(sizes) != size(visible) OR (waits IS NOT NULL AND size(waits) != size(visible)))"
)
_LACKING = (
    # A parcel of no messages has one row, without a place: nothing to count, nothing lacking.
    "is_parcel AND ((v IS NULL OR w IS NULL OR r IS NULL OR z IS NULL) AND place IS NOT NULL "
    "OR sent_ms IS NULL OR expires_ms IS NULL OR kept_until_ms IS NULL) "
    "OR (retrying AND probe_sent_ms IS NULL)"
)


def _key() -> Column:
    """The unit of counting: a partition of a resource, or a subscription's delivery state."""
    kind = sf.substring("pk.S", 1, 2)
    return sf.when(kind.isin("Q#", "R#"), sf.col("pk.S")).when(
        kind == "S#", sf.concat(sf.lit("S#"), sf.col("sk.S"))
    )


def _entry(name: str) -> Column:
    return sf.get(sf.col(name), sf.col("place"))["N"].try_cast("bigint")
