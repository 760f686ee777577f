"""The bucket of the messages of large sends, on S3.

A call has three tries, which include reading the answer: the SDK's own would not repeat an answer
that breaks off. A client of S3 takes long to make, and most environments never need one, so it is
made at the first use.

    put    PutObject     the whole object; S3 answers when it is durable
    get    GetObject     with a Range for a part
    copy   CopyObject    in S3, nothing passes through here; up to 5 GB, far above what a send holds
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from cirrusmq.base.errors import Unavailable
from cirrusmq.wiring.adapters import awaited_config

T = TypeVar("T")

LONGEST_PAUSES_SECONDS = (0.2, 0.4)
"""Longest pause before the second and the third try (full jitter)."""
_MISSING = "NoSuchKey"
_BUSY = frozenset({"SlowDown", "RequestTimeout", "Throttling", "RequestLimitExceeded"})
_random = random.SystemRandom()


def make_s3(session: botocore.session.Session) -> Any:
    """Returns a new client of S3, as the service uses it."""
    return session.create_client("s3", config=awaited_config())


class Bucket:
    """Objects of one bucket; a port of the core, `cirrusmq.runtime.core`."""

    def __init__(
        self, make_client: Callable[[], Any], name: str, sleep: Callable[[float], None]
    ) -> None:
        self._make_client = make_client
        self._name = name
        self._sleep = sleep
        self._made: Any = None
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, also over an older one; it is durable when this returns."""
        self._try(lambda s3: s3.put_object(Bucket=self._name, Key=key, Body=data))

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Returns its bytes from `start` to before `end` or its end, or None without an object."""
        if end is not None and end <= start:
            # S3 has no range without a byte in it.
            return None if self.get(key, start, start + 1) is None else b""
        asked = {"Bucket": self._name, "Key": key}
        if start or end is not None:
            asked["Range"] = f"bytes={start}-{'' if end is None else end - 1}"

        def read(s3: Any) -> bytes:
            content: bytes = s3.get_object(**asked)["Body"].read()
            return content

        try:
            return self._try(read)
        except ClientError as error:
            if _code(error) == "InvalidRange":  # it begins behind the end
                return b""
            if _code(error) == _MISSING:
                return None
            raise

    def copy(self, source: str, key: str) -> bool:
        """Copies it to another key, or onto itself, which restarts its life. False if missing."""
        asked = {
            "Bucket": self._name,
            "Key": key,
            "CopySource": {"Bucket": self._name, "Key": source},
            # S3 refuses to copy an object onto itself unless something about it changes.
            "MetadataDirective": "REPLACE",
        }
        try:
            self._try(lambda s3: s3.copy_object(**asked))
        except ClientError as error:
            if _code(error) == _MISSING:
                return False
            raise
        return True

    def _try(self, call: Callable[[Any], T]) -> T:
        """Returns the call's answer; raises Unavailable if no try has one.

        An error of S3 that is not transient is raised as it is, and logged: a mistake of ours, or
        an object that is missing.
        """
        pauses = iter(LONGEST_PAUSES_SECONDS)
        while True:
            try:
                return call(self._client())
            except (BotoCoreError, ClientError) as error:
                if isinstance(error, ClientError) and not _is_transient(error):
                    raise
                longest = next(pauses, None)
                if longest is None:
                    raise Unavailable from error
            self._sleep(_random.random() * longest)

    def _client(self) -> Any:
        # Making one is not for several threads at once.
        with self._lock:
            if self._made is None:
                self._made = self._make_client()
            return self._made


def _is_transient(error: ClientError) -> bool:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or _code(error) in _BUSY


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
