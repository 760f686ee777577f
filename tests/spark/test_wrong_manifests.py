"""What an export's manifests and checksums show is refused before Spark starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.job_runs import AT_MS, Jobs, assert_refused, data_files

from export_writer import ExportWriter, write_with_checksum

SUMMARY, LISTING = "manifest-summary.json", "manifest-files.json"
Damage = Callable[[Path], Path]
"""Damages an export. Returns the file that the refusal names."""


def summary(**changes: object) -> Damage:
    """Other values in the summary."""

    def damage(export: Path) -> Path:
        path = export / SUMMARY
        write_with_checksum(path, json.dumps(json.loads(path.read_text()) | changes))
        return path

    return damage


def entry(**changes: object) -> Damage:
    """Other values for the first data file of the listing."""

    def damage(export: Path) -> Path:
        path = export / LISTING
        first, *others = path.read_text().splitlines()
        write_with_checksum(path, "\n".join([json.dumps(json.loads(first) | changes), *others]))
        return path

    return damage


def manifest(name: str, text: str) -> Damage:
    """Another text of a manifest, with its checksum."""

    def damage(export: Path) -> Path:
        write_with_checksum(export / name, text)
        return export / name

    return damage


def longer(name: str) -> Damage:
    """A manifest with one more character than its checksum is of."""

    def damage(export: Path) -> Path:
        (export / name).write_text((export / name).read_text() + " ")
        return export / name

    return damage


def without_checksum(export: Path) -> Path:
    (export / "manifest-files.md5").unlink()
    return export / "manifest-files.md5"


def folder_for_checksum(export: Path) -> Path:
    without_checksum(export).mkdir()
    return export / "manifest-files.md5"


def without_data(export: Path) -> Path:
    missing = data_files(export)[1]
    missing.unlink()
    return missing


def folder_for_data(export: Path) -> Path:
    missing = without_data(export)
    missing.mkdir()
    return missing


def cut_data(export: Path) -> Path:
    damaged = data_files(export)[1]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    return damaged


def name_of_no_file(export: Path) -> Path:
    entry(dataFileS3Key=f"AWSDynamoDB/{'x' * 5_000}")(export)
    return export.parent / "xxx"


def case(name: str, damage: Damage, *words: str) -> Any:
    return pytest.param(damage, words, id=name)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        case("a wrong checksum of the summary", longer(SUMMARY), "wrong checksum"),
        case("a wrong checksum of the listing", longer(LISTING), "wrong checksum"),
        case("no checksum", without_checksum, "missing"),
        case("a folder in place of a checksum", folder_for_checksum),
        case("another format", summary(outputFormat="ION"), "ION"),
        case("another type", summary(exportType="SIDEWAYS_EXPORT"), "SIDEWAYS_EXPORT"),
        case("another total", summary(itemCount=61), "61", "60"),
        case("no data file", without_data, "missing"),
        case("a folder in place of a data file", folder_for_data, "missing"),
        case("a wrong checksum of a data file", cut_data, "wrong checksum"),
        case("a name that no file can have", name_of_no_file, "too long"),
        *[
            case(f"{name}: {text[:5]}", manifest(name, text), word)
            for name in (SUMMARY, LISTING)
            for text, word in (
                *(("{oops", "not"), ("[1]", "not"), ("17", "not"), ("[" * 100_000, "nested")),
            )
        ],
        *[
            case(f"{name} {value!r}", summary(**{name: value}), "not a manifest")
            for name, value in (
                ("itemCount", float("inf")),
                ("itemCount", 20.9),
                ("itemCount", "20"),
                ("itemCount", True),
                ("exportTime", "0001-01-01T00:00:00Z"),
                ("exportTime", "9999-12-31T23:59:59.999999Z"),
                ("exportTime", 17),
                ("tableArn", None),
            )
        ],
        *[
            case(f"{name} {value!r} of a file", entry(**{name: value}), ": line 1: not an entry")
            for name, value in (
                ("itemCount", 20.0),
                ("itemCount", -20),
                ("md5Checksum", []),
                ("dataFileS3Key", "AWSDynamoDB/a\0b"),
                ("dataFileS3Key", "AWSDynamoDB/\ud800"),
                ("dataFileS3Key", "AWSDynamoDB/../../data/1.json.gz"),
            )
        ],
    ],
)
def test_a_damaged_export_is_refused(
    usage_export: Path, jobs_without_spark: Jobs, damage: Damage, words: tuple[str, ...]
) -> None:
    named = damage(usage_export)
    ended = jobs_without_spark.bill(usage_export / "out", [usage_export])
    assert_refused(ended, str(named), *words)


@pytest.mark.parametrize(
    ("place", "shown"),
    [("AWSDynamoDB/1", "AWSDynamoDB/1"), ("a\nb", r"a\nb"), ("file", "file")],
    ids=["no folder", "a name of two lines", "a file"],
)
def test_a_folder_without_a_manifest_is_refused_in_one_line(
    tmp_path: Path, jobs_without_spark: Jobs, place: str, shown: str
) -> None:
    (tmp_path / "file").write_text("x")
    ended = jobs_without_spark.bill(tmp_path / "out", [tmp_path / place])
    assert_refused(ended, f"{tmp_path}/{shown}/manifest-summary.json", "missing")


def window_of(root: Path, table: str, since_ms: int, at_ms: int, **changes: object) -> Path:
    """An export of a window without changes."""
    writer = ExportWriter(root=root, table=table, at_ms=at_ms, since_ms=since_ms)
    writer.write_file([])
    return writer.finish(**changes)


@pytest.mark.parametrize(
    ("since_ms", "changes", "word"),
    [(AT_MS, {}, "window"), (AT_MS - 9, {"outputView": "SIDEWAYS"}, "SIDEWAYS")],
)
def test_a_window_without_length_or_of_an_unknown_view_is_refused(
    tmp_path: Path, jobs_without_spark: Jobs, since_ms: int, changes: dict[str, str], word: str
) -> None:
    window = window_of(tmp_path, "Usage", since_ms, AT_MS, **changes)
    ended = jobs_without_spark.bill(tmp_path / "out", [window])
    assert_refused(ended, f"{window}/manifest-summary.json", word)


def test_windows_without_a_full_export_or_with_a_gap_are_refused(
    tmp_path: Path, jobs_without_spark: Jobs, messages_export: Path
) -> None:
    window = window_of(tmp_path, "Messages", AT_MS + 400, AT_MS + 900)
    alone = jobs_without_spark.report_backlog(tmp_path / "out", [window])
    assert_refused(alone, str(window), "full")
    gap = jobs_without_spark.report_backlog(tmp_path / "out", [messages_export, window])
    assert_refused(gap, str(window), "2026-11-20T08:00:00.000Z", "2026-11-20T08:00:00.400Z")


def test_exports_of_different_tables_are_refused(
    tmp_path: Path, usage_export: Path, messages_export: Path, jobs_without_spark: Jobs
) -> None:
    ended = jobs_without_spark.bill(tmp_path / "out", [usage_export, messages_export])
    assert_refused(ended, "Messages, Usage")


def test_tables_of_one_name_in_two_accounts_are_two_tables(
    tmp_path: Path, jobs_without_spark: Jobs
) -> None:
    arns = [
        f"arn:aws:dynamodb:eu-central-1:{account}:table/Usage"
        for account in ("111111111111", "222222222222")
    ]
    windows = [
        window_of(tmp_path, "Usage", AT_MS - place, AT_MS, tableArn=arn)
        for place, arn in enumerate(arns, 1)
    ]
    ended = jobs_without_spark.bill(tmp_path / "out", windows)
    assert_refused(ended, "of different tables: ", *arns)
