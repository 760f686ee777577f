"""Bad input ends a job with exit code 2 and one line that names the file; nothing is replaced."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.job_runs import AT_MS, Jobs, assert_refused, data_files, fingerprints, page_in

from export_writer import ExportWriter, write_with_checksum
from synthetic_usage import Usage


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of a data file; its manifest follows with the new checksum."""
    path.write_bytes(gzip.compress("".join(change(lines_of(path))).encode(), mtime=0))
    correct_listing(path.parents[1])


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


def correct_listing(export: Path) -> None:
    """List the data files as they are now, with the counts of before."""
    listed = (export / "manifest-files.json").read_text().splitlines()
    entries = [json.loads(line) for line in listed]
    writer = ExportWriter(root=export.parents[1], table="T", at_ms=AT_MS)
    for entry in entries:
        writer.list_file(writer.root / entry["dataFileS3Key"], entry["itemCount"])
    listing = "".join(json.dumps(entry) + "\n" for entry in writer._listed)
    write_with_checksum(export / "manifest-files.json", listing)


@pytest.mark.long
def test_exports_with_odd_names_in_another_place_are_accepted(
    tmp_path: Path, jobs: Jobs, usage_export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has another name of its checksums, one odd names of files; both by relative paths."""
    moved = export_that_was_moved(tmp_path)
    listing = usage_export / "manifest-files.json"
    for number, path in enumerate(data_files(usage_export)):
        renamed = path.rename(path.with_name(f"a b%20c+{number} é#?.json.gz"))
        listing.write_text(listing.read_text().replace(path.name, renamed.name))
    correct_listing(usage_export)
    write_with_checksum(listing, listing.read_text() + "\n \n")
    monkeypatch.chdir(tmp_path)
    ended = jobs.bill("out", [path.relative_to(tmp_path) for path in (moved, usage_export)])
    assert (ended.code, ended.errors) == (0, "")
    assert page_in(tmp_path / "out", "billing").exists()


def export_that_was_moved(tmp_path: Path) -> Path:
    usage = Usage(seed=1, records=9, at_ms=AT_MS)
    root = tmp_path / "bucket"
    export = usage.export(root)
    for path in export.glob("*.md5"):
        path.rename(path.with_suffix(".checksum"))
    listing = export / "manifest-files.json"
    prefixed = listing.read_text().replace('"AWSDynamoDB/', '"nightly/runs/AWSDynamoDB/')
    write_with_checksum(listing, prefixed, ".checksum")
    summary = json.loads((export / "manifest-summary.json").read_text())
    summary["s3Prefix"] = "nightly/runs"
    write_with_checksum(export / "manifest-summary.json", json.dumps(summary), ".checksum")
    (tmp_path / "a [copy] of{it}").mkdir()
    return root.rename(tmp_path / "a [copy] of{it}/bucket") / export.relative_to(root)


# Faults that only the records themselves show; their checksums are right. `test_record_faults.py`
# has the sentence of each; here each way to notice one ends a job.

_LINE = 7


def case(table: str, change: Any, *words: str) -> Any:
    """A fault in an export of a table, and what the job says of it."""
    return pytest.param(table, change, words, id=f"{table}: {' '.join(words)}")


def break_line(lines: list[str]) -> list[str]:
    return [*lines[:_LINE], lines[_LINE][:50] + "\n", *lines[_LINE + 1 :]]


def lose_line(lines: list[str]) -> list[str]:
    return lines[:-1]


def change_parcel(old: str, new: str) -> Callable[[list[str]], list[str]]:
    """Write something else in the first parcel."""

    def change(lines: list[str]) -> list[str]:
        place = next(n for n, line in enumerate(lines) if '"v":{"L":' in line and '"Q#' in line)
        changed = lines[place].replace(old, new, 1)
        return [*lines[:place], changed, *lines[place + 1 :]]

    return change


def replace_line(text: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[:_LINE], text + "\n", *lines[_LINE + 1 :]]


def single_quotes(lines: list[str]) -> list[str]:
    return [*lines[:_LINE], lines[_LINE].replace('"', "'"), *lines[_LINE + 1 :]]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("table", "change", "words"),
    [
        case("messages", break_line, "a line is not a record", ': record 8: {"Item":{"pk":{"S":"'),
        case("messages", change_parcel('"v":{"L":', '"v":{"Q":'), "item Q#", "v is not of type L"),
        case(
            "messages", change_parcel('"Q#', '"Q##'), "item Q##", "its key is not that of a parcel"
        ),
        case(
            "usage", single_quotes, "a line is not a record", ": record 8: {'Item':{'pk':{'S':'U#"
        ),
        case("usage", replace_line('{"Item":null}'), "a record has no Item"),
    ],
)
def test_records_of_messages_and_usage(
    tmp_path: Path,
    jobs: Jobs,
    request: pytest.FixtureRequest,
    table: str,
    change: Callable[[list[str]], list[str]],
    words: tuple[str, ...],
) -> None:
    export: Path = request.getfixturevalue(f"{table}_export")
    bad = data_files(export)[1]
    rewrite(bad, change)
    report = jobs.bill if table == "usage" else jobs.report_backlog
    assert_refused(report(tmp_path / "out", [export]), str(bad), *words)
    assert not (tmp_path / "out").exists()


def resource_record(document: str, sk: str = '{"S":"q"}') -> str:
    return f'{{"Item":{{"pk":{{"S":"I#1"}},"sk":{sk},"document":{document}}}}}'


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("record", "word"),
    [
        ("{}", "a record has no Item"),
        (resource_record("null"), "item I#1 q: document is missing"),
    ],
)
def test_records_of_the_directory(
    tmp_path: Path, jobs: Jobs, messages_export: Path, record: str, word: str
) -> None:
    directory = ExportWriter(root=tmp_path, table="Directory", at_ms=AT_MS)
    sound = resource_record(json.dumps({"S": '{"account":"acme","kind":"queue","name":"n"}'}))
    directory.write_file([sound.replace('"q"', '"p"'), record])
    ended = jobs.report_backlog(tmp_path / "out", [messages_export], [directory.finish()])
    assert_refused(ended, str(data_files(directory.home)[0]), word)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_change_without_the_time_of_its_writing(
    tmp_path: Path, jobs: Jobs, messages_export: Path
) -> None:
    window = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS + 9, since_ms=AT_MS)
    keys = '{"pk":{"S":"Q#q#0"},"sk":{"S":"1#p"}}'
    window.write_file([f'{{"Metadata":null,"Keys":{keys},"OldImage":{keys}}}'])
    ended = jobs.report_backlog(tmp_path / "out", [messages_export, window.finish()])
    words = "item Q#q#0 1#p: WriteTimestampMicros is not a whole number"
    assert_refused(ended, str(data_files(window.data.parent)[0]), words)


@pytest.mark.long
def test_a_refusal_is_one_line_and_shows_names_as_they_are(tmp_path: Path, jobs: Jobs) -> None:
    for name, record, said in (
        ("two\nlines a%20b", "{oops", "a line is not a record of an export: record 1: {oops"),
        ("key", '{"Item":{"pk":{"S":"Q#q#0"},"sk":{"S":"a\\nb"}}}', "item Q#q#0 a\\nb: v is not"),
    ):
        export = ExportWriter(root=tmp_path / name, table="Messages", at_ms=AT_MS)
        export.write_file([record])
        ended = jobs.report_backlog(tmp_path / "out", [export.finish()])
        path = str(data_files(export.home)[0]).replace("\n", "\\n")
        assert_refused(ended, f"error: {path}: {said}")


def test_a_file_cut_before_its_checksum_was_made(
    tmp_path: Path, jobs: Jobs, usage_export: Path
) -> None:
    cut = data_files(usage_export)[1]
    cut.write_bytes(cut.read_bytes()[:-200])
    correct_listing(usage_export)
    assert_refused(jobs.bill(tmp_path / "out", [usage_export]), str(cut), "gzip")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(b"", mtime=0), id="gzip of nothing"),
        pytest.param(b"{}", id="no gzip", marks=pytest.mark.long),
        pytest.param(b"", id="no bytes", marks=pytest.mark.long),
    ],
)
def test_an_empty_data_file(tmp_path: Path, jobs: Jobs, usage_export: Path, content: bytes) -> None:
    empty = data_files(usage_export)[1]
    empty.write_bytes(content)
    correct_listing(usage_export)
    assert_refused(jobs.bill(tmp_path / "out", [usage_export]), str(empty))


@pytest.mark.long
def test_a_time_too_large_to_count_with(tmp_path: Path, jobs: Jobs, messages_export: Path) -> None:
    bad = data_files(messages_export)[1]
    sent = re.compile(r'"t":\{"N":"[^"]*"')
    rewrite(bad, lambda lines: [sent.sub(f'"t":{{"N":"{-(2**63)}"', line) for line in lines])
    ended = jobs.report_backlog(tmp_path / "out", [messages_export])
    assert_refused(ended, str(bad), "item ", "t is too large")


@pytest.mark.long
def test_wrong_counts_with_a_right_sum(tmp_path: Path, jobs: Jobs, usage_export: Path) -> None:
    first, second = data_files(usage_export)
    moved = lines_of(second)[-1]
    rewrite(second, lose_line)
    rewrite(first, lambda lines: [*lines, moved])
    assert_refused(jobs.bill(tmp_path / "out", [usage_export]), str(first), "31 items", "30")


def test_a_refusal_replaces_nothing(tmp_path: Path, jobs: Jobs, messages_export: Path) -> None:
    output = tmp_path / "out"
    assert jobs.report_backlog(output, [messages_export]).code == 0
    before = fingerprints(output)
    rewrite(data_files(messages_export)[1], lose_line)
    ended = jobs.report_backlog(output, [messages_export])
    assert_refused(ended, str(data_files(messages_export)[1]), "29 items", "30")
    assert fingerprints(output) == before
