"""Exports of another table or account, and records that no table of ours can hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.spark.job_runs import Ended, Jobs

from cirrusmq_reports.records import LINE_BYTES_MOST
from export_writer import ExportWriter
from synthetic_messages import Messages, directory_export
from synthetic_usage import Usage

AT_MS = 1_795_161_600_000  # 2026-11-20T08:00:00Z


@pytest.fixture
def exports(tmp_path: Path) -> dict[str, Path]:
    """An export of each table."""
    messages = Messages(seed=1, items=60, at_ms=AT_MS)
    return {
        "usage": Usage(seed=1, records=60, at_ms=AT_MS, days=2).export(tmp_path / "u"),
        "messages": messages.export(tmp_path / "m"),
        "directory": directory_export(tmp_path / "d", AT_MS, messages.all_resources()),
    }


def export_of(root: Path, table: str, *items: dict[str, object]) -> Path:
    writer = ExportWriter(root=root, table=table, at_ms=AT_MS)
    writer.write_file([json.dumps({"Item": item}) for item in items])
    return writer.finish()


def assert_refused(ended: Ended, output: Path, *words: str) -> None:
    assert ended.code == 2
    for word in words:
        assert word in ended.message
    assert not list(output.rglob("*.*")), "nothing is replaced"


@pytest.mark.parametrize("given", ["messages", pytest.param("directory", marks=pytest.mark.long)])
def test_billing_takes_no_other_table(
    tmp_path: Path, jobs: Jobs, exports: dict[str, Path], given: str
) -> None:
    ended = jobs.bill(tmp_path / "out", [exports[given]])
    assert_refused(ended, tmp_path / "out", str(exports[given]), "no item of the table Usage")


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
    assert_refused(ended, tmp_path / "out", f"no item of the table {wrong}")


def test_tables_of_one_name_in_two_accounts_are_two_tables(
    tmp_path: Path, jobs_without_spark: Jobs
) -> None:
    arn = "arn:aws:dynamodb:eu-central-1:{}:table/Usage"
    exports = []
    for account in ("111111111111", "222222222222"):
        writer = ExportWriter(root=tmp_path / account, table="Usage", at_ms=AT_MS)
        writer.write_file([])
        exports.append(writer.finish(tableArn=arn.format(account)))
    ended = jobs_without_spark.bill(tmp_path / "out", exports)
    assert ended.code == 2
    assert "of different tables: " in ended.message
    for account in ("111111111111", "222222222222"):
        assert arn.format(account) in ended.message


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
    export = export_of(tmp_path, "Messages", parcel(), parcel("Q##0"))
    ended = jobs.report_backlog(tmp_path / "out", [export])
    said = "item Q##0 1#p: its key is not that of a parcel"
    assert_refused(ended, tmp_path / "out", str(export), said)


def test_a_line_longer_than_any_record_is_refused_without_reading_it(
    tmp_path: Path, jobs: Jobs
) -> None:
    export = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS)
    sound = json.dumps({"Item": parcel()})
    export.write_file([sound, sound.replace("1#p", "x" * LINE_BYTES_MOST)])
    ended = jobs.report_backlog(tmp_path / "out", [export.finish()])
    assert_refused(
        ended,
        tmp_path / "out",
        str(next(export.data.iterdir())),
        "1 items, but the manifest says 2; lines above 16 MB are not read",
    )
