"""Point-in-time exports: their records, and the layout that readers of Amazon's expect."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import threading
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.engine import Engine, EngineError, TableSpec, exported_files

DAY = 24 * 60 * 60


def md5(content: bytes) -> str:
    return b64encode(hashlib.md5(content).digest()).decode()


def manifest(export: Path) -> list[dict[str, Any]]:
    lines = (export / "manifest-files.json").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def records(export: Path, bucket: Path) -> list[dict[str, Any]]:
    """All records, by way of the manifest, as a reader of the export finds them."""
    found: list[dict[str, Any]] = []
    for entry in manifest(export):
        content = (bucket / entry["dataFileS3Key"]).read_bytes()
        assert md5(content) == entry["md5Checksum"]
        lines = gzip.decompress(content).splitlines()
        assert len(lines) == entry["itemCount"]
        found += [json.loads(line) for line in lines]
    return found


def by_sort_key(export: Path, bucket: Path) -> dict[str, tuple[Any, Any]]:
    """Old and new `n` of each changed item."""

    def n(image: dict[str, Any] | None) -> Any:
        return None if image is None else image["n"]["N"]

    return {
        record["Keys"]["sk"]["S"]: (n(record.get("OldImage")), n(record.get("NewImage")))
        for record in records(export, bucket)
    }


def test_a_full_export_holds_every_item_in_amazons_layout(stored: Any, tmp_path: Path) -> None:
    for number in range(3):
        stored.put({"pk": "p", "sk": str(number), "raw_": b"\xff"})
    export = stored.engine.export("Messages", tmp_path)
    assert export.parent == tmp_path / "AWSDynamoDB"
    assert sorted(path.name for path in export.iterdir()) == [
        "_started",
        "data",
        "manifest-files.json",
        "manifest-files.md5",
        "manifest-summary.json",
        "manifest-summary.md5",
    ]
    assert sorted(records(export, tmp_path), key=lambda record: record["Item"]["sk"]["S"]) == [
        {"Item": {"pk": {"S": "p"}, "sk": {"S": str(number)}, "raw_": {"B": "/w=="}}}
        for number in range(3)
    ]
    for name in ("manifest-files", "manifest-summary"):
        content = (export / f"{name}.json").read_bytes()
        assert (export / f"{name}.md5").read_text().strip() == md5(content)


def test_the_summary_names_the_export(stored: Any, tmp_path: Path, clock: Any) -> None:
    stored.put({"pk": "p", "sk": "1"})
    export = stored.engine.export("Messages", tmp_path)
    summary = json.loads((export / "manifest-summary.json").read_bytes())
    key = summary["manifestFilesS3Key"]
    assert (tmp_path / key).read_bytes() == (export / "manifest-files.json").read_bytes()
    assert export.name in summary["exportArn"]
    assert export.name.startswith(f"{clock():014d}-")
    assert summary["exportTime"] == "2027-01-15T08:00:00.000Z"
    assert (summary["itemCount"], summary["billedSizeBytes"]) == (1, 6)
    assert summary["outputFormat"] == "DYNAMODB_JSON"


def test_many_items_go_to_several_files(
    stored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported_files, "ITEMS_IN_A_FILE", 10)
    for number in range(25):
        stored.put({"pk": "p", "sk": f"{number:02d}"})
    export = stored.engine.export("Messages", tmp_path)
    assert [entry["itemCount"] for entry in manifest(export)] == [10, 10, 5]
    assert len(records(export, tmp_path)) == 25


def test_an_empty_table_is_an_empty_file(stored: Any, tmp_path: Path) -> None:
    export = stored.engine.export("Messages", tmp_path)
    assert [entry["itemCount"] for entry in manifest(export)] == [0]


def test_an_incremental_export_holds_one_final_state_for_each_item(
    stored: Any, tmp_path: Path, clock: Any
) -> None:
    stored.put({"pk": "p", "sk": "changed", "n": 1})
    stored.put({"pk": "p", "sk": "deleted", "n": 1})
    stored.put({"pk": "p", "sk": "untouched", "n": 1})
    clock.advance(seconds=60)
    since = clock()
    stored.put({"pk": "p", "sk": "inserted", "n": 2})
    stored.update("SET n = :v", sk="changed", values={"v": 2})
    clock.advance(seconds=60)
    stored.update("SET n = :v", sk="changed", values={"v": 3})
    stored.delete("deleted")
    stored.put({"pk": "p", "sk": "short", "n": 1})
    stored.delete("short")
    clock.advance(seconds=60)
    export = stored.engine.export("Messages", tmp_path, since_ms=since)
    assert by_sort_key(export, tmp_path) == {
        "inserted": (None, "2"),
        "changed": ("1", "3"),
        "deleted": ("1", None),
    }
    written = {
        record["Keys"]["sk"]["S"]: record["Metadata"]["WriteTimestampMicros"]["N"]
        for record in records(export, tmp_path)
    }
    assert written["changed"] == str((since + 60_000) * 1000)
    assert not (export / "data").exists()
    summary = json.loads((export / "manifest-summary.json").read_bytes())
    assert summary["exportType"] == "INCREMENTAL_EXPORT"
    assert summary["outputView"] == "NEW_AND_OLD_IMAGES"
    assert summary["exportToTime"] == "2027-01-15T08:03:00.000Z"


def test_consecutive_windows_hold_each_change_once(stored: Any, tmp_path: Path, clock: Any) -> None:
    start = clock()
    stored.put({"pk": "p", "sk": "1", "n": 1})
    clock.advance(seconds=60)
    border = clock()
    # At the border itself: outside the first window, inside the second.
    stored.put({"pk": "p", "sk": "1", "n": 2})
    stored.put({"pk": "p", "sk": "2", "n": 2})
    first = stored.engine.export("Messages", tmp_path / "first", since_ms=start)
    clock.advance(seconds=60)
    second = stored.engine.export("Messages", tmp_path / "second", since_ms=border)
    assert by_sort_key(first, tmp_path / "first") == {"1": (None, "1")}
    assert by_sort_key(second, tmp_path / "second") == {"1": ("1", "2"), "2": (None, "2")}


def test_a_write_under_way_is_waited_for(tmp_path: Path, clock: Any) -> None:
    """It has taken its time already: left out here, it would be in no later window either."""
    entered, release = threading.Event(), threading.Event()

    def slow_clock() -> int:
        now_ms = int(clock())
        if threading.current_thread().name == "slow":
            entered.set()
            release.wait()
        return now_ms

    engine = Engine(tmp_path / "engine.db", [TableSpec("Messages")], now_ms=slow_clock)
    item = {"pk": {"S": "p"}, "sk": {"S": "1"}, "n": {"N": "1"}}
    put = {"TableName": "Messages", "Item": item}
    exports: list[Path] = []
    since = clock()
    writer = threading.Thread(target=lambda: engine.execute("PutItem", put), name="slow")
    writer.start()
    entered.wait()
    clock.advance(seconds=60)
    exporter = threading.Thread(
        target=lambda: exports.append(engine.export("Messages", tmp_path, since_ms=since))
    )
    exporter.start()
    exporter.join(timeout=0.2)
    assert exporter.is_alive()
    release.set()
    writer.join()
    exporter.join()
    assert by_sort_key(exports[0], tmp_path) == {"1": (None, "1")}
    engine.close()


def test_a_table_without_a_stream_exports_its_changes_too(
    stored: Any, tmp_path: Path, clock: Any
) -> None:
    stored.execute(
        "PutItem",
        TableName="Directory",
        Item={"pk": {"S": "p"}, "sk": {"S": "1"}, "n": {"N": "1"}},
    )
    clock.advance(seconds=60)
    export = stored.engine.export("Directory", tmp_path, since_ms=clock() - 60_000)
    assert by_sort_key(export, tmp_path) == {"1": (None, "1")}


def test_a_trimmed_stream_does_not_shorten_the_exports(
    stored: Any, tmp_path: Path, clock: Any
) -> None:
    stored.put({"pk": "p", "sk": "1", "n": 1})
    clock.advance(seconds=DAY - 1)
    stored.engine.trim_stream("Messages", 1)
    export = stored.engine.export("Messages", tmp_path, since_ms=clock() - (DAY - 1) * 1000)
    assert by_sort_key(export, tmp_path) == {"1": (None, "1")}


def test_trimmed_changes_are_refused_not_left_out(stored: Any, tmp_path: Path, clock: Any) -> None:
    stored.put({"pk": "p", "sk": "1", "n": 1})
    since = clock()
    clock.advance(seconds=2 * DAY)
    stored.engine.trim_stream("Messages", 1)
    with pytest.raises(EngineError, match="InvalidExportTimeException"):
        stored.engine.export("Messages", tmp_path / "bucket", since_ms=since)
    assert not (tmp_path / "bucket").exists()
    export = stored.engine.export("Messages", tmp_path, since_ms=clock() - 1000)
    assert records(export, tmp_path) == []


def test_a_table_without_kept_changes_exports_only_in_full(tmp_path: Path, clock: Any) -> None:
    kept = TableSpec("Messages")
    not_kept = TableSpec("Messages", point_in_time_recovery=False)
    path = tmp_path / "engine.db"
    engine = Engine(path, [not_kept], now_ms=clock)
    engine.execute(
        "PutItem", {"TableName": "Messages", "Item": {"pk": {"S": "p"}, "sk": {"S": "1"}}}
    )
    with pytest.raises(EngineError, match="PointInTimeRecoveryUnavailableException"):
        engine.export("Messages", tmp_path / "bucket", since_ms=clock())
    assert len(records(engine.export("Messages", tmp_path / "bucket"), tmp_path / "bucket")) == 1
    engine.close()
    clock.advance(seconds=60)
    engine = Engine(path, [kept], now_ms=clock)
    with pytest.raises(EngineError, match="InvalidExportTimeException"):
        engine.export("Messages", tmp_path / "bucket", since_ms=clock() - 1)
    engine.export("Messages", tmp_path / "bucket", since_ms=clock())
    engine.close()


@pytest.mark.parametrize("incremental", [False, True])
def test_an_export_without_space_leaves_nothing(
    stored: Any, tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, incremental: bool
) -> None:
    """The disk is full at every write in turn, until it is large enough."""
    monkeypatch.setattr(exported_files, "ITEMS_IN_A_FILE", 2)
    for number in range(5):
        stored.put({"pk": "p", "sk": str(number)})
    bucket = tmp_path / "bucket"
    stored.engine.export("Messages", bucket)
    before = {path for path in bucket.rglob("*") if path.is_file()}
    since_ms = clock() if incremental else None
    clock.advance(seconds=1)
    written = room = 0

    def limited(write: Any) -> Any:
        def write_or_fail(*arguments: Any) -> Any:
            nonlocal written
            written += 1
            if written > room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(*arguments)

        return write_or_fail

    monkeypatch.setattr(gzip.GzipFile, "write", limited(gzip.GzipFile.write))
    monkeypatch.setattr(Path, "write_bytes", limited(Path.write_bytes))
    failures = 0
    while True:
        written = 0
        try:
            stored.engine.export("Messages", bucket, since_ms=since_ms)
        except OSError:
            failures += 1
            assert {path for path in bucket.rglob("*") if path.is_file()} == before
            room += 1
        else:
            break
    assert failures > 4
