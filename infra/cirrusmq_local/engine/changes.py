"""The change stream: reads, waits and trims, and the readers' positions."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.keys import key_attributes
from cirrusmq_local.engine.schema import NEVER_KEPT, Table
from cirrusmq_local.engine.store import Transaction
from cirrusmq_local.engine.tables import TableSpec
from cirrusmq_local.engine.values import item_size
from cirrusmq_local.engine.wire import Item, decode_item

# The longest window of an incremental export.
CHANGES_KEPT_MS = 24 * 60 * 60 * 1000
# So that clearing up after a long pause does not hold up the writers.
CHANGES_FORGOTTEN_AT_ONCE = 2000
SERVICE_IDENTITY = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


class StreamRecord:
    """One change of one item; images and keys in wire shape, binary as bytes.

    Images are decoded on first use: most readers want few of a stream's records.
    """

    def __init__(
        self,
        spec: TableSpec,
        folder_id: str,
        sequence: int,
        at_ms: int,
        by_service: int,
        old: bytes | None,
        new: bytes | None,
    ) -> None:
        """`old` and `new`: the images as they are stored."""
        self.spec = spec
        self._folder_id = folder_id
        self.sequence = sequence
        self.approximate_creation_ms = at_ms
        self.event_name = "REMOVE" if new is None else "INSERT" if old is None else "MODIFY"
        self.user_identity = SERVICE_IDENTITY if by_service else None
        self._old = old
        self._new = new
        self._images: tuple[Item | None, Item | None] | None = None

    @property
    def stored(self) -> tuple[bytes | None, bytes | None]:
        """The images before and after the change, as they are stored."""
        return self._old, self._new

    @property
    def old_image(self) -> Item | None:
        """The item before the change, or None."""
        return self._decoded()[0]

    @property
    def new_image(self) -> Item | None:
        """The item after the change, or None."""
        return self._decoded()[1]

    @property
    def keys(self) -> Item:
        """The item's key attributes."""
        old, new = self._decoded()
        return key_attributes(self.spec, new or old or {})

    def _decoded(self) -> tuple[Item | None, Item | None]:
        if self._images is None:
            old, new = self._old, self._new
            self._images = _decode(old), _decode(new)
        return self._images

    def as_lambda_record(self) -> dict[str, Any]:
        """Returns the record as in an event of DynamoDB Streams: JSON, binary in base64."""
        images = {"Keys": self.keys, "NewImage": self.new_image, "OldImage": self.old_image}
        shown = {name: image for name, image in images.items() if image is not None}
        # A new folder counts from 1 again, and usage is billed by these ids.
        identity = f"{self._folder_id}{self.spec.arn}/{self.sequence}".encode()
        record: dict[str, Any] = {
            "eventID": hashlib.sha256(identity).hexdigest()[:32],
            "eventName": self.event_name,
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "local",
            "dynamodb": {
                "ApproximateCreationDateTime": self.approximate_creation_ms // 1000,
                **msgspec.to_builtins(shown),
                "SequenceNumber": str(self.sequence),
                "SizeBytes": sum(map(item_size, shown.values())),
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
            "eventSourceARN": f"{self.spec.arn}/stream/local",
        }
        if self.user_identity is not None:
            record["userIdentity"] = dict(self.user_identity)
        return record


def _decode(image: bytes | None) -> Item | None:
    return None if image is None else decode_item(image)


class StreamClock:
    """The newest change of each table, and a way to wait for a newer one."""

    def __init__(self, *, keep_ends: bool = False) -> None:
        """keep_ends: note where each commit ends, in memory."""
        self._changed = threading.Condition()
        self._newest: dict[str, int] = {}
        self._keep_ends = keep_ends
        self.ends: dict[str, list[int]] = {}
        """Table -> the last sequence of each commit, if these are kept."""

    def advance(self, sequences: Mapping[str, int]) -> None:
        """Takes the last sequences of a commit, and wakes all waiters."""
        with self._changed:
            self._newest.update(sequences)
            if self._keep_ends:
                for name, sequence in sequences.items():
                    self.ends.setdefault(name, []).append(sequence)
            self._changed.notify_all()

    def go_back(self, newest: Mapping[str, int]) -> None:
        """Forgets what came behind some sequences."""
        with self._changed:
            self._newest = dict(newest)
            for name, ends in self.ends.items():
                while ends and ends[-1] > newest.get(name, 0):
                    ends.pop()

    def newest(self, table: str) -> int:
        """Returns the sequence of the last change, or 0 if there is none."""
        with self._changed:
            return self._newest.get(table, 0)

    def all(self) -> dict[str, int]:
        """Returns the sequence of the last change of each table."""
        with self._changed:
            return dict(self._newest)

    def wait(self, table: str, after: int, timeout_seconds: float) -> bool:
        """Waits for a change behind `after`. Returns False if none came in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._newest.get(table, 0) > after, timeout_seconds
            )


def read_stream(core: Core, table: Table, after: int, limit: int) -> list[StreamRecord]:
    """Returns the first `limit` changes behind `after` that are not trimmed, in order."""
    sql = (
        f"SELECT sequence, at_ms, by_service, old, new FROM {table.changes} WHERE sequence > "
        "MAX(?, (SELECT trimmed FROM tables WHERE name = ?)) ORDER BY sequence LIMIT ?"
    )
    with core.store.reading() as connection:
        rows = connection.execute(sql, (after, table.spec.name, limit)).fetchall()
    return [StreamRecord(table.spec, core.folder_id, *row) for row in rows]


def trim_stream(core: Core, table: Table, up_to: int) -> None:
    """Trims the changes up to a sequence; for exports they stay on disk for a day."""

    def job(transaction: Transaction) -> None:
        transaction.connection.execute(
            "UPDATE tables SET trimmed = MAX(trimmed, ?) WHERE name = ?", (up_to, table.spec.name)
        )
        forget_changes(transaction, table)

    core.store.write(job)


def forget_changes(transaction: Transaction, table: Table) -> None:
    """Deletes some of the changes that no stream reader and no export needs."""
    spec, connection = table.spec, transaction.connection
    (trimmed,) = connection.execute(
        "SELECT trimmed FROM tables WHERE name = ?", (spec.name,)
    ).fetchone()
    kept_ms = CHANGES_KEPT_MS if spec.point_in_time_recovery else 0
    before_ms = transaction.now_ms - kept_ms
    oldest = connection.execute(
        f"SELECT at_ms FROM {table.changes} ORDER BY sequence LIMIT 1"
    ).fetchone()
    if oldest is None or oldest[0] > before_ms:
        return
    deleted = connection.execute(
        f"DELETE FROM {table.changes} WHERE at_ms <= ? AND sequence IN "
        f"(SELECT sequence FROM {table.changes} WHERE sequence <= ? ORDER BY sequence LIMIT ?)",
        (before_ms, trimmed if spec.stream else 2**62, CHANGES_FORGOTTEN_AT_ONCE),
    ).rowcount
    if deleted:
        connection.execute(
            "UPDATE tables SET kept_since_ms = MAX(kept_since_ms, ?) WHERE name = ?",
            (before_ms + 1, spec.name),
        )


def save_position(core: Core, reader: str, position: int) -> None:
    """Stores a reader's position durably."""

    def job(transaction: Transaction) -> None:
        transaction.connection.execute(
            "INSERT OR REPLACE INTO positions (reader, position) VALUES (?, ?)",
            (reader, position),
        )

    core.store.write(job)


def load_position(core: Core, reader: str) -> int:
    """Returns a reader's position, or 0 if none is stored."""
    with core.store.reading() as connection:
        row = connection.execute(
            "SELECT position FROM positions WHERE reader = ?", (reader,)
        ).fetchone()
    return 0 if row is None else int(row[0])


def newest_sequence(core: Core, table: Table) -> int:
    """Returns the sequence of the last change ever made to a table."""
    with core.store.reading() as connection:
        row = connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", (table.sequence_name,)
        ).fetchone()
    return 0 if row is None else int(row[0])


def newest_write_ms(core: Core) -> int:
    """Returns the time of the last kept change of any table, or 0 if there is none."""
    newest_ms = 0
    with core.store.reading() as connection:
        for table in core.tables.values():
            row = connection.execute(
                f"SELECT at_ms FROM {table.changes} ORDER BY sequence DESC LIMIT 1"
            ).fetchone()
            # Older ones than these were forgotten.
            (kept_since_ms,) = connection.execute(
                "SELECT kept_since_ms FROM tables WHERE name = ?", (table.spec.name,)
            ).fetchone()
            forgotten_ms = 0 if kept_since_ms == NEVER_KEPT else kept_since_ms
            newest_ms = max(newest_ms, row[0] if row else 0, forgotten_ms)
    return newest_ms
