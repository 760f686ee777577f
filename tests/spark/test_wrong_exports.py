"""Exports of another table or account, and records that no table of ours can hold."""

from __future__ import annotations

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
        pytest.param("usage", None, "Messages", marks=pytest.mark.long),
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


def test_a_line_longer_than_any_record_is_refused_without_reading_it(
    tmp_path: Path, jobs: Jobs
) -> None:
    export = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS)
    (item,) = Messages(seed=1, items=1, at_ms=AT_MS).items_of(0, 1)
    sound, sk = f'{{"Item":{item}}}', '"sk":{"S":"'
    export.write_file([sound, sound.replace(sk, sk + "x" * LINE_BYTES_MOST)])
    ended = jobs.report_backlog(tmp_path / "out", [export.finish()])
    assert_nothing_written(
        ended,
        tmp_path / "out",
        str(next(export.data.iterdir())),
        "1 items, but the manifest says 2; lines above 16 MB are not read",
    )
