"""From full and incremental exports to the items that a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import whole
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.records import MICROS, Reader


def current_items(reader: Reader, base: Export, later: Sequence[Export]) -> DataFrame:
    """Column `item`: a table's items after a full export and the windows that follow it.

    A window may begin before the full export::

        window        |--- change --------- change ---|
        full export              ^ shows the first change, or a removal after it

    so that only changes written since the full export are news.
    """
    if not later:
        return reader.full(base)
    changes = _union([reader.incremental(export) for export in later])
    news = changes.where(sf.col("written_micros") >= base.at_ms * MICROS)
    newest = _full_versions(reader, base).unionByName(news).groupBy("pk", "sk")
    merged = newest.agg(sf.max_by(sf.struct("item", "removed"), "written_micros").alias("last"))
    return merged.where(~sf.col("last.removed")).select("last.item")


def all_usage(reader: Reader, exports: Sequence[Export]) -> DataFrame:
    """Column `item`: every usage record that any of the exports shows, once, as last written.

    A removal counts only before the record's time to live: afterwards it is TTL's work, which
    makes nothing unused.
    """
    versions = _union(
        [
            _full_versions(reader, export) if export.full else reader.incremental(export)
            for export in exports
        ]
    )
    written, shown = sf.col("written_micros"), sf.col("item").isNotNull()
    merged = versions.groupBy("pk", "sk").agg(
        sf.max_by("item", sf.when(shown, written)).alias("item"),
        sf.max(sf.when(~sf.col("removed"), written)).alias("kept_micros"),
        sf.max(sf.when(sf.col("removed"), written)).alias("removed_micros"),
    )
    return merged.where(sf.col("item").isNotNull() & ~_withdrawn()).select("item")


def _withdrawn() -> Column:
    ttl_micros = whole("item.expires_at") * 1_000_000
    before_ttl = sf.col("removed_micros") < sf.coalesce(ttl_micros, sf.lit(0))
    last = sf.col("removed_micros") > sf.coalesce("kept_micros", sf.lit(0))
    return sf.coalesce(before_ttl & last, sf.lit(False))


def _full_versions(reader: Reader, export: Export) -> DataFrame:
    """A full export does not say when an item was written: before the export's time."""
    return reader.full(export).select(
        sf.col("item.pk.S").alias("pk"),
        sf.col("item.sk.S").alias("sk"),
        "item",
        sf.lit(False).alias("removed"),
        sf.lit(export.at_ms * MICROS - 1).alias("written_micros"),
    )


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
