"""Gzips large requests, which the service could not take otherwise."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from cirrusmq_client.errors import RequestTooLarge

GZIPPED_FROM = 3_100_000
"""Bytes of a request from which it is gzipped: escapes may double it on its way, and a Lambda
function takes 6,291,556."""
MAX_BYTES = 4_700_000
"""Maximum bytes of a gzipped request, which a Lambda function takes as base64."""
HEADERS: Mapping[str, str] = {
    # The gateway passes text types on as text, which gzipped bytes are not.
    "content-type": "application/octet-stream",
    "content-encoding": "gzip",
}
_GZIP_WINDOW_BITS = 31
_FAST, _THOROUGH = 1, 6


def gzipped(content: bytes) -> bytes:
    """Returns a request gzipped fast, or thoroughly if only that makes it small enough.

    Raises RequestTooLarge if neither does.
    """
    size = 0
    for level in (_FAST, _THOROUGH):
        compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        compressed = compressor.compress(content) + compressor.flush()
        size = len(compressed)
        if size <= MAX_BYTES:
            return compressed
    raise RequestTooLarge(
        f"gzipped, the request has {size:,} bytes; the service takes at most {MAX_BYTES:,}",
        status=413,
    )
