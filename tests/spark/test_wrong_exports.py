"""Exports of another table or account, and records that no table of ours can hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.spark.job_runs import AT_MS, Ended, Jobs, assert_refused

from cirrusmq_reports.records import LINE_BYTES_MOST
from export_writer import ExportWriter
from synthetic_messages import Messages, directory_export


@pytest.fixture
def exports(tmp_path: Path, usage_export: Path, messages_export: Path) -> dict[str, Path]:
    """An export of each table."""
    resources = Messages(seed=1, items=60, at_ms=AT_MS).all_resources()
    directory = directory_export(tmp_path / "d", AT_MS, resources)
    return {"usage": usage_export, "messages": messages_export, "directory": directory}


def assert_nothing_written(ended: Ended, output: Path, *words: str) -> None:
    assert_refused(ended, *words)
    assert not list(output.rglob("*.*")), "nothing is replaced"


@pytest.mark.parametrize("given", ["messages", pytest.param("directory", marks=pytest.mark.long)])
def test_billing_takes_no_other_table(
    tmp_path: Path, jobs: Jobs, exports: dict[str, Path], given: str
) -> None:
    ended = jobs.bill(tmp_path / "out", [exports[given]])
    assert_nothing_written(
        ended, tmp_path / "out", str(exports[given]), "no item of the table Usage"
    )


@pytest.mark.parametrize(
    ("messages", "directory", "wrong"),
    [
        ("usage", None, "Messages"),
        ("messages", "usage", "Directory"),
        pytest.param("directory", None, "Messages", marks=pytest.mark.long),
        pytest.param("usage", "directory", "Messages", marks=pytest.mark.long),
        pytest.param("directory", "messages", "", marks=pytest.mark.long),
        pytest.param("messages", "messages", "Directory", marks=pytest.mark.long),
    ],
)
def test_the_backlog_takes_no_other_table(
    tmp_path: Path,
    jobs: Jobs,
    exports: dict[str, Path],
    messages: str,
    directory: str | None,
    wrong: str,
) -> None:
    directories = [exports[directory]] if directory else []
    ended = jobs.report_backlog(tmp_path / "out", [exports[messages]], directories)
    assert_nothing_written(ended, tmp_path / "out", f"no item of the table {wrong}")


def parcel(pk: str = "Q#q#0") -> dict[str, object]:
    lists = {"v": AT_MS - 9, "r": 0, "z": 5}
    numbers = {"t": AT_MS - 9, "x": AT_MS + 9_999, "expires_at": AT_MS // 1000 + 10}
    return {
        "pk": {"S": pk},
        "sk": {"S": "1#p"},
        **{name: {"L": [{"N": str(value)}]} for name, value in lists.items()},
        **{name: {"N": str(value)} for name, value in numbers.items()},
    }


@pytest.mark.long
def test_an_item_that_no_parcel_can_be(tmp_path: Path, jobs: Jobs) -> None:
    writer = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS)
    writer.write_file([json.dumps({"Item": item}) for item in (parcel(), parcel("Q##0"))])
    export = writer.finish()
    ended = jobs.report_backlog(tmp_path / "out", [export])
    said = "item Q##0 1#p: its key is not that of a parcel"
    assert_nothing_written(ended, tmp_path / "out", str(export), said)


def test_a_line_longer_than_any_record_is_refused_without_reading_it(
    tmp_path: Path, jobs: Jobs
) -> None:
    export = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS)
    sound = json.dumps({"Item": parcel()})
    export.write_file([sound, sound.replace("1#p", "x" * LINE_BYTES_MOST)])
    ended = jobs.report_backlog(tmp_path / "out", [export.finish()])
    assert_nothing_written(
        ended,
        tmp_path / "out",
        str(next(export.data.iterdir())),
        "1 items, but the manifest says 2; lines above 16 MB are not read",
    )
