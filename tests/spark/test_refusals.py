"""Bad input ends a job with exit code 2 and one line that names the file; nothing is replaced."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.job_runs import Ended, Jobs, fingerprints, page_in

from export_writer import ExportWriter, write_with_checksum
from synthetic_messages import Messages
from synthetic_usage import Usage

AT_MS = 1_795_161_600_000


@pytest.fixture
def usage_export(tmp_path: Path) -> Path:
    return Usage(seed=1, records=60, at_ms=AT_MS, items_in_a_file=30).export(tmp_path)


@pytest.fixture
def messages_export(tmp_path: Path) -> Path:
    return Messages(seed=1, items=60, at_ms=AT_MS, items_in_a_file=30).export(tmp_path)


def data_files(export: Path) -> list[Path]:
    return sorted((export / "data").iterdir())


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of a data file; its manifest follows with the new checksum."""
    path.write_bytes(gzip.compress("".join(change(lines_of(path))).encode(), mtime=0))
    correct_manifests(path.parents[1])


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


def correct_manifests(export: Path, **changes: Any) -> None:
    """Write the manifests of the data files as they are now, with the counts of before."""
    listed = (export / "manifest-files.json").read_text().splitlines()
    entries = [json.loads(line) for line in listed]
    writer = ExportWriter(root=export.parents[1], table="T", at_ms=AT_MS)
    for entry in entries:
        writer.list_file(writer.root / entry["dataFileS3Key"], entry["itemCount"])
    listing = "".join(json.dumps(entry) + "\n" for entry in writer._listed)
    write_with_checksum(export / "manifest-files.json", listing)
    summary = json.loads((export / "manifest-summary.json").read_text()) | changes
    write_with_checksum(export / "manifest-summary.json", json.dumps(summary))


def assert_refused(ended: Ended, name: str, *words: str) -> None:
    assert ended.code == 2
    for word in (name, *words):
        assert word in ended.message


# Before Spark starts: faults that the manifests and the checksums show.


def test_a_folder_without_a_manifest(tmp_path: Path, jobs_without_spark: Jobs) -> None:
    ended = jobs_without_spark.bill(tmp_path / "out", [tmp_path / "AWSDynamoDB/1"])
    assert_refused(ended, "AWSDynamoDB/1/manifest-summary.json", "missing")


@pytest.mark.parametrize("name", ["manifest-summary", "manifest-files"])
def test_a_manifest_with_a_wrong_checksum(
    usage_export: Path, jobs_without_spark: Jobs, name: str
) -> None:
    path = usage_export / f"{name}.json"
    path.write_text(path.read_text() + " ")
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(path), "wrong checksum")


def test_a_manifest_without_a_checksum(usage_export: Path, jobs_without_spark: Jobs) -> None:
    (usage_export / "manifest-files.md5").unlink()
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, "manifest-files.md5", "missing")


def test_the_ion_format(usage_export: Path, jobs_without_spark: Jobs) -> None:
    correct_manifests(usage_export, outputFormat="ION")
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(usage_export / "manifest-summary.json"), "ION")


def test_a_total_that_differs_from_the_listing(
    usage_export: Path, jobs_without_spark: Jobs
) -> None:
    correct_manifests(usage_export, itemCount=61)
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(usage_export / "manifest-summary.json"), "61", "60")


def test_a_missing_data_file(usage_export: Path, jobs_without_spark: Jobs) -> None:
    missing = data_files(usage_export)[1]
    missing.unlink()
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(missing), "missing")


def test_a_data_file_with_a_wrong_checksum(usage_export: Path, jobs_without_spark: Jobs) -> None:
    damaged = data_files(usage_export)[1]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(damaged), "wrong checksum")


def test_a_key_that_leads_out_of_the_export(usage_export: Path, jobs_without_spark: Jobs) -> None:
    listing = usage_export / "manifest-files.json"
    write_with_checksum(
        listing, listing.read_text().replace("AWSDynamoDB/", "AWSDynamoDB/../../", 1)
    )
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, f"{listing}: line 1")


def test_windows_without_a_full_export_or_with_a_gap(
    tmp_path: Path, jobs_without_spark: Jobs, messages_export: Path
) -> None:
    window = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS + 900, since_ms=AT_MS + 400)
    window.write_file([])
    alone = jobs_without_spark.report_backlog(tmp_path / "out", [window.finish()])
    assert_refused(alone, str(window.home), "full")
    gap = jobs_without_spark.report_backlog(tmp_path / "out", [messages_export, window.home])
    assert_refused(gap, str(window.home), "2026-11-20T08:00:00.000Z", "2026-11-20T08:00:00.400Z")


@pytest.mark.parametrize("text", ["{oops", "[1]", "17"])
@pytest.mark.parametrize("name", ["manifest-summary", "manifest-files"])
def test_a_manifest_that_is_no_json_object(
    usage_export: Path, jobs_without_spark: Jobs, name: str, text: str
) -> None:
    write_with_checksum(usage_export / f"{name}.json", text)
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(usage_export / f"{name}.json"), "not")


def test_an_unknown_type_of_export(usage_export: Path, jobs_without_spark: Jobs) -> None:
    correct_manifests(usage_export, exportType="SIDEWAYS_EXPORT")
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(usage_export / "manifest-summary.json"), "SIDEWAYS_EXPORT")


def test_files_and_folders_in_each_others_places(
    usage_export: Path, jobs_without_spark: Jobs
) -> None:
    data = data_files(usage_export)[0]
    inside = jobs_without_spark.bill(usage_export / "out", [data])
    assert_refused(inside, f"{data}/manifest-summary.json", "missing")
    data.unlink()
    data.mkdir()
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(data), "missing")


def test_exports_of_different_tables(
    tmp_path: Path, usage_export: Path, messages_export: Path, jobs_without_spark: Jobs
) -> None:
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export, messages_export])
    assert_refused(ended, "Messages, Usage")


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
    correct_manifests(usage_export)
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


def case(change: Any, *words: str) -> Any:
    """A fault, and what the job says of it."""
    return pytest.param(change, words, id=" ".join(words))


def long(change: Any, *words: str) -> Any:
    """One that is noticed as another is."""
    return pytest.param(change, words, id=" ".join(words), marks=pytest.mark.long)


def break_line(lines: list[str]) -> list[str]:
    return [*lines[:_LINE], lines[_LINE][:50] + "\n", *lines[_LINE + 1 :]]


def lose_line(lines: list[str]) -> list[str]:
    return lines[:-1]


def retype(attribute: str, kind: str) -> Callable[[list[str]], list[str]]:
    """Give an attribute of one item a type that no attribute has."""

    def change(lines: list[str]) -> list[str]:
        typed = f'"{attribute}":{{"{kind}":'
        place = next(
            place
            for place, line in enumerate(lines)
            if (typed in line and '"Q#' in line) or (typed in line and '"U#' in line)
        )
        lines[place] = lines[place].replace(typed, f'"{attribute}":{{"Q":', 1)
        return lines

    return change


def unnumber(lines: list[str]) -> list[str]:
    place = next(place for place, line in enumerate(lines) if '"Q#' in line)
    lines[place] = lines[place].replace('"v":{"L":[{"N":"', '"v":{"L":[{"N":"x', 1)
    return lines


def shorten_list(lines: list[str]) -> list[str]:
    place = next(place for place, line in enumerate(lines) if '"Q#' in line)
    lines[place] = lines[place].replace('"r":{"L":[', '"r":{"L":[{"N":"0"},', 1)
    return lines


def replace_line(text: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[:_LINE], text + "\n", *lines[_LINE + 1 :]]


def set_number(attribute: str, number: str) -> Callable[[list[str]], list[str]]:
    """Give every attribute of that name the same number."""
    pattern = re.compile(rf'"{attribute}":\{{"N":"[^"]*"')
    new = f'"{attribute}":{{"N":"{number}"'
    return lambda lines: [pattern.sub(new, line) for line in lines]


def set_account(value: str) -> Callable[[list[str]], list[str]]:
    typed = f'"account":{{"S":{value}}}'
    return lambda lines: [re.sub(r'"account":{"S":"\w+"}', lambda _: typed, line) for line in lines]


def single_quotes(lines: list[str]) -> list[str]:
    return [*lines[:_LINE], lines[_LINE].replace('"', "'"), *lines[_LINE + 1 :]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        case(break_line, "a line is not a record", ': record 8: {"Item":{"pk":{"S":"'),
        # `test_a_refusal_replaces_nothing` has the same in a folder of earlier reports.
        long(lose_line, "29 items", "30"),
        case(retype("v", "L"), "item Q#", "v is not of type L"),
        long(unnumber, "item Q#", "v is not a list of whole numbers"),
        long(replace_line("{}"), "a record has no Item"),
        long(replace_line('{"Item":{"pk":{"N":"1"},"sk":{"S":"x"}}}'), "pk or sk is not a string"),
        long(retype("t", "N"), "item Q#", "t is not of type N"),
        long(retype("pk", "S"), "pk"),
        long(shorten_list, "item Q#", "differ in length"),
    ],
)
def test_records_of_messages(
    tmp_path: Path,
    jobs: Jobs,
    messages_export: Path,
    change: Callable[[list[str]], list[str]],
    words: tuple[str, ...],
) -> None:
    bad = data_files(messages_export)[1]
    rewrite(bad, change)
    ended = jobs.report_backlog(tmp_path / "out", [messages_export])
    assert_refused(ended, str(bad), *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        case(single_quotes, "a line is not a record", ": record 8: {'Item':{'pk':{'S':'U#"),
        long(replace_line("null"), "a line is not a record"),
        case(replace_line('{"Item":null}'), "a record has no Item"),
        long(break_line, "a line is not a record"),
        long(lose_line, "29 items", "30"),
        long(replace_line("{}"), "a record has no Item"),
        long(replace_line('{"Item":{}}'), "pk or sk is not a string"),
    ],
)
def test_records_of_usage(
    tmp_path: Path,
    jobs: Jobs,
    usage_export: Path,
    change: Callable[[list[str]], list[str]],
    words: tuple[str, ...],
) -> None:
    bad = data_files(usage_export)[0]
    rewrite(bad, change)
    assert_refused(jobs.bill(tmp_path / "out", [usage_export]), str(bad), *words)


def resource_record(document: str, sk: str = '{"S":"q"}') -> str:
    return f'{{"Item":{{"pk":{{"S":"I#1"}},"sk":{sk},"document":{document}}}}}'


@pytest.mark.parametrize(
    ("record", "words"),
    [
        case("{}", "a record has no Item"),
        long(resource_record('{"S":"{}"}', '{"N":"1"}'), "pk or sk is not a string"),
        case(resource_record("null"), "item I#1 q: document is missing"),
        long(resource_record('{"S":"{oops"}'), "item I#1 q: document is not JSON with"),
        long('{"Item":{}}', "pk or sk is not a string"),
        long('{"Item":{"pk":{"N":"1"},"sk":{"S":"x"}}}', "pk or sk is not a string"),
        long(resource_record('{"N":"1"}'), "item I#1 q: document is not of type S"),
        long(
            resource_record('{"S":"{\\"account\\":5,\\"kind\\":\\"queue\\",\\"name\\":\\"n\\"}"}'),
            "item I#1 q: document is not JSON with",
        ),
    ],
)
def test_records_of_the_directory(
    tmp_path: Path, jobs: Jobs, messages_export: Path, record: str, words: tuple[str, ...]
) -> None:
    directory = ExportWriter(root=tmp_path, table="Directory", at_ms=AT_MS)
    sound = resource_record(json.dumps({"S": '{"account":"acme","kind":"queue","name":"n"}'}))
    directory.write_file([sound.replace('"q"', '"p"'), record])
    ended = jobs.report_backlog(tmp_path / "out", [messages_export], [directory.finish()])
    assert_refused(ended, str(data_files(directory.home)[0]), *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "metadata",
    ["null", pytest.param('{"WriteTimestampMicros":{"N":"x"}}', marks=pytest.mark.long)],
)
def test_a_change_without_the_time_of_its_writing(
    tmp_path: Path, jobs: Jobs, messages_export: Path, metadata: str
) -> None:
    window = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS + 9, since_ms=AT_MS)
    keys = '{"pk":{"S":"Q#q#0"},"sk":{"S":"1#p"}}'
    window.write_file([f'{{"Metadata":{metadata},"Keys":{keys},"OldImage":{keys}}}'])
    ended = jobs.report_backlog(tmp_path / "out", [messages_export, window.finish()])
    words = "item Q#q#0 1#p: WriteTimestampMicros is not a whole number"
    assert_refused(ended, str(data_files(window.data.parent)[0]), words)


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


def test_a_file_that_was_cut_before_its_checksum_was_made(
    tmp_path: Path, jobs: Jobs, usage_export: Path
) -> None:
    cut = data_files(usage_export)[1]
    cut.write_bytes(cut.read_bytes()[:-200])
    correct_manifests(usage_export)
    assert_refused(jobs.bill(tmp_path / "out", [usage_export]), str(cut), "gzip")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(b"", mtime=0), id="gzip of nothing"),
        pytest.param(b"{}", id="no gzip", marks=pytest.mark.long),
        pytest.param(b"", id="no bytes", marks=pytest.mark.long),
        pytest.param(gzip.compress(b"{}", mtime=0)[:-1], id="a cut gzip", marks=pytest.mark.long),
    ],
)
def test_a_data_file_that_holds_nothing(
    tmp_path: Path, jobs: Jobs, usage_export: Path, content: bytes
) -> None:
    empty = data_files(usage_export)[1]
    empty.write_bytes(content)
    correct_manifests(usage_export)
    assert_refused(jobs.bill(tmp_path / "out", [usage_export]), str(empty))


@pytest.mark.long
def test_numbers_too_large_to_add_up_are_set_aside(
    tmp_path: Path, jobs: Jobs, usage_export: Path
) -> None:
    rewrite(data_files(usage_export)[0], set_number("count", str(2**63 - 9)))
    rewrite(data_files(usage_export)[1], set_number("count", str(2**63 - 9)))
    ended = jobs.bill(tmp_path / "out", [usage_export])
    assert (ended.code, "are set aside: a number is too large" in ended.errors) == (0, True)


@pytest.mark.parametrize("attribute", [pytest.param("expires_at", marks=pytest.mark.long), "t"])
def test_a_time_too_large_to_count_with(
    tmp_path: Path, jobs: Jobs, messages_export: Path, attribute: str
) -> None:
    bad = data_files(messages_export)[1]
    rewrite(bad, set_number(attribute, str(-(2**63))))
    ended = jobs.report_backlog(tmp_path / "out", [messages_export])
    assert_refused(ended, str(bad), "item ", f"{attribute} is too large")


def test_counts_that_are_wrong_but_sum_up(tmp_path: Path, jobs: Jobs, usage_export: Path) -> None:
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
