"""The versions of items, from full and incremental exports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.manifests import Export
from cirrusmq_reports.records import MICROS, Reader


def versions_of(reader: Reader, exports: Sequence[Export]) -> DataFrame:
    """Returns columns `pk`, `sk`, `item`, `removed`, `written_micros` of all exported versions."""
    shown = [_full(reader, each) if each.full else reader.incremental(each) for each in exports]
    return reduce(DataFrame.unionByName, shown)


def _full(reader: Reader, export: Export) -> DataFrame:
    """Returns a full export's items; as they have no time, it is just before the export's."""
    return reader.full(export).select(
        sf.col("item.pk.S").alias("pk"),
        sf.col("item.sk.S").alias("sk"),
        "item",
        sf.lit(False).alias("removed"),
        sf.lit(export.at_ms * MICROS - 1).alias("written_micros"),
    )
