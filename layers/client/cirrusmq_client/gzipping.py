"""Large requests, gzipped: what the service could not take as it is."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from cirrusmq_client.errors import RequestTooLarge

GZIPPED_FROM = 3_100_000
"""Bytes of a request from which it is gzipped: on its way it may become twice as long, by escapes,
and a Lambda function takes 6,291,556."""
MOST_BYTES = 4_700_000
"""Of a gzipped request: as base64 it is what a Lambda function takes."""
HEADERS: Mapping[str, str] = {
    # The gateway hands text types over as text, which gzipped bytes are not.
    "content-type": "application/octet-stream",
    "content-encoding": "gzip",
}
_GZIP_WINDOW_BITS = 31
_FAST, _THOROUGH = 1, 6


def gzipped(content: bytes) -> bytes:
    """A request, gzipped fast, or thoroughly where only that makes it small enough.

    RequestTooLarge where nothing does.
    """
    size = 0
    for level in (_FAST, _THOROUGH):
        compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        compressed = compressor.compress(content) + compressor.flush()
        size = len(compressed)
        if size <= MOST_BYTES:
            return compressed
    raise RequestTooLarge(
        f"gzipped, the request has {size:,} bytes; the service takes at most {MOST_BYTES:,}",
        status=413,
    )
