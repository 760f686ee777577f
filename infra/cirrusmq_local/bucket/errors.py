"""Errors of the embedded S3: code, text and status as S3 answers them."""

from __future__ import annotations

STATUSES = {
    "AccessDenied": 403,
    "InternalError": 500,
    "InvalidRange": 416,
    "InvalidRequest": 400,
    "KeyTooLongError": 400,
    "NoSuchBucket": 404,
    "NoSuchKey": 404,
    "NotImplemented": 501,
}


class S3Error(Exception):
    """A call was refused; S3 answers the code."""

    def __init__(self, code: str, message: str, **told: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.told = told
        """What S3 says besides: the key, the bucket."""

    @property
    def status(self) -> int:
        """The status of the HTTP answer."""
        return STATUSES[self.code]
