"""Reads the data files of exports: all records are counted and type-checked, or an error raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any
from zlib import crc32

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from cirrusmq_reports.columns import refuse, refuse_saying, whole
from cirrusmq_reports.files import escape_pattern
from cirrusmq_reports.keys import KINDS, kind_of_item
from cirrusmq_reports.manifests import DataFile, Export
from cirrusmq_reports.schemas import TableSchema
from cirrusmq_reports.session import without_rows

MICROS = 1_000
"""Microseconds in a millisecond."""

_WRITTEN = "Metadata.WriteTimestampMicros"
_LINE = "line_as_it_stands"
_SHOWN_CHARACTERS = 80
LINE_BYTES_MOST = 16 << 20
"""Maximum size of a record's line, which must fit into memory; an item has at most 400 KB."""
# Hadoop skips a longer line without reading it into memory: the file then lacks a record.
_LINES = {"mapreduce.input.linerecordreader.line.maxlength": str(LINE_BYTES_MOST)}
_STRICT_JSON: Mapping[str, Any] = {"allowSingleQuotes": False, "allowNonNumericNumbers": False}


class Reader:
    """Reads exports of one table, and notes how many records each file must have."""

    def __init__(self, session: SparkSession, schema: TableSchema) -> None:
        self.session = session
        self.schema = schema
        self.exports: list[Export] = []
        self._observed: list[tuple[Observation, Export]] = []

    def full(self, export: Export) -> DataFrame:
        """Returns column `item`: all items of a full export."""
        records = self._records(export, self.schema.full_record)
        items = records.withColumnRenamed("Item", "item")
        missing = sf.col("item").isNull()
        counted = self._counted(items, export, missing if self.schema.filtered_first else None)
        return counted.select("item").where(refuse(missing)).where(refuse(self._wrong()))

    def incremental(self, export: Export) -> DataFrame:
        """Returns columns `pk`, `sk`, `item`, `removed`, `written_micros`: the changes of a window.

        `item` is the last image; for a removed item it is the old image, null if not exported.
        """
        records = self._records(export, self.schema.incremental_record)
        removed = sf.col("NewImage").isNull()
        changes = records.select(
            sf.col("Keys.pk.S").alias("pk"),
            sf.col("Keys.sk.S").alias("sk"),
            sf.when(removed, sf.col("OldImage")).otherwise(sf.col("NewImage")).alias("item"),
            removed.alias("removed"),
            whole(_WRITTEN).alias("written_micros"),
        )
        keyless = sf.col("pk").isNull() | sf.col("sk").isNull() | sf.col("written_micros").isNull()
        counted = self._counted(changes, export, keyless)
        sound = counted.where(refuse(keyless)).where(refuse(self._wrong()))
        return sound.where(_agrees(export))

    def miscounted(self) -> bool:
        """Returns True if a file may have more or fewer records than its manifest says.

        Call it after the action that read them. A sum of the names' checksums also detects one
        record too many in a file and one too few in another.
        """
        return any(
            seen is None or (seen["records"], seen["names"]) != (_records(export), _names(export))
            for seen, export in self._seen()
        )

    def faulty(self) -> bool:
        """Returns True if there may be a bad record that no later filter could refuse.

        Call it after the action that read them.
        """
        return any(seen is None or seen.get("faulty", 0) for seen, _ in self._seen())

    def unknown_kinds(self) -> dict[str, int]:
        """Returns kind → number of records, for kinds that no list has.

        Call it after the action that read them. Reads the files again if there are such kinds.
        """
        counts: Counter[str] = Counter()
        for seen, export in self._seen():
            if seen is not None and seen["unknown"]:
                unknown = (
                    self.raw(export).where(self._is_unknown()).select(kind_of_item().alias("kind"))
                )
                for row in unknown.groupBy("kind").count().collect():
                    counts[row["kind"]] += row["count"]
        return dict(sorted(counts.items()))

    def raw(self, export: Export) -> DataFrame:
        """Returns unchecked columns `file`, `pk`, `sk`, `item`, `written_micros`, for diagnosis.

        For a full export, `written_micros` is just before the export's time.
        """
        if export.full:
            records = self._read(export.distinct_files, self.schema.full_record)
            pk, sk, item = "Item.pk.S", "Item.sk.S", sf.col("Item")
            written = sf.lit(export.at_ms * MICROS - 1)
        else:
            records = self._read(export.distinct_files, self.schema.incremental_record)
            pk, sk = "Keys.pk.S", "Keys.sk.S"
            item, written = sf.coalesce("NewImage", "OldImage"), whole(_WRITTEN)
        return records.select(
            _plain_name().alias("file"),
            sf.col(pk).alias("pk"),
            sf.col(sk).alias("sk"),
            item.alias("item"),
            written.alias("written_micros"),
        )

    def first_bad_line(self, export: Export, file: DataFile) -> str | None:
        """Returns a record that cannot be parsed, `record 8: {"Item":{"pk"`, or None."""
        kept = StructType([*self._record(export).fields, StructField(_LINE, StringType())])
        records = (
            self.session.read.schema(kept)
            .options(**_LINES)
            .json(
                escape_pattern(file.path),
                mode="PERMISSIVE",
                columnNameOfCorruptRecord=_LINE,
                **_STRICT_JSON,
            )
        )
        # Numbered before the filter; a compressed file is one partition, in order. All columns
        # stay: Spark does not parse an unused column, and so would find no fault in it.
        numbered = records.withColumn("number", sf.monotonically_increasing_id() + 1)
        found = numbered.where(sf.col(_LINE).isNotNull()).first()
        return f"record {found['number']}: {found[_LINE][:_SHOWN_CHARACTERS]}" if found else None

    def _records(self, export: Export, record: StructType) -> DataFrame:
        self.exports.append(export)
        files = export.distinct_files
        return self._read(files, record) if files else without_rows(self.session, record)

    def _counted(self, records: DataFrame, export: Export, lacking: Column | None) -> DataFrame:
        """Returns the same records, with an observation of their number and files.

        It also counts faulty records, which a later filter could drop: Spark merges filters and
        checks for nulls first, before `refuse`; but no filter moves before an observation.
        """
        if not export.distinct_files:
            return records
        seen = Observation()
        self._observed.append((seen, export))
        counts = [
            sf.count(sf.lit(1)).alias("records"),
            sf.coalesce(sf.sum(sf.crc32("_metadata.file_name")), sf.lit(0)).alias("names"),
            sf.count_if(self._is_unknown()).alias("unknown"),
        ]
        if lacking is not None:
            bad = lacking | self._wrong(all_faults=True) if self.schema.filtered_first else lacking
            counts.append(sf.count_if(bad).alias("faulty"))
        return records.observe(seen, *counts)

    def _seen(self) -> Iterator[tuple[dict[str, Any] | None, Export]]:
        for observation, export in self._observed:
            try:
                yield observation.get, export
            except Py4JJavaError:
                # If no record is used, Spark drops the observation with the rest of the plan.
                yield None, export

    def _record(self, export: Export) -> StructType:
        return self.schema.full_record if export.full else self.schema.incremental_record

    def _read(self, files: Iterable[DataFile], record: StructType) -> DataFrame:
        # No inference and no silent nulls; native code from the file to the columns.
        paths = [escape_pattern(file.path) for file in files]
        reader = self.session.read.schema(record).options(**_LINES)
        return reader.json(paths, mode="FAILFAST", **_STRICT_JSON)

    def _is_unknown(self) -> Column:
        return ~kind_of_item().isin(*KINDS[self.schema.name])

    def _wrong(self, *, all_faults: bool = False) -> Column:
        conditions = self.schema.all_faults if all_faults else self.schema.refused
        wrong = reduce(Column.__or__, map(sf.expr, conditions.values()))
        return sf.col("item").isNotNull() & wrong


def _agrees(export: Export) -> Column:
    """Returns a condition that keeps every change, and fails the job for a contradictory one."""
    other_keys = ~sf.col("item.pk.S").eqNullSafe(sf.col("pk")) | ~sf.col("item.sk.S").eqNullSafe(
        sf.col("sk")
    )
    said = sf.concat(
        sf.lit(f"{export.folder}: item "),
        "pk",
        sf.lit(" "),
        "sk",
        sf.lit(": its image has other keys"),
    )
    return sf.when(
        sf.col("item").isNotNull() & other_keys, refuse_saying(said).cast("boolean")
    ).otherwise(sf.lit(True))


def _plain_name() -> Column:
    # Spark shows names as parts of URIs, in which a plus stands for itself.
    return sf.url_decode(sf.replace("_metadata.file_name", sf.lit("+"), sf.lit("%2B")))


def _records(export: Export) -> int:
    return sum(file.items for file in export.distinct_files)


def _names(export: Export) -> int:
    return sum(file.items * crc32(file.name.encode()) for file in export.distinct_files)
