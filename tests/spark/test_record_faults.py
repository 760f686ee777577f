"""Each fault of a record has its sentence, whichever record of an export has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.job_runs import AT_MS

from cirrusmq_reports.diagnosis import record_faults
from cirrusmq_reports.files import HadoopFiles
from cirrusmq_reports.manifests import read_exports
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import DIRECTORY, MESSAGES_WITH_DELETIONS, USAGE, TableSchema
from export_writer import ExportWriter
from synthetic_messages import Messages
from synthetic_usage import Usage

MICROS = {"WriteTimestampMicros": {"N": str(AT_MS * 1_000)}}
PARCEL: dict[str, Any] = next(
    item
    for item in map(json.loads, Messages(seed=1, items=60, at_ms=AT_MS).items_of(0, 60))
    if item["pk"]["S"].startswith("Q#")
)
RECORDS: dict[str, Any] = json.loads(next(iter(Usage(seed=1, records=9, at_ms=AT_MS).items())))


def number(text: str) -> dict[str, str]:
    return {"N": text}


def parcel(**attributes: Any) -> dict[str, Any]:
    """A parcel with other attributes; one that is None is left out."""
    return {name: held for name, held in (PARCEL | attributes).items() if held is not None}


def all_of(text: str) -> dict[str, Any]:
    """A list with this number for each message of the parcel."""
    return {"L": [number(text) for _ in PARCEL["v"]["L"]]}


def resource(document: Any, sk: Mapping[str, str] = {"S": "q"}) -> dict[str, Any]:
    return {"pk": {"S": "I#1"}, "sk": sk, "document": document}


def described(**fields: Any) -> dict[str, Any]:
    return resource({"S": json.dumps({"account": "acme", "kind": "queue", "name": "n"} | fields)})


BIG = "1" + "0" * 16
NO_KEYS = "pk or sk is not a string"
NO_DOCUMENT = "document is not JSON with account, kind and name"
LACKING: list[tuple[Any, str | None]] = [
    (None, "a record has no Item"),
    ({}, NO_KEYS),
    ({"pk": {"N": "1"}, "sk": {"S": "x"}}, NO_KEYS),
]


@pytest.mark.parametrize(
    ("schema", "records"),
    [
        pytest.param(
            MESSAGES_WITH_DELETIONS,
            [
                *LACKING,
                (parcel(), None),
                (parcel(pk={"Q": "x"}), NO_KEYS),
                (parcel(v={"Q": []}), "v is not of type L"),
                (parcel(t={"Q": "1"}), "t is not of type N"),
                (parcel(d={"S": "x"}), "d is not of type B"),
                (parcel(v={"L": [number("x1")]}), "v is not a list of whole numbers"),
                (parcel(r=None), "r is not a list of whole numbers"),
                (parcel(z={"L": [number("1.5")]}), "z is not a list of whole numbers"),
                (parcel(w={"L": [number("x")]}), "w is not a list of whole numbers"),
                (parcel(f={"L": [number("x")]}), "f is not a list of whole numbers"),
                (
                    parcel(r={"L": [number("0"), *PARCEL["r"]["L"]]}),
                    "v, r and z differ in length",
                ),
                (parcel(f={"L": [number("1")] * 99}), "f and v differ in length"),
                (parcel(t=None), "t is not a whole number"),
                (parcel(expires_at=number("x")), "expires_at is not a whole number"),
                (
                    {"pk": {"S": "P#1"}, "sk": {"S": "x"}, "state": {"S": "retrying"}},
                    "probe_sent is not a whole number",
                ),
                (parcel(r=all_of("-1")), "a number of r is negative"),
                (parcel(z=all_of("-5")), "a number of z is negative"),
                *[
                    (parcel(pk={"S": key}), "its key is not that of a parcel")
                    for key in ("Q#q", "Q#", "Q##0", "R#q#x", "Q#q#0#1")
                ],
                (parcel(t=number(BIG)), "t is too large"),
                (parcel(expires_at=number(f"-{BIG}")), "expires_at is too large"),
                ({"pk": {"S": "U#0"}, "sk": {"S": "x"}}, "it is no item of the table Messages"),
            ],
            id="Messages",
        ),
        pytest.param(
            USAGE,
            [
                *LACKING,
                (RECORDS, None),
                ({"pk": {"S": "Q#q#0"}, "sk": {"S": "x"}}, "it is no item of the table Usage"),
            ],
            id="Usage",
        ),
        pytest.param(
            DIRECTORY,
            [
                *LACKING,
                (described(), None),
                (resource({"S": "{}"}, {"N": "1"}), NO_KEYS),
                (resource({"N": "1"}), "document is not of type S"),
                (resource(None), "document is missing"),
                (resource({"S": ""}), NO_DOCUMENT),
                (resource({"S": "{oops"}), NO_DOCUMENT),
                (resource({"S": "{}"}), NO_DOCUMENT),
                (described(account=None), NO_DOCUMENT),
                (described(account=5), NO_DOCUMENT),
                (described(kind=None), NO_DOCUMENT),
                (described(name=None), NO_DOCUMENT),
                ({"pk": {"S": "U#0"}, "sk": {"S": "x"}}, "it is no item of the table Directory"),
            ],
            id="Directory",
        ),
    ],
)
def test_each_fault_has_its_sentence(
    spark: SparkSession,
    tmp_path: Path,
    schema: TableSchema,
    records: list[tuple[Any, str | None]],
) -> None:
    writer = ExportWriter(root=tmp_path, table="T", at_ms=AT_MS)
    writer.write_file([json.dumps({"Item": item}) for item, _ in records])
    (export,) = read_exports(HadoopFiles(lambda: spark), [str(writer.finish())])
    found = record_faults(Reader(spark, schema), export).collect()
    assert [row["fault"] for row in found] == [sentence for _, sentence in records]


def test_a_change_needs_the_time_of_its_writing(spark: SparkSession, tmp_path: Path) -> None:
    writer = ExportWriter(root=tmp_path, table="T", at_ms=AT_MS + 9, since_ms=AT_MS)
    keys = {name: PARCEL[name] for name in ("pk", "sk")}
    times: list[Any] = [
        MICROS,
        None,
        {},
        {"WriteTimestampMicros": {"S": "7"}},
        {"WriteTimestampMicros": number("x")},
    ]
    changes = [{"Metadata": each, "Keys": keys, "OldImage": PARCEL} for each in times]
    writer.write_file([*map(json.dumps, changes)])
    (export,) = read_exports(HadoopFiles(lambda: spark), [str(writer.finish())])
    found = record_faults(Reader(spark, MESSAGES_WITH_DELETIONS), export).collect()
    said = "WriteTimestampMicros is not a whole number"
    assert [row["fault"] for row in found] == [None, said, said, said, said]
