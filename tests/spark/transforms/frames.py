"""Small frames for the tests of transforms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.schemas import TableSchema

Values = dict[str, Any]


def at(text: str) -> datetime:
    """`2026-11-05 12:00` as a time of UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ms(text: str) -> int:
    """The same in milliseconds."""
    return round(at(text).timestamp() * 1000)


def frame(spark: SparkSession, schema: str, rows: Iterable[Values]) -> DataFrame:
    """A frame with these columns; what a row leaves out is null.

    `createDataFrame` would start Python beside Spark to read it.
    """
    text = json.dumps(list(rows), default=str)
    listed = sf.from_json(sf.lit(text), f"ARRAY<STRUCT<{schema}>>", {"mode": "FAILFAST"})
    return spark.range(1).select(sf.inline(listed))


def rows_of(rows: DataFrame, *columns: str) -> set[tuple[Any, ...]]:
    """The rows, each as a tuple of these columns; a time as text."""
    listed = [tuple(map(_shown, row)) for row in rows.select(*columns).collect()]
    assert len(listed) == len(set(listed)), listed
    return set(listed)


def _shown(value: Any) -> Any:
    # PySpark answers times of the machine's own zone.
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
    return value


def items(spark: SparkSession, schema: TableSchema, *documents: Mapping[str, Any]) -> DataFrame:
    """Column `item`, as the reader of exports makes it of these items in DynamoDB's JSON."""
    texts = sf.array(*[sf.lit(json.dumps(each)) for each in documents])
    listed = spark.range(1).select(sf.explode(texts).alias("text"))
    return listed.select(sf.from_json("text", schema.item).alias("item"))


def numbers(*values: int) -> dict[str, Any]:
    """An attribute that is a list of numbers."""
    return {"L": [{"N": str(value)} for value in values]}
