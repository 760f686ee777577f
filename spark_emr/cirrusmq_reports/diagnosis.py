"""From a failed Spark job to one sentence that names the file, and the record, at fault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cirrusmq_reports.columns import BAD_RECORD, SAID
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.records import LINE_BYTES_MOST, Reader

_FILE = re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+?)\.? ")
_MALFORMED = "Malformed records are detected in record parsing"
_SAID = re.compile(rf"\[USER_RAISED_EXCEPTION\] {SAID}(.*?) SQLSTATE: ", re.DOTALL)
_OVERFLOW = "[ARITHMETIC_OVERFLOW]"
_DAMAGED = (
    "EOFException", "ZipException", "unexpected end of", "incorrect data check", "gzip", "CRC",
    "header check", "invalid ",
)  # fmt: skip


def explain(error: Exception, readers: Sequence[Reader]) -> BadInput | None:
    """Returns the fault in the exports, or None if the error has another cause."""
    text = str(error)
    if file := _FILE.search(text):
        path = _plain(file[1])
        return BadInput(f"{path}: {_reading_failure(text, path, readers)}")
    if said := _SAID.search(text):
        return BadInput(said[1])
    folders = ", ".join(export.folder for reader in readers for export in reader.exports)
    if _OVERFLOW in text:
        return find_bad_record(readers) or BadInput(f"{folders}: numbers too large to add up")
    if BAD_RECORD in text:
        return find_bad_record(readers) or BadInput(f"{folders}: a record lacks something")
    return find_bad_record(readers)


def find_bad_record(readers: Iterable[Reader]) -> BadInput | None:
    """Returns the first record with a missing value or one of another type, or None."""
    for reader in readers:
        for export in filter(_has_files, reader.exports):
            found = record_faults(reader, export).where("fault IS NOT NULL").first()
            if found:
                path = _path(export, found["file"])
                known = found["pk"] and found["sk"]
                item = f"item {found['pk']} {found['sk']}: " if known else ""
                return BadInput(f"{path}: {item}{found['fault']}")
    return None


def find_miscount(readers: Iterable[Reader]) -> BadInput | None:
    """Returns the first file with more or fewer records than its manifest says, or None."""
    for reader in readers:
        for export in filter(_has_files, reader.exports):
            rows = reader.raw(export).groupBy("file").count().toLocalIterator()
            counts = {row["file"]: int(row["count"]) for row in rows}
            for file in export.distinct_files:
                count = counts.get(file.name, 0)
                if count != file.items:
                    return BadInput(
                        f"{file.path}: {count} items, but the manifest says {file.items}; "
                        f"lines above {LINE_BYTES_MOST >> 20} MB are not read"
                    )
    return None


def record_faults(reader: Reader, export: Export) -> DataFrame:
    """Returns columns `file`, `pk`, `sk`, `fault`: a fault of each record, or null."""
    fault = sf.coalesce(
        sf.when(sf.lit(export.full) & sf.col("item").isNull(), sf.lit("a record has no Item")),
        sf.when(sf.col("pk").isNull() | sf.col("sk").isNull(), sf.lit("pk or sk is not a string")),
        sf.when(
            sf.col("written_micros").isNull(),
            sf.lit("WriteTimestampMicros is not a whole number"),
        ),
        *[
            sf.when(sf.col("item").isNotNull() & sf.expr(condition), sf.lit(sentence))
            for sentence, condition in reader.schema.all_faults.items()
        ],
    )
    return reader.raw(export).withColumn("fault", fault).select("file", "pk", "sk", "fault")


def _has_files(export: Export) -> bool:
    return bool(export.distinct_files)


def _path(export: Export, name: str) -> str:
    return next((file.path for file in export.files if file.name == name), name)


def _reading_failure(text: str, path: str, readers: Iterable[Reader]) -> str:
    if _MALFORMED in text:
        # Spark shows the line only as it parsed it: the file has the original.
        shown = _bad_line(path, readers)
        return f"a line is not a record of an export{f': {shown}' if shown else ''}"
    if any(sign in text for sign in _DAMAGED):
        return "not a whole gzip file: it is cut short or damaged"
    return "it cannot be read"


def _bad_line(path: str, readers: Iterable[Reader]) -> str | None:
    for reader in readers:
        for export in reader.exports:
            for file in export.distinct_files:
                # By name: Spark's path is absolute, also if the folder's was relative.
                same = file.name == path.rpartition("/")[2]
                if same and (line := reader.first_bad_line(export, file)):
                    return line
    return None


def _plain(uri: str) -> str:
    return re.sub(r"^file:/+", "/", unquote(uri))
