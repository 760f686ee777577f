"""All outputs of a run or none, however far it comes; and runs that nobody reads any more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.failing_writes import DiskFull
from tests.spark.job_runs import fingerprints, page_in, rows_in, run_of
from tests.spark.transforms.frames import frame

from cirrusmq_reports.command import open_outputs

TABLES = ("usage", "documents")


def run(output: Path, spark: SparkSession, count: int) -> None:
    """A run that writes and publishes what a bill does, of one row."""
    row = frame(spark, "month STRING, count BIGINT", [{"month": "2026-11", "count": count}])
    with open_outputs(str(output), lambda: spark, "billing", *TABLES) as outputs:
        parts = [part for table in TABLES for part in outputs.write(row, table, "month")]
        outputs.write_summary("acme", {"count": count})
        outputs.write_file("documents/acme/1.csv", b"csv")
        outputs.write_page("a page")
        outputs.publish({}, parts)


@pytest.mark.parametrize("rooms", [(1, 3, 6), pytest.param(range(7), marks=pytest.mark.long)])
def test_a_full_disk_at_any_write_replaces_nothing(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, rooms: Sequence[int]
) -> None:
    """Two tables, a summary, a document, the page, the proposal, the pointer: seven writes."""
    output = tmp_path / "out"
    run(output, spark, 1)
    before = fingerprints(output)
    disk = DiskFull(monkeypatch)
    for room in rooms:
        disk.left = room
        with pytest.raises(OSError, match="No space left on device") as refused:
            run(output, spark, 2)
        seen = fingerprints(output)
        assert {path: seen.get(path) for path in before} == before
        # A pointer may have been on its way: what it names is then not removed.
        if "current/" not in refused.value.filename:
            assert seen == before
    disk.left = 7
    run(output, spark, 2)
    summary = run_of(output, "billing") / "summaries/acme.json"
    assert json.loads(summary.read_text()) == {"count": 2}
    assert [[row["count"] for row in rows_in(output, table).collect()] for table in TABLES] == [
        [2],
        [2],
    ]
    assert page_in(output, "billing").read_text() == "a page"


def test_runs_without_a_pointer_are_removed_a_day_later(
    tmp_path: Path, spark: SparkSession
) -> None:
    output = tmp_path / "out"
    run(output, spark, 1)
    old, young = "20200101T000000000Z-aa", "99990101T000000000Z-bb"
    for name in (old, young):
        for home in ("runs/billing", "tables/usage"):
            (output / home / name).mkdir()
            (output / home / name / "half").write_text("x")
    first = run_of(output, "billing").name
    run(output, spark, 2)
    second = run_of(output, "billing").name
    for home in ("runs/billing", "tables/usage"):
        assert {path.name for path in (output / home).iterdir()} == {first, second, young}
