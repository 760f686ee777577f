"""Writes exports in Amazon's layout, for tests and measurements. Not shipped with the jobs."""

from __future__ import annotations

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = "AWSDynamoDB"
FASTEST = 1


@dataclass(kw_only=True)
class ExportWriter:
    """One export under `root`, in place of the bucket.

    `since_ms` makes it an incremental one, for the window from there to `at_ms`. Data files are
    added one by one; `finish` writes the manifests and returns the export's own folder.
    """

    root: Path
    table: str
    at_ms: int
    since_ms: int | None = None
    checksum_suffix: str = ".md5"
    _listed: list[dict[str, Any]] = field(default_factory=list)

    @property
    def export_id(self) -> str:
        """14 digits of milliseconds, and eight digits that distinguish exports of one time."""
        name = f"{self.root}{self.table}{self.at_ms}{self.since_ms}"
        return f"{self.at_ms:014d}-{hashlib.md5(name.encode()).hexdigest()[:8]}"

    @property
    def home(self) -> Path:
        """The export's own folder."""
        return self.root / ROOT / self.export_id

    @property
    def data(self) -> Path:
        """The folder of its data files: incremental exports share one."""
        return self.home / "data" if self.since_ms is None else self.root / ROOT / "data"

    def write_file(self, lines: Sequence[str]) -> None:
        """Writes one data file of these records, each a line of JSON, and lists it."""
        content = gzip.compress("".join(f"{line}\n" for line in lines).encode(), FASTEST, mtime=0)
        self.data.mkdir(parents=True, exist_ok=True)
        path = self.data / f"{self.export_id[-8:]}{len(self._listed):018d}.json.gz"
        path.write_bytes(content)
        self.list_file(path, len(lines))

    def list_file(self, path: Path, items: int) -> None:
        """Lists a data file that exists already."""
        digest = hashlib.md5(path.read_bytes())
        self._listed.append(
            {
                "itemCount": items,
                "md5Checksum": b64encode(digest.digest()).decode(),
                "etag": f"{digest.hexdigest()}-1",
                "dataFileS3Key": path.relative_to(self.root).as_posix(),
            }
        )

    def write_files(self, records: Iterable[str], *, files: int) -> None:
        """Distributes the records over `files` data files, round robin."""
        dealt: list[list[str]] = [[] for _ in range(files)]
        for place, record in enumerate(records):
            dealt[place % files].append(record)
        for lines in dealt:
            self.write_file(lines)

    def finish(self, **changes: object) -> Path:
        """Writes the manifests. Returns the folder. `changes` replace entries of the summary."""
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "_started").touch()
        listing = "".join(json.dumps(entry) + "\n" for entry in self._listed)
        self._with_checksum("manifest-files", listing)
        self._with_checksum("manifest-summary", json.dumps(self._summary() | changes))
        return self.home

    def _with_checksum(self, name: str, text: str) -> None:
        write_with_checksum(self.home / f"{name}.json", text, self.checksum_suffix)

    def _summary(self) -> dict[str, object]:
        incremental = {
            "exportType": "INCREMENTAL_EXPORT",
            "exportFromTime": iso_time(self.since_ms or 0),
            "exportToTime": iso_time(self.at_ms),
            "outputView": "NEW_AND_OLD_IMAGES",
        }
        arn = f"arn:aws:dynamodb:eu-central-1:123456789012:table/{self.table}"
        return {
            "version": "2020-06-30" if self.since_ms is None else "2023-08-01",
            "exportArn": f"{arn}/export/{self.export_id}",
            "startTime": iso_time(self.at_ms),
            "endTime": iso_time(self.at_ms),
            "tableArn": arn,
            "tableId": hashlib.md5(self.table.encode()).hexdigest(),
            "exportTime": iso_time(self.at_ms),
            "s3Bucket": self.root.name,
            "s3Prefix": None,
            "s3SseAlgorithm": "AES256",
            "s3SseKmsKeyId": None,
            "manifestFilesS3Key": f"{ROOT}/{self.export_id}/manifest-files.json",
            "billedSizeBytes": 0,
            "itemCount": sum(entry["itemCount"] for entry in self._listed),
            "outputFormat": "DYNAMODB_JSON",
        } | ({} if self.since_ms is None else incremental)


def write_with_checksum(path: Path, text: str, suffix: str = ".md5") -> None:
    """Writes a manifest, and beside it the base64 text of its MD5 digest."""
    path.write_text(text)
    digest = hashlib.md5(text.encode()).digest()
    path.with_suffix(suffix).write_text(b64encode(digest).decode() + "\n")


def iso_time(at_ms: int) -> str:
    """Returns the time in the format of manifests."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
