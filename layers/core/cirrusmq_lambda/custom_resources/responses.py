"""The answer to CloudFormation: a JSON document, PUT to the signed URL of the request."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec
import urllib3

from cirrusmq.base.errors import InvalidParameter

REASON_CHARACTERS = 1_000
"""CloudFormation takes 4,096 bytes in all."""
ANSWER_SECONDS = 9.0
"""Kept back of the function's time for the answer: three tries with their pauses."""
_TRIES = urllib3.Retry(
    total=2, backoff_factor=0.25, status_forcelist=(500, 502, 503, 504), allowed_methods=["PUT"]
)
_TIMEOUT = urllib3.Timeout(connect=1.0, read=1.5)
_S3_HOST = re.compile(r"[a-z0-9][a-z0-9.-]*\.s3([.-][a-z0-9-]+)?\.amazonaws\.com(\.cn)?", re.ASCII)


def check_url(url: str) -> str:
    """The URL, if it is one of S3; InvalidParameter for any other, that nothing is sent there."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" or parts.username or not _S3_HOST.fullmatch(host):
        raise InvalidParameter("ResponseURL", "must be an https URL of a bucket of S3")
    return url


def send(url: str, answer: dict[str, Any]) -> None:
    """PUT an answer; raises urllib3's HTTPError where it is not taken in some tries."""
    with make_pool() as pool:
        taken = pool.request(
            "PUT",
            check_url(url),
            body=msgspec.json.encode(answer),
            # The signature is of a request without a type.
            headers={"content-type": ""},
            redirect=False,
            retries=_TRIES,
            timeout=_TIMEOUT,
        )
    if taken.status != 200:
        raise urllib3.exceptions.HTTPError(f"S3 answered {taken.status}")


def make_pool() -> urllib3.PoolManager:
    """Connections for one answer."""
    return urllib3.PoolManager(num_pools=1)
