"""Every usage record of the exports, once."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import whole
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.records import Reader
from cirrusmq_reports.transforms.versions import versions_of


def usage_records(reader: Reader, exports: Sequence[Export]) -> DataFrame:
    """Column `item`: every usage record that any of the exports shows, once, as last written.

    A removal counts only before the record's time to live: afterwards it is TTL's work, which
    makes nothing unused.
    """
    versions = versions_of(reader, exports)
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
