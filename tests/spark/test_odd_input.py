"""Odd exports, options and output folders: one line, exit code 2, and nothing replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.job_runs import RATE_CARD, Jobs, fingerprints, summaries_in

from cirrusmq_reports import billing_command
from cirrusmq_reports.billing_state import FORMAT, State
from cirrusmq_reports.command import open_outputs
from cirrusmq_reports.files import HadoopFiles
from cirrusmq_reports.manifests import read_exports
from cirrusmq_reports.publication import Part
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import USAGE
from cirrusmq_reports.transforms.usage_records import usage_records
from export_writer import ExportWriter, write_with_checksum
from synthetic_messages import Messages
from synthetic_usage import Usage, change

AT_MS = 1_795_161_600_000  # 2026-11-20T08:00:00Z
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@pytest.fixture
def usage_export(tmp_path: Path) -> Path:
    return Usage(seed=1, records=20, at_ms=AT_MS, days=2).export(tmp_path)


@pytest.fixture
def messages_export(tmp_path: Path) -> Path:
    return Messages(seed=1, items=20, at_ms=AT_MS).export(tmp_path)


def usage_item(key: str, *, kind: str = "sent") -> str:
    entry = {
        "account": {"S": "acme"},
        "resource": {"S": "queue:q"},
        "kind": {"S": kind},
        "minute": {"N": str(AT_MS // 60_000 - 60)},
        "count": {"N": "1"},
        "bytes": {"N": "1"},
    }
    item = {
        "pk": {"S": "U#0"},
        "sk": {"S": key},
        "records": {"L": [{"M": entry}]},
        "expires_at": {"N": str(AT_MS // 1000 + 3_000_000)},
    }
    return json.dumps(item, separators=(",", ":"))


def export_of(root: Path, *items: str) -> Path:
    writer = ExportWriter(root=root, table="Usage", at_ms=AT_MS)
    writer.write_file([f'{{"Item":{item}}}' for item in items])
    return writer.finish()


def window_of(root: Path, *changes: str, since_ms: int = AT_MS, **summary: object) -> Path:
    writer = ExportWriter(root=root, table="Usage", at_ms=AT_MS + HOUR_MS, since_ms=since_ms)
    writer.write_file(changes)
    return writer.finish(**summary)


def assert_refused(code: int, message: str, *words: str) -> None:
    assert code == 2
    for word in words:
        assert word in message


# Manifests


def change_summary(export: Path, **changes: object) -> None:
    summary = json.loads((export / "manifest-summary.json").read_text()) | changes
    write_with_checksum(export / "manifest-summary.json", json.dumps(summary))


def change_listing(export: Path, **changes: object) -> None:
    entry = json.loads((export / "manifest-files.json").read_text()) | changes
    write_with_checksum(export / "manifest-files.json", json.dumps(entry))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("itemCount", float("inf")),
        ("itemCount", 20.9),
        ("itemCount", "20"),
        ("itemCount", True),
        ("exportTime", "0001-01-01T00:00:00Z"),
        ("exportTime", "9999-12-31T23:59:59.999999Z"),
        ("exportTime", 17),
        ("tableArn", None),
    ],
)
def test_a_summary_with_a_value_of_another_kind(
    usage_export: Path, jobs_without_spark: Jobs, name: str, value: object
) -> None:
    change_summary(usage_export, **{name: value})
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended.code, ended.message, f"{usage_export}/manifest-summary.json", "manifest")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("itemCount", 20.0),
        ("itemCount", -20),
        ("md5Checksum", []),
        ("dataFileS3Key", "AWSDynamoDB/a\0b"),
        ("dataFileS3Key", "AWSDynamoDB/\ud800"),
    ],
)
def test_a_listing_with_a_value_of_another_kind(
    usage_export: Path, jobs_without_spark: Jobs, name: str, value: object
) -> None:
    change_listing(usage_export, **{name: value})
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended.code, ended.message, f"{usage_export}/manifest-files.json: line 1")


def test_a_data_file_whose_name_no_file_can_have(
    usage_export: Path, jobs_without_spark: Jobs
) -> None:
    change_listing(usage_export, dataFileS3Key=f"AWSDynamoDB/{'x' * 5_000}")
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended.code, ended.message, "AWSDynamoDB/xxx", "too long")


@pytest.mark.parametrize("name", ["manifest-summary", "manifest-files"])
def test_a_manifest_nested_too_deep(
    usage_export: Path, jobs_without_spark: Jobs, name: str
) -> None:
    write_with_checksum(usage_export / f"{name}.json", "[" * 100_000)
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended.code, ended.message, f"{usage_export}/{name}.json", "nested")


def test_a_folder_in_place_of_a_checksum(usage_export: Path, jobs_without_spark: Jobs) -> None:
    checksum = usage_export / "manifest-files.md5"
    checksum.unlink()
    checksum.mkdir()
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended.code, ended.message, str(checksum))


def test_a_window_that_does_not_last_or_shows_something_unknown(
    tmp_path: Path, jobs_without_spark: Jobs
) -> None:
    still = window_of(tmp_path, since_ms=AT_MS + HOUR_MS)
    ended = jobs_without_spark.bill(tmp_path / "out", [still])
    assert_refused(ended.code, ended.message, f"{still}/manifest-summary.json", "window")
    odd = window_of(tmp_path, outputView="SIDEWAYS")
    ended = jobs_without_spark.bill(tmp_path / "out", [odd])
    assert_refused(ended.code, ended.message, f"{odd}/manifest-summary.json", "SIDEWAYS")


def test_a_message_is_one_line_whatever_a_folder_is_called(
    tmp_path: Path, jobs_without_spark: Jobs
) -> None:
    ended = jobs_without_spark.bill(tmp_path / "out", [tmp_path / "a\nb"])
    assert_refused(ended.code, ended.message, r"a\nb/manifest-summary.json")


# Records


def with_other_keys(record: dict[str, Any]) -> None:
    record["Keys"]["sk"]["S"] = "b"


def test_a_change_that_contradicts_itself(tmp_path: Path, jobs: Jobs) -> None:
    record = json.loads(change(usage_item("a"), AT_MS + 5))
    with_other_keys(record)
    window = window_of(tmp_path, json.dumps(record))
    ended = jobs.bill(tmp_path / "out", [window], "--accept-gaps")
    assert_refused(ended.code, ended.message, f"{window}: item U#0 b: its image has other keys")


@pytest.mark.parametrize("view", ["NEW_AND_OLD_IMAGES", "NEW_IMAGE", None])
def test_a_removal_needs_no_image(tmp_path: Path, spark: SparkSession, view: str | None) -> None:
    """An item that was written and removed within a window has no image in either view."""
    record = json.loads(change(usage_item("a"), AT_MS + 5))
    del record["NewImage"]
    window = window_of(tmp_path, json.dumps(record), outputView=view)
    whole = export_of(tmp_path, usage_item("a"), usage_item("b"))
    exports = read_exports(HadoopFiles(lambda: spark), [str(whole), str(window)])
    shown = usage_records(Reader(spark, USAGE), exports).select("item.sk.S").collect()
    assert sorted(sk for (sk,) in shown) == ["a", "b"], "a removal takes nothing back"


# Options


@pytest.mark.parametrize(
    ("option", "value"), [("--output", ""), ("--export", ""), ("--rate-card", "")]
)
def test_an_option_that_names_nothing(
    tmp_path: Path, jobs_without_spark: Jobs, capsys: pytest.CaptureFixture[str],
    option: str, value: str,
) -> None:  # fmt: skip
    options = {"--export": "e", "--rate-card": str(RATE_CARD), "--output": str(tmp_path / "out")}
    arguments = [part for pair in (options | {option: value}).items() for part in pair]
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
def test_a_rate_card_that_is_no_text(
    tmp_path: Path, jobs_without_spark: Jobs, content: bytes | None
) -> None:
    card = tmp_path / "card.yaml"
    if content is None:
        card.mkdir()
    else:
        card.write_bytes(content)
    arguments = ["--export", "e", "--rate-card", str(card), "--output", str(tmp_path / "out")]
    ended = jobs_without_spark._run(billing_command.run, arguments)
    assert_refused(ended.code, ended.message, str(card))


def test_a_file_system_that_is_not_there(
    tmp_path: Path, jobs: Jobs, usage_export: Path, spark: SparkSession
) -> None:
    ended = jobs.bill("nowhere://bucket/out", [usage_export])
    assert_refused(ended.code, ended.message, "nowhere://bucket/out", "nowhere")
    ended = jobs.bill(tmp_path / "out", ["://AWSDynamoDB/1"])
    assert_refused(ended.code, ended.message, "://AWSDynamoDB/1/manifest-summary.json")
    ended = jobs.bill(tmp_path / "out", ["nowhere://bucket/AWSDynamoDB/1"])
    assert_refused(ended.code, ended.message, "nowhere://bucket/AWSDynamoDB/1")
    with pytest.raises(IsADirectoryError):
        HadoopFiles(lambda: spark).read(tmp_path.as_uri())


# Output folders


@pytest.mark.parametrize(
    "place", ["", "current", "tables", "tables/usage", "tables/invoice_lines", "runs/billing"]
)
def test_a_file_where_a_folder_is_needed(
    tmp_path: Path, jobs_without_spark: Jobs, usage_export: Path, place: str
) -> None:
    blocked = tmp_path / "out" / place
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("mine")
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export])
    assert_refused(ended.code, ended.message, f"{blocked}: a file")


def test_a_folder_in_place_of_the_pointer(
    tmp_path: Path, jobs_without_spark: Jobs, usage_export: Path
) -> None:
    blocked = tmp_path / "out/current/billing.json"
    blocked.mkdir(parents=True)
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export])
    assert_refused(ended.code, ended.message, f"{blocked}: a folder")
    assert fingerprints(tmp_path / "out") == {}


@pytest.mark.parametrize("content", ["", "{}", "[]", "{oops", '{"run": "r"}\n{"dataset": "usage"}'])
def test_a_damaged_pointer(
    tmp_path: Path, jobs_without_spark: Jobs, usage_export: Path, content: str
) -> None:
    pointer = tmp_path / "out/current/billing.json"
    pointer.parent.mkdir(parents=True)
    pointer.write_text(content)
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export])
    assert_refused(ended.code, ended.message, f"{pointer}: not a pointer to reports")


def test_bills_of_a_later_release_are_refused(
    tmp_path: Path, jobs_without_spark: Jobs, usage_export: Path
) -> None:
    pointer = tmp_path / "out/current/billing.json"
    pointer.parent.mkdir(parents=True)
    pointer.write_text(f'{{"run": "r", "format": {FORMAT + 1}}}\n')
    before = fingerprints(tmp_path / "out")

    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export])

    assert_refused(ended.code, ended.message, f"of a later release (format {FORMAT + 1},")
    assert fingerprints(tmp_path / "out") == before


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
    assert_refused(ended.code, ended.message, str(damaged))
    assert fingerprints(output) == before


@pytest.mark.long
def test_an_earlier_time_does_not_change_which_export_is_reported(
    tmp_path: Path, jobs: Jobs
) -> None:
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
