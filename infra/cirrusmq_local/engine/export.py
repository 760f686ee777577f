"""Point-in-time exports in Amazon's layout: all items, or the changes within a window."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.description import table_id
from cirrusmq_local.engine.errors import EngineError
from cirrusmq_local.engine.exported_files import DataFiles, write_with_checksum
from cirrusmq_local.engine.keys import key_attributes
from cirrusmq_local.engine.schema import NEVER_KEPT, Table
from cirrusmq_local.engine.timestamps import iso_time
from cirrusmq_local.engine.values import item_size
from cirrusmq_local.engine.wire import Item, decode_item

ROOT = "AWSDynamoDB"


@dataclass(frozen=True, slots=True)
class _Window:
    """From `since_ms` (inclusive) to `to_ms` (exclusive)."""

    since_ms: int
    to_ms: int


def export_table(core: Core, table: Table, folder: Path, *, since_ms: int | None) -> Path:
    """Writes an export under `folder`, in place of the bucket. Returns the export's own folder.

    If it fails, as with OSError on a full disk, no file of it is left.
    """
    # The time is taken in a commit, not from the clock: otherwise a write with an earlier time
    # that is not committed yet would be in no window, neither in this one nor in the next.
    now_ms = core.store.write(lambda transaction: transaction.now_ms)
    export_id = f"{now_ms:014d}-{secrets.token_hex(4)}"
    home = folder / ROOT / export_id
    # Incremental exports of a bucket share one folder of data; a full one has its own.
    data = home / "data" if since_ms is None else folder / ROOT / "data"
    files = DataFiles(folder, data)
    try:
        with core.store.snapshot() as connection:
            if since_ms is None:
                records = _items(connection, table)
            else:
                window = _Window(since_ms, now_ms)
                _check_window(connection, table, window)
                records = _changes(connection, table, window)
            home.mkdir(parents=True)
            (home / "_started").touch()
            with files:
                for record, size in records:
                    files.add(record, size)
        manifest = home / "manifest-files.json"
        write_with_checksum(manifest, files.manifest())
        summary = _summary(core, table, export_id, now_ms, since_ms) | {
            "s3Bucket": folder.name,
            "s3Prefix": None,
            "manifestFilesS3Key": manifest.relative_to(folder).as_posix(),
            "billedSizeBytes": files.bytes_exported,
            "itemCount": files.items_exported,
        }
        write_with_checksum(home / "manifest-summary.json", msgspec.json.encode(summary))
    except BaseException:
        files.discard()
        shutil.rmtree(home, ignore_errors=True)
        raise
    return home


def _items(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[dict[str, Any], int]]:
    for size, data in connection.execute(f"SELECT size, item FROM {table.items}"):
        yield {"Item": decode_item(data)}, size


def _changes(
    connection: sqlite3.Connection, table: Table, window: _Window
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields the first old and the last new image of each item that changed in the window.

    The state at the window's end is the image that the item's next change replaced, or the image
    in the table if there is no later change::

        since            to        now
        | change  change |  change |
        ^ old image      ^ the old image of this change
    """
    keys = connection.execute(
        f"SELECT pk, sk, MIN(sequence), MAX(at_ms) FROM {table.changes} "
        "WHERE at_ms >= ? AND at_ms < ? GROUP BY pk, sk",
        (window.since_ms, window.to_ms),
    )
    later = _first_changes_from(connection, table, window.to_ms)
    for pk, sk, first, last_ms in keys:
        old = _replaced(connection, table, first)
        new = (
            _replaced(connection, table, later[pk, sk])
            if (pk, sk) in later
            else _standing(connection, table, (pk, sk))
        )
        if old is None and new is None:
            continue
        yield _record(table, old, new, last_ms)


def _first_changes_from(
    connection: sqlite3.Connection, table: Table, from_ms: int
) -> dict[tuple[Any, Any], int]:
    """Returns, by key, the sequence of the first change from then on: few, during the export."""
    rows = connection.execute(
        f"SELECT pk, sk, MIN(sequence) FROM {table.changes} WHERE at_ms >= ? GROUP BY pk, sk",
        (from_ms,),
    )
    return {(pk, sk): sequence for pk, sk, sequence in rows}


def _replaced(connection: sqlite3.Connection, table: Table, sequence: int) -> bytes | None:
    """Returns the image that a change replaced."""
    (old,) = connection.execute(
        f"SELECT old FROM {table.changes} WHERE sequence = ?", (sequence,)
    ).fetchone()
    image: bytes | None = old
    return image


def _standing(connection: sqlite3.Connection, table: Table, key: tuple[Any, Any]) -> bytes | None:
    """Returns the image in the table, or None if the item is gone."""
    row = connection.execute(table.select, key).fetchone()
    return None if row is None else row[1]


def _record(
    table: Table, old: bytes | None, new: bytes | None, last_ms: int
) -> tuple[dict[str, Any], int]:
    images: dict[str, Item] = {}
    if old is not None:
        images["OldImage"] = decode_item(old)
    if new is not None:
        images["NewImage"] = decode_item(new)
    keys = key_attributes(table.spec, next(iter(images.values())))
    metadata = {"WriteTimestampMicros": {"N": str(last_ms * 1000)}}
    size = sum(map(item_size, images.values()))
    return {"Metadata": metadata, "Keys": keys, **images}, size


def _check_window(connection: sqlite3.Connection, table: Table, window: _Window) -> None:
    (kept_since_ms,) = connection.execute(
        "SELECT kept_since_ms FROM tables WHERE name = ?", (table.spec.name,)
    ).fetchone()
    if kept_since_ms == NEVER_KEPT:
        raise EngineError(
            "PointInTimeRecoveryUnavailableException",
            f"Point in time recovery is not enabled for table '{table.spec.name}'",
        )
    if window.since_ms < kept_since_ms or window.since_ms > window.to_ms:
        raise EngineError(
            "InvalidExportTimeException",
            f"Changes of {table.spec.name} are kept from {iso_time(kept_since_ms)} to "
            f"{iso_time(window.to_ms)}",
        )


def _summary(
    core: Core, table: Table, export_id: str, now_ms: int, since_ms: int | None
) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "version": "2020-06-30",
        "exportArn": f"{table.spec.arn}/export/{export_id}",
        "startTime": iso_time(now_ms),
        "endTime": iso_time(now_ms),
        "tableArn": table.spec.arn,
        "tableId": table_id(core, table.spec),
        "exportTime": iso_time(now_ms),
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "outputFormat": "DYNAMODB_JSON",
    }
    if since_ms is None:
        return summary
    return summary | {
        "version": "2023-08-01",
        "exportType": "INCREMENTAL_EXPORT",
        "exportFromTime": iso_time(since_ms),
        "exportToTime": iso_time(now_ms),
        "outputView": "NEW_AND_OLD_IMAGES",
    }
