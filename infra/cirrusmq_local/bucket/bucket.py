"""The operations of S3 on one bucket that the service uses."""

from __future__ import annotations

import errno
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from cirrusmq_local.bucket.errors import S3Error
from cirrusmq_local.bucket.lives import Rule, day_of, ends_ms
from cirrusmq_local.bucket.objects import (
    DamagedError,
    FolderObjects,
    Found,
    MemoryObjects,
    Objects,
)
from cirrusmq_local.bucket.ranges import UnsatisfiableError, read_range

_TO_ITSELF = (
    "This copy request is illegal because it is trying to copy an object to itself without changing"
    " the object's metadata, storage class, website redirect location or encryption attributes."
)


class Bucket:
    """Objects in a folder, or in memory if `folder` is None; for any number of threads.

    An object is gone when the first of `rules` expires it. `now_ms` is the only clock. If a file
    cannot be written or read, `on_failure` gets the error and the call fails.
    """

    def __init__(
        self,
        name: str,
        rules: Sequence[Rule],
        folder: Path | None,
        *,
        now_ms: Callable[[], int],
        on_failure: Callable[[OSError], None] = lambda error: None,
    ) -> None:
        """Raises OSError if the folder cannot be made or read."""
        self.name = name
        self._rules = rules
        self._now_ms = now_ms
        self._on_failure = on_failure
        self._objects: Objects = MemoryObjects() if folder is None else FolderObjects(folder)
        self._counted: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._sweep: Iterator[str] | None = None
        self._swept_day = -1

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does one operation. Request and answer are in the SDK's shapes, bodies as bytes.

        Raises S3Error.
        """
        run = {
            "PutObject": self._put,
            "GetObject": self._get,
            "CopyObject": self._copy,
        }.get(operation)
        if run is None:
            raise S3Error("NotImplemented", f"{operation} is not available on one machine")
        self._require(request["Bucket"])
        prefix, slash, rest = request["Key"].partition("/")
        if not (prefix and slash and rest):
            raise S3Error("NotImplemented", "A key without a prefix is not kept on one machine")
        with self._lock:
            self._counted[operation] += 1
        try:
            return run(request)
        except DamagedError as error:
            raise S3Error("InternalError", str(error)) from error
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise S3Error("KeyTooLongError", "Your key is too long") from error
            self._on_failure(error)
            raise S3Error("InternalError", f"The bucket failed: {error.strerror}") from error

    def requests(self) -> dict[str, int]:
        """Returns the number of calls by operation since the start, with refused ones."""
        with self._lock:
            return dict(self._counted)

    def keys(self) -> list[str]:
        """Returns the keys of all objects that have not expired."""
        return sorted(filter(self._find, self._objects.keys()))

    def remove_expired(self, limit: int = 1_000) -> int:
        """Checks some objects and removes expired ones. Returns the number of checked objects.

        Objects expire at midnight, so all are checked once a day, and once after the start. A
        result below `limit` means that all are checked. For one thread at a time. Raises OSError.
        """
        now_ms = self._now_ms()
        if self._sweep is None:
            if day_of(now_ms) == self._swept_day:
                return 0
            self._swept_day = day_of(now_ms)
            self._sweep = self._objects.keys()
        looked = 0
        for key in self._sweep:
            self._objects.remove_if(key, partial(self._is_over, key, now_ms))
            looked += 1
            if looked == limit:
                return looked
        self._sweep = None
        return looked

    def _put(self, request: Mapping[str, Any]) -> dict[str, Any]:
        found = self._objects.put(request["Key"], request["Body"], self._now_ms())
        return {"ETag": _etag(found)}

    def _get(self, request: Mapping[str, Any]) -> dict[str, Any]:
        found, data = self._read(request["Key"])
        answer = {
            "AcceptRanges": "bytes",
            "LastModified": _moment(found),
            "ETag": _etag(found),
            "ContentType": "binary/octet-stream",
            "Metadata": {},
        }
        try:
            part = read_range(request.get("Range"), found.size)
        except UnsatisfiableError:
            raise S3Error(
                "InvalidRange",
                "The requested range is not satisfiable",
                ActualObjectSize=str(found.size),
                RangeRequested=request["Range"],
            ) from None
        if part is not None:
            begin, end = part
            data = data[begin:end]
            answer["ContentRange"] = f"bytes {begin}-{end - 1}/{found.size}"
        return {**answer, "ContentLength": len(data), "Body": data}

    def _copy(self, request: Mapping[str, Any]) -> dict[str, Any]:
        source = request["CopySource"]
        self._require(source["Bucket"])
        _, data = self._read(source["Key"])
        if source["Key"] == request["Key"] and request.get("MetadataDirective") != "REPLACE":
            raise S3Error("InvalidRequest", _TO_ITSELF)
        found = self._objects.put(request["Key"], data, self._now_ms())
        return {"CopyObjectResult": {"ETag": _etag(found), "LastModified": _moment(found)}}

    def _read(self, key: str) -> tuple[Found, bytes]:
        held = self._objects.read(key)
        if held is None or self._is_over(key, self._now_ms(), held[0]):
            raise S3Error("NoSuchKey", "The specified key does not exist.", Key=key)
        return held

    def _find(self, key: str) -> Found | None:
        found = self._objects.find(key)
        return None if found is None or self._is_over(key, self._now_ms(), found) else found

    def _is_over(self, key: str, now_ms: int, found: Found) -> bool:
        ends = ends_ms(self._rules, key, found.written_ms)
        return ends is not None and ends <= now_ms

    def _require(self, name: str) -> None:
        if name != self.name:
            raise S3Error("NoSuchBucket", "The specified bucket does not exist", BucketName=name)


def _etag(found: Found) -> str:
    """Returns an opaque ETag, as S3 has for objects that a key of KMS encrypts."""
    return f'"{found.checksum:08x}{found.size:x}"'


def _moment(found: Found) -> datetime:
    """Returns the time of the write to the second, as in an HTTP header."""
    return datetime.fromtimestamp(found.written_ms // 1_000, UTC)
