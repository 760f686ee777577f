"""The usage records of exports beside those of the ledger: new ones, conflicts, missing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
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
    """The usage records that the exports show, each once, as the first of them shows it.

    Columns `record` (16 bytes of the key's SHA-256), `first` (a struct of `item`, `written_ms`,
    `content`, `table_id`, `export`, `shown_ms`), `contents` (all that were shown of it), and
    `numbers` of the exports that show it.

    An image of before a removal shows its record as well: no removal takes anything back.
    """
    shown = reduce(
        DataFrame.unionByName,
        [_records(reader, export, number) for number, export in enumerate(exports)],
    )
    first = sf.struct("item", "written_ms", "content", "table_id", "export", "shown_ms")
    return shown.groupBy("record").agg(
        sf.min_by(first, sf.struct("shown_ms", "content")).alias("first"),
        sf.collect_set("content").alias("contents"),
        sf.collect_set("number").alias("numbers"),
    )


def compared(
    records: DataFrame,
    ledger: DataFrame,
    exports: Sequence[Export],
    removed_ms: Mapping[str, int],
) -> DataFrame:
    """The columns of `usage_records`, and `known_content`, `known_day`, `missing`.

    Only of records that are new, differ from what was shown before, or are `missing`: the numbers
    of whole exports that lack a record which their table has shown before, though its time to live
    is not over. `removed_ms`: table → until when a person accepted that.
    """
    known = ledger.groupBy("record").agg(
        sf.min("content").alias("known_content"),
        sf.min("written_day").alias("known_day"),
        sf.min("written_ms").alias("known_ms"),
        sf.min("table_id").alias("known_table"),
        sf.min("shown_ms").alias("known_shown_ms"),
    )
    both = records.join(known, "record", "full_outer")
    absent = [
        sf.when(_is_missing(number, export, removed_ms.get(export.table_id, 0)), sf.lit(number))
        for number, export in enumerate(exports)
        if export.full
    ]
    missing = sf.array_compact(sf.array(*absent)) if absent else sf.array().cast("array<int>")
    expected = sf.coalesce("known_content", "first.content")
    differs = sf.exists("contents", lambda content: content != expected)
    return both.withColumns(
        {"missing": missing, "differs": sf.coalesce(differs, sf.lit(False))}
    ).where(sf.col("known_content").isNull() | sf.col("differs") | (sf.size("missing") > 0))


def conflicting(reader: Reader, exports: Sequence[Export], differing: DataFrame) -> DataFrame:
    """Column `record` and those of `first`: the later contents of records that differ."""
    shown = reduce(
        DataFrame.unionByName,
        [_records(reader, export, number) for number, export in enumerate(exports)],
    )
    expected = differing.select(
        "record", sf.coalesce("known_content", "first.content").alias("expected")
    )
    rows = shown.join(expected, "record").where("content != expected")
    return rows.dropDuplicates(["record", "content"]).drop("number", "expected")


def _records(reader: Reader, export: Export, number: int) -> DataFrame:
    items = versions_of(reader, [export]).where(
        sf.col("item").isNotNull() & (sf.substring("item.pk.S", 1, 2) == "U#")
    )
    key = sf.concat(sf.col("item.pk.S"), sf.lit("\0"), sf.col("item.sk.S"))
    # A record of before has no `w`: it lives 40 days from its writing.
    written_ms = sf.coalesce(whole("item.w"), whole("item.expires_at") * 1000 - LIFE_MS)
    return items.select(
        sf.unhex(sf.substring(sf.sha2(key, 256), 1, 32)).alias("record"),
        "item",
        written_ms.alias("written_ms"),
        sf.xxhash64("item.records").alias("content"),
        sf.lit(export.table_id).alias("table_id"),
        sf.lit(export.folder.rpartition("/")[2]).alias("export"),
        sf.lit(export.at_ms).cast("bigint").alias("shown_ms"),
        sf.lit(number).alias("number"),
    )


def _is_missing(number: int, export: Export, removed_ms: int) -> Column:
    expires_ms = sf.floor(sf.col("known_ms") / 1000) * 1000 + LIFE_MS
    shown = sf.coalesce(sf.array_contains("numbers", sf.lit(number)), sf.lit(False))
    return (
        (sf.col("known_table") == export.table_id)
        & (sf.col("known_shown_ms") > removed_ms)
        & (sf.col("known_shown_ms") <= export.at_ms)
        & (expires_ms > export.at_ms)
        & ~shown
    )
