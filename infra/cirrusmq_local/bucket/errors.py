"""Errors of the embedded S3, with S3's codes, texts and statuses."""

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
    """A call was refused; `code` is S3's."""

    def __init__(self, code: str, message: str, **told: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.told = told
        """Further members of S3's answer: the key, the bucket."""

    @property
    def status(self) -> int:
        """The status of the HTTP answer."""
        return STATUSES[self.code]
