"""The items of a table, from a full export and the windows after it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.manifests import Export
from cirrusmq_reports.records import MICROS, Reader
from cirrusmq_reports.transforms.versions import versions_of


def current_items(reader: Reader, base: Export, later: Sequence[Export]) -> DataFrame:
    """Returns column `item`: a table's items after a full export and the windows that follow it.

    A window may begin before the full export::

        window        |--- change --------- change ---|
        full export              ^ shows the first change, or a removal after it

    so only changes written after the full export are applied.
    """
    if not later:
        return reader.full(base)
    changes = versions_of(reader, later)
    news = changes.where(sf.col("written_micros") >= base.at_ms * MICROS)
    newest = versions_of(reader, [base]).unionByName(news).groupBy("pk", "sk")
    merged = newest.agg(sf.max_by(sf.struct("item", "removed"), "written_micros").alias("last"))
    return merged.where(~sf.col("last.removed")).select("last.item")
