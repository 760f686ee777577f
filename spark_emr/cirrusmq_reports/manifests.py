"""An export's manifests: its time, its kind, and its data files with their checksums.

```
<root>/[<prefix>/]AWSDynamoDB/<export>/manifest-summary.json   manifest-summary.md5 | .checksum
                                       manifest-files.json     manifest-files.md5   | .checksum
                                       data/*.json.gz          (full)
                              data/*.json.gz                   (incremental, shared)
```
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cirrusmq_reports import VERSION
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import Files
from cirrusmq_reports.times import iso_time, parse_moment

HOME = "AWSDynamoDB"
_INCREMENTAL = "INCREMENTAL_EXPORT"
_TYPES = (None, "FULL_EXPORT", _INCREMENTAL)
_VIEWS = (None, "NEW_AND_OLD_IMAGES", "NEW_IMAGE")
_CONTENT_DIGITS = 32
_CHECKSUM_SUFFIXES = (".md5", ".checksum")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of records, as the manifest lists it."""

    path: str
    items: int
    digest: str
    """MD5 in base64."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A finished export with valid manifests; its data files are not checked yet."""

    folder: str
    table: str
    """The ARN of the table."""
    table_id: str
    """Id of the table, other than a later table's of this name; the ARN in old manifests."""
    at_ms: int
    """Time of the exported state; for an incremental export, the end of its window."""
    since_ms: int | None
    """Start of its window; None for a full export."""
    files: tuple[DataFile, ...]
    size: int = 0
    """Bytes of its distinct files after they were checked."""

    @property
    def full(self) -> bool:
        """True if the export has all items, not only the changed ones."""
        return self.since_ms is None

    @property
    def content(self) -> str:
        """Digest of the content, for this release; it is equal for exports of equal content."""
        files = sorted((file.digest, file.items) for file in self.files)
        shown = [VERSION, self.table, self.table_id, self.at_ms, self.since_ms, files]
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:_CONTENT_DIGITS]

    @property
    def distinct_files(self) -> tuple[DataFile, ...]:
        """The files to read, without repeated files and copies."""
        return tuple({file.digest: file for file in reversed(self.files)}.values())[::-1]


def read_exports(files: Files, folders: Sequence[str]) -> list[Export]:
    """Returns the exports in these folders, oldest first; a repeated one once.

    Raises BadInput if a manifest is missing, damaged, or of an unknown format.
    """
    exports = {folder: _read_export(files, folder) for folder in map(_trimmed, folders)}
    return sorted(exports.values(), key=lambda export: (export.at_ms, not export.full))


def check_one_table(exports: Iterable[Export]) -> None:
    """Raises BadInput if the exports are of different tables."""
    tables = {export.table for export in exports}
    if len(tables) > 1:
        names = {table.rpartition("/")[2] for table in tables}
        shown = sorted(names if len(names) == len(tables) else tables)
        raise BadInput(f"the exports are of different tables: {', '.join(shown)}")


def check_data_files(files: Files, exports: Sequence[Export]) -> list[Export]:
    """Checks each data file once. Returns the exports with their sizes.

    Raises BadInput if a data file is missing or differs from the manifest.
    """
    expected = {file.path: file.digest for export in exports for file in export.files}
    try:
        actual = files.facts(expected)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise BadInput(
            f"{error.filename}: the manifest lists this data file, but it is missing"
        ) from None
    for path, digest in expected.items():
        found = actual[path].digest
        if found != digest:
            raise BadInput(f"{path}: wrong checksum: {found}, the manifest has {digest}")
    return [
        replace(export, size=sum(actual[file.path].size for file in export.distinct_files))
        for export in exports
    ]


def check_no_gap(stretches: Iterable[tuple[int, Export]]) -> None:
    """Raises BadInput if there is a time between two exports that none of them shows.

    Each export is paired with the first time whose writes it shows, up to its own time.
    """
    ordered = sorted(stretches, key=lambda stretch: stretch[0])
    covered_ms = ordered[0][0]
    for since_ms, export in ordered:
        if since_ms > covered_ms:
            raise BadInput(
                f"{export.folder}: no export shows the changes from {iso_time(covered_ms)} "
                f"to {iso_time(since_ms)}"
            )
        covered_ms = max(covered_ms, export.at_ms)


def _trimmed(folder: str) -> str:
    return folder.rstrip("/").removesuffix("/manifest-summary.json")


def _read_export(files: Files, folder: str) -> Export:
    path = f"{folder}/manifest-summary.json"
    summary = _parse(path, _read_checked(files, path))
    if summary.get("outputFormat") != "DYNAMODB_JSON":
        raise BadInput(
            f"{path}: the export's format is {summary.get('outputFormat')}, not DYNAMODB_JSON"
        )
    if summary.get("exportType") not in _TYPES:
        raise BadInput(f"{path}: the export's type is {summary['exportType']}: not known")
    incremental = summary.get("exportType") == _INCREMENTAL
    if summary.get("outputView") not in _VIEWS:
        raise BadInput(f"{path}: the export's view is {summary['outputView']}: not known")
    try:
        export = Export(
            folder=folder,
            table=_text(summary, "tableArn"),
            table_id=_text(summary, "tableId" if summary.get("tableId") else "tableArn"),
            at_ms=_time(summary, "exportToTime" if incremental else "exportTime"),
            since_ms=_time(summary, "exportFromTime") if incremental else None,
            files=tuple(_read_listing(files, folder, summary.get("s3Prefix"))),
        )
        total = _count(summary, "itemCount")
    except ValueError as error:
        raise BadInput(f"{path}: not a manifest: {error}") from None
    if export.since_ms is not None and export.since_ms >= export.at_ms:
        raise BadInput(f"{path}: its window ends before it begins")
    # A repeated line of the listing may or may not be in the summary's total.
    listed = sum(file.items for file in export.files)
    distinct = sum(file.items for file in export.distinct_files)
    if total not in (listed, distinct):
        raise BadInput(f"{path}: it counts {total} items, manifest-files.json {listed}")
    return export


def _read_listing(files: Files, folder: str, prefix: object) -> Iterable[DataFile]:
    path = f"{folder}/manifest-files.json"
    root, home, _ = f"{folder}/".rpartition(f"/{HOME}/")
    if not home:
        raise BadInput(f"{folder}: not the folder of an export: it is not inside {HOME}/")
    for number, line in enumerate(_read_checked(files, path).splitlines(), 1):
        if not line.strip():
            continue
        entry = _parse(f"{path}: line {number}", line)
        try:
            inside = _inside(_text(entry, "dataFileS3Key"), prefix)
            items, digest = _count(entry, "itemCount"), _text(entry, "md5Checksum")
        except ValueError as error:
            raise BadInput(f"{path}: line {number}: not an entry: {error}") from None
        yield DataFile(f"{root}/{inside}", items, digest)


def _inside(key: str, prefix: object) -> str:
    """Returns a key's part from AWSDynamoDB on: the export may have been copied elsewhere."""
    inside = key.removeprefix(f"{prefix.rstrip('/')}/") if isinstance(prefix, str) else key
    parts = inside.split("/")
    if parts[0] != HOME or ".." in parts or "\0" in key:
        raise ValueError(f"{key} is not in the export")
    return inside


def _text(entry: Mapping[str, Any], name: str) -> str:
    """Returns a text. Raises ValueError if it is missing, no text, or cannot be encoded."""
    value = entry.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is missing or not a text")
    value.encode()
    return value


def _count(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is missing or not a count")
    return value


def _time(entry: Mapping[str, Any], name: str) -> int:
    return parse_moment(_text(entry, name))


def _read_checked(files: Files, path: str) -> bytes:
    """Returns a manifest after a check against the checksum beside it."""
    try:
        content = files.read(path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise BadInput(f"{path}: missing: no finished export is in this folder") from None
    digest = b64encode(hashlib.md5(content, usedforsecurity=False).digest())
    if digest != _read_checksum(files, path.removesuffix(".json")):
        raise BadInput(f"{path}: wrong checksum: the file's is {digest.decode()}")
    return content


def _read_checksum(files: Files, stem: str) -> bytes:
    for suffix in _CHECKSUM_SUFFIXES:
        try:
            return files.read(stem + suffix).strip()
        except FileNotFoundError:
            continue
    raise BadInput(f"{stem}.md5: missing, and so is {stem}.checksum")


def _parse(where: str, text: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise BadInput(f"{where}: not JSON: {error}") from None
    except RecursionError:
        raise BadInput(f"{where}: not JSON of a manifest: nested too deep") from None
    if not isinstance(parsed, dict):
        raise BadInput(f"{where}: not a JSON object")
    return parsed
