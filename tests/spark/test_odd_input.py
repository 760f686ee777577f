"""Odd exports, options and output folders: one line, exit code 2, and nothing replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.bills import use, whole
from tests.spark.job_runs import (
    AT_MS,
    HOUR_MS,
    RATE_CARD,
    Jobs,
    assert_refused,
    fingerprints,
    summaries_in,
)

from cirrusmq_reports import billing_command
from cirrusmq_reports.billing_state import FORMAT, State
from cirrusmq_reports.command import open_outputs
from cirrusmq_reports.files import HadoopFiles
from cirrusmq_reports.manifests import read_exports
from cirrusmq_reports.publication import Part
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import USAGE
from cirrusmq_reports.transforms.usage_records import usage_records
from export_writer import ExportWriter
from synthetic_messages import Messages
from synthetic_usage import change


def usage_item(key: str) -> str:
    return json.dumps(use(key, "2026-11-20 07:00", 1), separators=(",", ":"))


def window_of(root: Path, *changes: str, **summary: object) -> Path:
    writer = ExportWriter(root=root, table="Usage", at_ms=AT_MS + HOUR_MS, since_ms=AT_MS)
    writer.write_file(changes)
    return writer.finish(**summary)


# Records


def test_a_self_contradicting_change(tmp_path: Path, jobs: Jobs) -> None:
    record = json.loads(change(usage_item("a"), AT_MS + 5))
    record["Keys"]["sk"]["S"] = "b"
    window = window_of(tmp_path, json.dumps(record))
    ended = jobs.bill(tmp_path / "out", [window], "--accept-gaps")
    assert_refused(ended, f"{window}: item U#0 b: its image has other keys")


@pytest.mark.few(1)
@pytest.mark.parametrize("view", ["NEW_AND_OLD_IMAGES", "NEW_IMAGE", None])
def test_a_removal_needs_no_image(tmp_path: Path, spark: SparkSession, view: str | None) -> None:
    """An item that was written and removed within a window has no image in either view."""
    record = json.loads(change(usage_item("a"), AT_MS + 5))
    del record["NewImage"]
    window = window_of(tmp_path, json.dumps(record), outputView=view)
    items = [use(key, "2026-11-20 07:00", 1) for key in ("a", "b")]
    full = whole(tmp_path, "2026-11-20 08:00", items)
    exports = read_exports(HadoopFiles(lambda: spark), [str(full), str(window)])
    shown = usage_records(Reader(spark, USAGE), exports).select("item.sk.S").collect()
    assert sorted(sk for (sk,) in shown) == ["a", "b"], "a removal takes nothing back"


# Options


@pytest.mark.parametrize("option", ["--output", "--export", "--rate-card"])
def test_an_empty_option(
    tmp_path: Path, jobs_without_spark: Jobs, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    options = {"--export": "e", "--rate-card": str(RATE_CARD), "--output": str(tmp_path / "out")}
    arguments = [part for pair in (options | {option: ""}).items() for part in pair]
    with pytest.raises(SystemExit) as ended:
        billing_command.run(arguments, jobs_without_spark.session)
    assert ended.value.code == 2
    assert f"argument {option}" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-1", "x", "99999999999999999999"])
def test_a_history_of_no_times(
    tmp_path: Path, jobs_without_spark: Jobs, messages_export: Path, count: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        jobs_without_spark.report_backlog(tmp_path, [messages_export], [], f"--history={count}")
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_an_unreadable_rate_card(
    tmp_path: Path, jobs_without_spark: Jobs, content: bytes | None
) -> None:
    card = tmp_path / "card.yaml"
    if content is None:
        card.mkdir()
    else:
        card.write_bytes(content)
    assert_refused(jobs_without_spark.bill(tmp_path / "out", ["e"], card=card), str(card))


def test_a_missing_file_system(
    tmp_path: Path, jobs: Jobs, usage_export: Path, spark: SparkSession
) -> None:
    ended = jobs.bill("nowhere://bucket/out", [usage_export])
    assert_refused(ended, "nowhere://bucket/out", "nowhere")
    ended = jobs.bill(tmp_path / "out", ["://AWSDynamoDB/1"])
    assert_refused(ended, "://AWSDynamoDB/1/manifest-summary.json")
    ended = jobs.bill(tmp_path / "out", ["nowhere://bucket/AWSDynamoDB/1"])
    assert_refused(ended, "nowhere://bucket/AWSDynamoDB/1")
    with pytest.raises(IsADirectoryError):
        HadoopFiles(lambda: spark).read(tmp_path.as_uri())


# Output folders


@pytest.mark.parametrize(
    "place", ["", "current", "tables", "tables/usage", "tables/invoice_lines", "runs/billing"]
)
def test_a_file_in_place_of_a_folder(
    tmp_path: Path, jobs_without_spark: Jobs, usage_export: Path, place: str
) -> None:
    blocked = tmp_path / "out" / place
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("mine")
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export])
    assert_refused(ended, f"{blocked}: a file")


def test_a_folder_in_place_of_the_pointer(
    tmp_path: Path, jobs_without_spark: Jobs, usage_export: Path
) -> None:
    blocked = tmp_path / "out/current/billing.json"
    blocked.mkdir(parents=True)
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export])
    assert_refused(ended, f"{blocked}: a folder")
    assert fingerprints(tmp_path / "out") == {}


LATER = f'{{"run": "r", "format": {FORMAT + 1}}}\n'
NO_POINTER = "{pointer}: not a pointer to reports"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *[(text, NO_POINTER) for text in ("", "{}", "[]", "{oops")],
        ('{"run": "r"}\n{"dataset": "usage"}', NO_POINTER),
        (LATER, f"of a later release (format {FORMAT + 1},"),
    ],
)
def test_a_damaged_pointer_and_one_of_a_later_release_are_refused(
    tmp_path: Path, jobs_without_spark: Jobs, usage_export: Path, content: str, said: str
) -> None:
    pointer = tmp_path / "out/current/billing.json"
    pointer.parent.mkdir(parents=True)
    pointer.write_text(content)
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export])
    assert_refused(ended, said.format(pointer=pointer))
    assert pointer.read_text() == content


def test_releases_without_formats_refuse_bills_by_record(
    tmp_path: Path, jobs_without_spark: Jobs
) -> None:
    """After a rollback. They take each line but the first for a part, with all that it has."""
    output = tmp_path / "out"
    kept = Part("ledger", "2026-09", "r1", 7, 3)
    with open_outputs(str(output), jobs_without_spark.session, "billing", "ledger") as outputs:
        outputs.publish(State(sequence=3).as_dict(), [kept])

    lines = (output / "current/billing.json").read_text().splitlines()[1:]
    names = ("dataset", "part", "run", "row_count")
    read = [all(name in json.loads(line) for name in names) for line in lines]
    assert sorted(read) == [False, True]
    with open_outputs(str(output), jobs_without_spark.session, "billing", "ledger") as outputs:
        assert outputs.published.parts == [kept]
        assert State.of(outputs.published.state).sequence == 3


@pytest.mark.long
def test_a_damaged_file_of_an_earlier_report(
    tmp_path: Path, jobs: Jobs, messages_export: Path
) -> None:
    output = tmp_path / "out"
    assert jobs.report_backlog(output, [messages_export]).code == 0
    damaged = min(output.glob("tables/backlog/*/part=*/*.parquet"))
    damaged.write_bytes(b"x")
    before = fingerprints(output)
    ended = jobs.report_backlog(output, [messages_export])
    assert_refused(ended, str(damaged))
    assert fingerprints(output) == before


@pytest.mark.long
def test_an_earlier_time_does_not_change_the_reported_export(tmp_path: Path, jobs: Jobs) -> None:
    messages = Messages(seed=1, items=20, at_ms=AT_MS)
    exports = []
    for hour in range(3):
        writer = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS + hour * HOUR_MS)
        writer.write_file([f'{{"Item":{item}}}' for item in messages.items_of(hour, 10 + hour)])
        exports.append(writer.finish())
    at = ("--at", "2026-11-20T08:00:00Z")
    assert jobs.report_backlog(tmp_path / "all", exports, [], *at).code == 0
    assert jobs.report_backlog(tmp_path / "last", exports[2:], [], *at).code == 0
    assert figures_in(tmp_path / "all") == figures_in(tmp_path / "last")


def figures_in(output: Path) -> list[Any]:
    answers = summaries_in(output, "backlog").values()
    return [(answer["at"], answer["resources"]) for answer in answers]
