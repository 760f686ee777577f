"""From a failed Spark job to one sentence that names the file, and the record, at fault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import functions as sf

from cirrusmq_reports.columns import SAID
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.records import Reader

_FILE = re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+?)\.? ")
_RECORD = re.compile(r"Malformed records are detected in record parsing: (.*?)\.?\n", re.DOTALL)
_SAID = re.compile(rf"\[USER_RAISED_EXCEPTION\] {SAID}(.*?) SQLSTATE: ", re.DOTALL)
_OVERFLOW = "[ARITHMETIC_OVERFLOW]"
_DAMAGED = (
    "EOFException", "ZipException", "unexpected end of", "incorrect data check", "gzip", "CRC",
    "header check", "invalid ",
)  # fmt: skip
_SHOWN_CHARACTERS = 80


def explain(error: Exception, readers: Sequence[Reader]) -> BadInput | None:
    """What is wrong with the exports, None if the error has another cause."""
    text = str(error)
    if file := _FILE.search(text):
        return BadInput(f"{_plain(file[1])}: {_reading_failure(text)}")
    if said := _SAID.search(text):
        return BadInput(said[1])
    if _OVERFLOW in text:
        folders = ", ".join(export.folder for reader in readers for export in reader.exports)
        return find_bad_record(readers) or BadInput(f"{folders}: numbers too large to add up")
    return find_bad_record(readers)


def find_bad_record(readers: Iterable[Reader]) -> BadInput | None:
    """The first record that lacks something, or has it in another type."""
    for reader in readers:
        faults = {**reader.schema.wrong_types, **reader.schema.faults}
        for export in filter(_has_files, reader.exports):
            found = _first_fault(reader, export, faults)
            if found:
                path = _path(export, found["file"])
                known = found["pk"] and found["sk"]
                item = f"item {found['pk']} {found['sk']}: " if known else ""
                return BadInput(f"{path}: {item}{found['fault']}")
    return None


def find_miscount(readers: Iterable[Reader]) -> BadInput | None:
    """The first file that has more or fewer records than its manifest says."""
    for reader in readers:
        for export in filter(_has_files, reader.exports):
            rows = reader.raw(export).groupBy("file").count().toLocalIterator()
            counts = {row["file"]: int(row["count"]) for row in rows}
            for file in export.distinct_files:
                count = counts.get(file.name, 0)
                if count != file.items:
                    return BadInput(
                        f"{file.path}: {count} items, but the manifest says {file.items}"
                    )
    return None


def _first_fault(reader: Reader, export: Export, faults: Mapping[str, str]) -> Any:
    fault = sf.coalesce(
        sf.when(sf.lit(export.full) & sf.col("item").isNull(), sf.lit("a record has no Item")),
        sf.when(sf.col("pk").isNull() | sf.col("sk").isNull(), sf.lit("pk or sk is not a string")),
        *[
            sf.when(sf.col("item").isNotNull() & sf.expr(condition), sf.lit(sentence))
            for sentence, condition in faults.items()
        ],
    )
    found = reader.raw(export).withColumn("fault", fault)
    return found.where("fault IS NOT NULL").select("file", "pk", "sk", "fault").first()


def _has_files(export: Export) -> bool:
    return bool(export.distinct_files)


def _path(export: Export, name: str) -> str:
    return next((file.path for file in export.files if file.name == name), name)


def _reading_failure(text: str) -> str:
    if record := _RECORD.search(text):
        shown = " ".join(record[1].split())
        return f"a line is not a record of an export: {shown[:_SHOWN_CHARACTERS]}"
    if any(sign in text for sign in _DAMAGED):
        return "not a whole gzip file: it is cut short or damaged"
    return "it cannot be read"


def _plain(uri: str) -> str:
    return re.sub(r"^file:/+", "/", uri)
