from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.transforms.frames import items, ms, rows_of

from cirrusmq_reports.columns import BAD_RECORD, SAID
from cirrusmq_reports.schemas import USAGE
from cirrusmq_reports.transforms.usage_entries import usage_entries

DAY_SECONDS = 86_400
TO = "2026-11-20 08:00"


def entry(minute: str = "29000000", **more: str | None) -> dict[str, Any]:
    texts = {"account": "acme", "resource": "queue:q", "kind": "sent"}
    whole = {"minute": minute, "count": "2", "bytes": "30", **more}
    fields: dict[str, Any] = {name: {"S": text} for name, text in texts.items()}
    fields |= {name: {"N": number} for name, number in whole.items() if number is not None}
    return {"M": fields}


def record(*entries: dict[str, Any], written_s: int = 1_780_000_000) -> dict[str, Any]:
    return {
        "pk": {"S": "U#3"},
        "sk": {"S": "1#a"},
        "records": {"L": list(entries)},
        "expires_at": {"N": str(written_s + 40 * DAY_SECONDS)},
    }


def entries_of(spark: SparkSession, *documents: dict[str, Any]) -> DataFrame:
    return usage_entries(items(spark, USAGE, *documents), ms(TO))


def test_each_entry_is_a_row_with_the_time_of_its_writing(spark: SparkSession) -> None:
    counter = {"pk": {"S": "C#3"}, "sk": {"S": "q"}, "messages": {"N": "5"}}
    rows = entries_of(
        spark,
        record(entry(), entry("29000001", count="-2", attempts="7")),
        counter,
        record(entry("0"), written_s=5),
    )
    columns = ("account", "resource", "kind", "minute", "count", "bytes", "attempts", "written_ms")
    acme = ("acme", "queue:q", "sent")
    assert rows_of(rows, *columns) == {
        (*acme, 29_000_000, 2, 30, 0, 1_780_000_000_000),
        (*acme, 29_000_001, -2, 30, 7, 1_780_000_000_000),
        (*acme, 0, 2, 30, 0, 5_000),
    }


@pytest.mark.parametrize(
    "wrong",
    [{"minute": "-1"}, {"minute": "x"}, {"count": "1.5"}, {"bytes": None}, {"attempts": "many"}],
)
def test_an_entry_that_lacks_a_number_ends_the_job(
    spark: SparkSession, wrong: dict[str, Any]
) -> None:
    with pytest.raises(PySparkException, match=BAD_RECORD):
        entries_of(spark, record(entry(**wrong))).collect()


def test_a_record_without_its_time_ends_the_job(spark: SparkSession) -> None:
    lacking = {name: value for name, value in record(entry()).items() if name != "expires_at"}
    with pytest.raises(PySparkException, match=BAD_RECORD):
        entries_of(spark, lacking).collect()


def test_use_after_the_exports_end_is_refused_with_its_minute(spark: SparkSession) -> None:
    last = ms(TO) // 60_000
    assert entries_of(spark, record(entry(str(last)))).count() == 1
    said = f"{SAID}usage of acme queue:q sent at 2026-11-20 08:01 is after 2026-11-20T08:00"
    with pytest.raises(PySparkException, match=said):
        entries_of(spark, record(entry(str(last + 1)))).collect()
