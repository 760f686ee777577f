"""Sends the answer to CloudFormation: a JSON document, by PUT to the request's signed URL."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec
import urllib3

from cirrusmq.base.errors import InvalidParameter

REASON_CHARACTERS = 1_000
"""Maximum length of the reason; CloudFormation takes 4,096 bytes in total."""
ANSWER_SECONDS = 9.0
"""Part of the function's time that is reserved for the answer: three tries with pauses."""
_TRIES = urllib3.Retry(
    total=2, backoff_factor=0.25, status_forcelist=(500, 502, 503, 504), allowed_methods=["PUT"]
)
_TIMEOUT = urllib3.Timeout(connect=1.0, read=1.5)
_S3_HOST = re.compile(r"[a-z0-9][a-z0-9.-]*\.s3([.-][a-z0-9-]+)?\.amazonaws\.com(\.cn)?", re.ASCII)


def check_url(url: str) -> str:
    """Returns the URL if it is one of S3. Raises InvalidParameter, so that no other gets data."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" or parts.username or not _S3_HOST.fullmatch(host):
        raise InvalidParameter("ResponseURL", "must be an https URL of a bucket of S3")
    return url


def send(url: str, answer: dict[str, Any]) -> None:
    """Sends an answer by PUT. Raises urllib3's HTTPError if three tries fail."""
    with make_pool() as pool:
        taken = pool.request(
            "PUT",
            check_url(url),
            body=msgspec.json.encode(answer),
            # The URL's signature covers a request without a content type.
            headers={"content-type": ""},
            redirect=False,
            retries=_TRIES,
            timeout=_TIMEOUT,
        )
    if taken.status != 200:
        raise urllib3.exceptions.HTTPError(f"S3 answered {taken.status}")


def make_pool() -> urllib3.PoolManager:
    """Returns a pool of connections for one answer."""
    return urllib3.PoolManager(num_pools=1)
