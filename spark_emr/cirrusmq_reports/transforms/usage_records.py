"""Compares the usage records of exports with the ledger: new, conflicting and missing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from cirrusmq_reports.billing_plan import LIFE_MS
from cirrusmq_reports.columns import whole
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.records import Reader
from cirrusmq_reports.transforms.versions import versions_of

LEDGER_SCHEMA = (
    "record BINARY, content BIGINT, written_ms BIGINT, account STRING, resource STRING, "
    "resource_id STRING, kind STRING, hour TIMESTAMP, count BIGINT, bytes BIGINT, "
    "attempts BIGINT, table_id STRING, export STRING, shown_ms BIGINT, written_day STRING"
)


def usage_records(reader: Reader, exports: Sequence[Export]) -> DataFrame:
    """Returns the exports' usage records, each once, as in the first export that shows it.

    Columns `record` (16 bytes of the key's SHA-256), `item`, `written_ms`, `content`, `shown_ms`,
    `number` of the export; `least` and `limit`, the smallest and largest content shown for it; for
    each full export `in_<number>`: true if it shows the record.

    The old image of a removal shows its record as well: a removal takes nothing back.
    """
    shown = reduce(
        DataFrame.unionByName,
        [_records(reader, export, number) for number, export in enumerate(exports)],
    )
    # One shuffle and one sort: an aggregate would sort the items before the shuffle, too.
    own = (
        Window.partitionBy("record")
        .orderBy("shown_ms", "content", "number")
        .rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    )
    ordered = own.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    placed = shown.withColumns(
        {
            "place": sf.row_number().over(ordered),
            "least": sf.min("content").over(own),
            "most": sf.max("content").over(own),
            **{
                _shown_by(number): sf.bool_or(sf.col("number") == number).over(own)
                for number, export in enumerate(exports)
                if export.full
            },
        }
    )
    return placed.where("place = 1").drop("place")


def compared(
    records: DataFrame,
    ledger: DataFrame,
    exports: Sequence[Export],
    removed_ms: Mapping[str, int],
) -> DataFrame:
    """Returns columns of `usage_records`, `fresh`, `expected`, `known_day`, `missing`, `differs`.

    Only for records that are fresh, differ from an earlier version, or are missing. `missing`: the
    numbers of full exports that lack a record which their table has shown before, although its time
    to live is not over. `removed_ms`: table → time until which a person accepted this.
    """
    whole_ones = [(number, export) for number, export in enumerate(exports) if export.full]
    # Only sums of fixed width, which need no sorting; windows use only the contents.
    sums = [sf.min("content").alias("known_content")]
    if whole_ones:
        sums += [
            sf.min("written_ms").alias("known_ms"),
            sf.min(sf.xxhash64("table_id")).alias("known_table"),
            sf.min("shown_ms").alias("known_shown_ms"),
        ]
    known = ledger.groupBy("record").agg(*sums)
    both = records.join(known, "record", "full_outer" if whole_ones else "left")
    absent = [
        sf.when(_is_missing(number, export, removed_ms.get(export.table_id, 0)), sf.lit(number))
        for number, export in whole_ones
    ]
    missing = sf.array_compact(sf.array(*absent)) if absent else sf.array().cast("array<int>")
    day = sf.date_format(sf.timestamp_millis("known_ms"), "yyyy-MM-dd") if whole_ones else None
    expected = sf.coalesce("known_content", "content")
    differs = (sf.col("least") != expected) | (sf.col("most") != expected)
    return both.withColumns(
        {
            "fresh": sf.col("known_content").isNull(),
            "expected": expected,
            "known_day": sf.lit(None).cast("string") if day is None else day,
            "missing": missing,
            "differs": sf.coalesce(differs, sf.lit(False)),
        }
    ).where(sf.col("fresh") | sf.col("differs") | (sf.size("missing") > 0))


def conflicting(reader: Reader, exports: Sequence[Export], differing: DataFrame) -> DataFrame:
    """Returns the columns of a record for the later contents of records in `differing`."""
    shown = reduce(
        DataFrame.unionByName,
        [_records(reader, export, number) for number, export in enumerate(exports)],
    )
    expected = differing.select("record", "expected").distinct()
    rows = shown.join(expected, "record").where("content != expected")
    return with_export(rows, exports).dropDuplicates(["record", "content"])


def with_export(records: DataFrame, exports: Sequence[Export]) -> DataFrame:
    """Returns the records with `table_id` and `export`, the folder's name, by `number`."""
    values = {
        "table_id": [export.table_id for export in exports],
        "export": [export.folder.rpartition("/")[2] for export in exports],
    }
    return records.withColumns(
        {
            name: sf.get(sf.array(*map(sf.lit, found)), sf.col("number"))
            for name, found in values.items()
        }
    )


def _records(reader: Reader, export: Export, number: int) -> DataFrame:
    items = versions_of(reader, [export]).where(
        sf.col("item").isNotNull() & (sf.substring("item.pk.S", 1, 2) == "U#")
    )
    key = sf.concat(sf.col("item.pk.S"), sf.lit("\0"), sf.col("item.sk.S"))
    # A record of an earlier release has no `w`: it lives 40 days from its writing.
    written_ms = sf.coalesce(whole("item.w"), whole("item.expires_at") * 1000 - LIFE_MS)
    return items.select(
        sf.unhex(sf.substring(sf.sha2(key, 256), 1, 32)).alias("record"),
        "item",
        written_ms.alias("written_ms"),
        sf.xxhash64("item.records").alias("content"),
        sf.lit(export.at_ms).cast("bigint").alias("shown_ms"),
        sf.lit(number).alias("number"),
    )


def _is_missing(number: int, export: Export, removed_ms: int) -> Column:
    expires_ms = sf.floor(sf.col("known_ms") / 1000) * 1000 + LIFE_MS
    shown = sf.coalesce(_shown_by(number), sf.lit(False))
    return (
        (sf.col("known_table") == sf.xxhash64(sf.lit(export.table_id)))
        & (sf.col("known_shown_ms") > removed_ms)
        & (sf.col("known_shown_ms") <= export.at_ms)
        & (expires_ms > export.at_ms)
        & ~shown
    )


def _shown_by(number: int) -> str:
    return f"in_{number}"
