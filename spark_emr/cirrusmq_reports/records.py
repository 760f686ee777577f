"""Reading the data files of exports: every record, counted, of the right types, or an error."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from zlib import crc32

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from cirrusmq_reports.columns import refuse, refuse_saying, whole
from cirrusmq_reports.files import escape_pattern
from cirrusmq_reports.manifests import DataFile, Export
from cirrusmq_reports.schemas import TableSchema

MICROS = 1_000
"""In a millisecond."""


class Reader:
    """Reads exports of one table, and remembers how many records each file must have."""

    def __init__(self, session: SparkSession, schema: TableSchema) -> None:
        self.session = session
        self.schema = schema
        self.exports: list[Export] = []
        self._counted: list[tuple[Observation, Export]] = []

    def full(self, export: Export) -> DataFrame:
        """Column `item`: all items of a full export."""
        records = self._counted_records(export, self.schema.full_record)
        items = records.select(sf.col("Item").alias("item"))
        return items.where(refuse(sf.col("item").isNull())).where(self._right_types())

    def incremental(self, export: Export) -> DataFrame:
        """Columns `pk`, `sk`, `item`, `removed`, `written_micros`: the changes of a window.

        `item` is the last image; of a removed item its old one, null where it is not exported.
        """
        records = self._counted_records(export, self.schema.incremental_record)
        removed = sf.col("NewImage").isNull()
        changes = records.select(
            sf.col("Keys.pk.S").alias("pk"),
            sf.col("Keys.sk.S").alias("sk"),
            sf.when(removed, sf.col("OldImage")).otherwise(sf.col("NewImage")).alias("item"),
            removed.alias("removed"),
            whole("Metadata.WriteTimestampMicros").alias("written_micros"),
        )
        keyless = sf.col("pk").isNull() | sf.col("sk").isNull() | sf.col("written_micros").isNull()
        sound = changes.where(refuse(keyless)).where(self._right_types())
        return sound.where(_agrees(export))

    def miscounted(self) -> bool:
        """Whether some file may have more or fewer records than its manifest says.

        To be asked after the action that read them. The sum of the names' checksums gives away
        also a record too many here and one too few there.
        """
        return any(not _as_listed(seen, export) for seen, export in self._counted)

    def raw(self, export: Export) -> DataFrame:
        """Columns `file`, `pk`, `sk`, `item`, unchecked: for finding out what is wrong."""
        if export.full:
            records = self._read(export.distinct_files, self.schema.full_record)
            pk, sk, item = "Item.pk.S", "Item.sk.S", sf.col("Item")
        else:
            records = self._read(export.distinct_files, self.schema.incremental_record)
            pk, sk = "Keys.pk.S", "Keys.sk.S"
            item = sf.coalesce("NewImage", "OldImage")
        return records.select(
            _plain_name().alias("file"),
            sf.col(pk).alias("pk"),
            sf.col(sk).alias("sk"),
            item.alias("item"),
        )

    def _counted_records(self, export: Export, record: StructType) -> DataFrame:
        self.exports.append(export)
        files = export.distinct_files
        if not files:
            return self.session.createDataFrame([], record)
        seen = Observation()
        self._counted.append((seen, export))
        return self._read(files, record).observe(
            seen,
            sf.count(sf.lit(1)).alias("records"),
            sf.coalesce(sf.sum(sf.crc32("_metadata.file_name")), sf.lit(0)).alias("names"),
        )

    def _read(self, files: Iterable[DataFile], record: StructType) -> DataFrame:
        # No inference, no silent nulls; native code from the file to the columns.
        paths = [escape_pattern(file.path) for file in files]
        return self.session.read.schema(record).json(paths, mode="FAILFAST")

    def _right_types(self) -> Column:
        wrong = reduce(Column.__or__, map(sf.expr, self.schema.wrong_types.values()))
        return refuse(sf.col("item").isNotNull() & wrong)


def _agrees(export: Export) -> Column:
    """A condition that keeps every change, and fails the job where one contradicts itself."""
    other_keys = ~sf.col("item.pk.S").eqNullSafe(sf.col("pk")) | ~sf.col("item.sk.S").eqNullSafe(
        sf.col("sk")
    )
    item = sf.concat(sf.lit(f"{export.folder}: item "), "pk", sf.lit(" "), "sk")
    contradiction = sf.when(
        sf.col("item").isNotNull() & other_keys,
        sf.concat(item, sf.lit(": its image has other keys")),
    ).when(
        sf.col("item").isNull() & sf.lit(export.old_images),
        sf.concat(item, sf.lit(": it has neither a new image nor an old one")),
    )
    return sf.when(
        contradiction.isNotNull(), refuse_saying(contradiction).cast("boolean")
    ).otherwise(sf.lit(True))


def _plain_name() -> Column:
    # Spark shows names as parts of URIs; in those a plus is nothing but a plus.
    return sf.url_decode(sf.replace("_metadata.file_name", sf.lit("+"), sf.lit("%2B")))


def _as_listed(seen: Observation, export: Export) -> bool:
    try:
        return seen.get == {"records": _records(export), "names": _names(export)}
    except Py4JJavaError:
        # Where there is nothing to read, Spark drops the counting with the rest of the plan.
        return False


def _records(export: Export) -> int:
    return sum(file.items for file in export.distinct_files)


def _names(export: Export) -> int:
    return sum(file.items * crc32(file.name.encode()) for file in export.distinct_files)
