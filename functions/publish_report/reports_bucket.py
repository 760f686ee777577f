"""The bucket of the reports, with conditional writes."""

from __future__ import annotations

from functools import cache
from typing import Any

from botocore.exceptions import ClientError

_REFUSALS = ("PreconditionFailed", "ConditionalRequestConflict")


@cache
def _s3() -> Any:
    import boto3

    return boto3.client("s3")


class Bucket:
    """The bucket of the reports; an object's entity tag is its version."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Returns an object and its entity tag, or None if it is missing."""
        try:
            found = _s3().get_object(Bucket=self._name, Key=name)
        except _s3().exceptions.NoSuchKey:
            return None
        return found["Body"].read(), found["ETag"]

    def put(self, name: str, content: bytes, version: str | None) -> bool:
        """Writes an object if its version is still this one; None: if it is missing."""
        held: dict[str, str] = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        try:
            _s3().put_object(Bucket=self._name, Key=name, Body=content, **held)
        except ClientError as error:
            if error.response["Error"]["Code"] in _REFUSALS:
                return False
            raise
        return True
