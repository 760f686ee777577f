"""The messages of parcels, one row for each."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import bad_record, refuse, whole, whole_entry
from cirrusmq_reports.dead_letters import reason_of_note
from cirrusmq_reports.keys import ARCHIVED, PARCEL, counting_key, resource_of_key


def messages(items: DataFrame, resources: DataFrame | None = None) -> DataFrame:
    """Returns a row for each message, with `key` of its partition and times in ms.

    `v`, `w`, `r`, `z`: as in the parcel.

    `reason`: index of a dead letter's reason in REASON_COLUMNS; null for other messages.

    `rewind_until_ms`: for a deleted message, the end of its rewindable time; null if it has none.
    With `resources` (columns of `resource_names`) their settings decide this, and messages deleted
    with their queue, or purged, are left out; else only archived messages can be rewound.

    A retry schedule is a row without `v`, with `retrying` and `probe_sent_ms`, so that one pass
    reads both.
    """
    parcels = items.select("item.*").select(
        counting_key().alias("key"),
        sf.substring("pk.S", 1, 2).isin(PARCEL, ARCHIVED).alias("is_parcel"),
        (sf.substring("pk.S", 1, 2) == ARCHIVED).alias("archived"),
        reason_of_note().alias("reason"),
        whole("t").alias("sent_ms"),
        whole("x").alias("expires_ms"),
        (whole("expires_at") * 1000).alias("kept_until_ms"),
        (sf.col("state.S") == "retrying").alias("retrying"),
        whole("probe_sent").alias("probe_sent_ms"),
        sf.col("v.L").alias("visible"),
        sf.col("w.L").alias("waits"),
        sf.col("r.L").alias("receives"),
        sf.col("z.L").alias("sizes"),
        *([] if resources is None else [sf.col("f.L").alias("firsts")]),
    )
    counted = parcels.where("key IS NOT NULL")
    sound = counted.where(refuse(sf.expr(f"{_UNEQUAL_LISTS} OR {_LACKING_TIMES}")))
    if resources is None:
        until = sf.when(sf.col("archived"), sf.col("kept_until_ms"))
        sound = sound.withColumn("rewind_until_ms", until)
        rewind_until = sf.col("rewind_until_ms")
    else:
        sound = _with_settings(sound, resources)
        # A deleted message has its deletion's time in the field of its first receive.
        since = _entry("firsts") > sf.col("rewind_floor_ms")
        rewind_until = sf.when(since, sf.col("rewind_until_ms"))
    entries = sound.select("*", sf.posexplode_outer("visible").alias("place", "entry"))
    numbers = entries.select(
        "key",
        "place",
        "is_parcel",
        "archived",
        "reason",
        "sent_ms",
        "expires_ms",
        "kept_until_ms",
        rewind_until.alias("rewind_until_ms"),
        "retrying",
        "probe_sent_ms",
        whole_entry(sf.col("entry")).alias("v"),
        sf.when(sf.col("waits").isNull(), sf.lit(0)).otherwise(_entry("waits")).alias("w"),
        _entry("receives").alias("r"),
        _entry("sizes").alias("z"),
    )
    # The error is in the column `v`, which every figure needs: with a filter Spark would compute
    # each number twice. A parcel without messages has one row, without an index, and no fault.
    v = sf.when(sf.expr(_SOUND_NUMBERS), sf.col("v")).otherwise(bad_record().cast("bigint"))
    return numbers.withColumn("v", sf.when(sf.col("place").isNotNull(), v))


_UNEQUAL_LISTS = (
    "is_parcel AND (visible IS NULL OR size(receives) != size(visible) "
    "OR size(sizes) != size(visible) OR (waits IS NOT NULL AND size(waits) != size(visible)))"
)
_LACKING_TIMES = (
    "(is_parcel AND (sent_ms IS NULL OR expires_ms IS NULL OR kept_until_ms IS NULL)) "
    "OR (retrying AND probe_sent_ms IS NULL)"
)
_SOUND_NUMBERS = "v IS NOT NULL AND w IS NOT NULL AND r >= 0 AND z >= 0"


def _with_settings(parcels: DataFrame, resources: DataFrame) -> DataFrame:
    """Returns the parcels not purged or deleted, with `rewind_until_ms`, `rewind_floor_ms`."""
    settings = resources.select("id", "deleted", "rewind_ms", "rewind_floor_ms", "purged_ms")
    known = parcels.withColumn("id", resource_of_key()).join(sf.broadcast(settings), "id", "left")
    gone = sf.col("deleted") | (sf.col("sent_ms") <= sf.col("purged_ms"))
    until = sf.least(sf.col("sent_ms") + sf.col("rewind_ms"), "expires_ms")
    kept = known.where(~sf.coalesce(gone, sf.lit(False)))
    return kept.withColumn("rewind_until_ms", sf.when(sf.col("rewind_ms") > 0, until))


def _entry(name: str) -> Column:
    return whole_entry(sf.get(sf.col(name), sf.col("place")))
