"""The transforms that read exports: which version of an item is the last one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.spark.transforms.frames import ms, rows_of

from cirrusmq_reports.files import LocalFiles
from cirrusmq_reports.manifests import Export, read_exports
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import DIRECTORY
from cirrusmq_reports.transforms.current_items import current_items
from cirrusmq_reports.transforms.versions import versions_of
from export_writer import ExportWriter

NIGHT, MORNING, NOON = (ms(f"2026-11-20 {hour}:00") for hour in ("00", "06", "12"))


class Table:
    """Exports of items that are told apart by a key and a text."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root = root
        self.reader = Reader(spark, DIRECTORY)

    def image(self, key: str, text: str) -> dict[str, Any]:
        return {"pk": {"S": "I#0"}, "sk": {"S": key}, "document": {"S": text}}

    def whole(self, at_ms: int, *images: dict[str, Any]) -> Export:
        writer = ExportWriter(root=self.root, table="Directory", at_ms=at_ms)
        writer.write_file([json.dumps({"Item": image}) for image in images])
        return self._read(writer)

    def window(
        self,
        since_ms: int,
        at_ms: int,
        *changes: tuple[int, dict[str, Any] | None, dict[str, Any] | None],
    ) -> Export:
        """Changes are a time, the image before, and the one after."""
        writer = ExportWriter(root=self.root, table="Directory", at_ms=at_ms, since_ms=since_ms)
        lines = []
        for written_ms, old, new in changes:
            image = new or old
            assert image
            record = {
                "Metadata": {"WriteTimestampMicros": {"N": str(written_ms * 1000)}},
                "Keys": {name: image[name] for name in ("pk", "sk")},
                "OldImage": old,
                "NewImage": new,
            }
            lines.append(json.dumps({name: value for name, value in record.items() if value}))
        writer.write_file(lines)
        return self._read(writer)

    def _read(self, writer: ExportWriter) -> Export:
        (export,) = read_exports(LocalFiles(), [str(writer.finish())])
        return export


@pytest.fixture
def directory(tmp_path: Path, spark: SparkSession) -> Table:
    return Table(tmp_path, spark)


def texts(items: DataFrame) -> set[tuple[Any, ...]]:
    shown = items.selectExpr("item.sk.S AS sk", "item.document.S AS text")
    return rows_of(shown, "sk", "text")


def test_versions_are_the_images_of_exports_and_their_times(directory: Table) -> None:
    image = directory.image
    whole = directory.whole(MORNING, image("a", "1"))
    window = directory.window(
        MORNING,
        NOON,
        (MORNING + 5, image("a", "1"), image("a", "2")),
        (MORNING + 6, image("b", "1"), None),
    )
    rows = versions_of(directory.reader, [whole, window]).withColumn(
        "item", sf.col("item.document.S")
    )
    assert rows_of(rows, "pk", "sk", "item", "removed", "written_micros") == {
        ("I#0", "a", "1", False, MORNING * 1000 - 1),
        ("I#0", "a", "2", False, MORNING * 1000 + 5_000),
        ("I#0", "b", "1", True, MORNING * 1000 + 6_000),
    }


def test_windows_add_change_and_remove_items(directory: Table) -> None:
    image = directory.image
    whole = directory.whole(NIGHT, image("a", "1"), image("b", "1"), image("c", "1"))
    first = directory.window(
        NIGHT,
        MORNING,
        (NIGHT, image("a", "1"), image("a", "2")),
        (NIGHT + 1, image("b", "1"), None),
        (NIGHT + 2, None, image("d", "1")),
    )
    second = directory.window(
        MORNING,
        NOON,
        (MORNING, None, image("b", "again")),
        (MORNING, image("d", "1"), None),
    )
    found = current_items(directory.reader, whole, [first, second])
    assert texts(found) == {("a", "2"), ("b", "again"), ("c", "1")}
    assert texts(current_items(directory.reader, whole, [])) == {
        ("a", "1"), ("b", "1"), ("c", "1"),
    }  # fmt: skip


def test_a_window_begun_before_the_whole_export_brings_nothing_old_back(
    directory: Table,
) -> None:
    image = directory.image
    whole = directory.whole(MORNING, image("a", "2"))
    window = directory.window(
        NIGHT,
        NOON,
        (MORNING - 2, None, image("a", "1")),
        (MORNING - 1, None, image("removed since", "1")),
        (MORNING, None, image("b", "1")),
    )
    assert texts(current_items(directory.reader, whole, [window])) == {("a", "2"), ("b", "1")}
