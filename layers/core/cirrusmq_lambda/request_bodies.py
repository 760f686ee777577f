"""Reads the body of a request as bytes of JSON, inflated if it was gzipped.

An HTTP API passes bodies of text types, such as `application/json`, on as text: gzipped bytes stay
intact only with another type, such as `application/octet-stream`. A function's URL does the same.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

from cirrusmq.base.errors import MalformedRequest, RequestTooLarge, UnsupportedMediaType

BINARY = "application/octet-stream"
_GZIP_WINDOW_BITS = 31
_UTF8 = ("charset=utf-8", 'charset="utf-8"')


def read_body(event: dict[str, Any], max_bytes: int) -> bytes:
    """Returns the body. Raises RequestTooLarge above `max_bytes`, before more is inflated.

    Raises MalformedRequest if the body does not match its headers, UnsupportedMediaType if these
    name another type than JSON.
    """
    text = event.get("body") or ""
    encoded = bool(event.get("isBase64Encoded"))
    headers = event.get("headers", {})
    coding = str(headers.get("content-encoding", "identity")).strip().lower()
    if len(text) > max_bytes * (2 if encoded else 1):
        raise _too_large(max_bytes)
    try:
        body = base64.b64decode(text) if encoded else text.encode()
    except (binascii.Error, UnicodeEncodeError) as error:
        raise MalformedRequest from error
    if coding in ("gzip", "x-gzip"):
        if body and not encoded:
            raise UnsupportedMediaType(f"A gzipped body must have the Content-Type {BINARY}.")
        body = _inflated(body, max_bytes)
    elif coding != "identity":
        raise UnsupportedMediaType("The Content-Encoding of a body must be gzip, or there is none.")
    elif len(body) > max_bytes:
        raise _too_large(max_bytes)
    given = str(headers.get("content-type", ""))
    if given != "application/json" and body:
        _check_type(given, gzipped=coding != "identity")
    return body


def takes_gzip(event: dict[str, Any]) -> bool:
    """Returns True if the caller accepts a gzipped answer: Accept-Encoding has gzip or `*`."""
    text = str(event.get("headers", {}).get("accept-encoding", "")).lower()
    if text.partition(",")[0] == "gzip":
        return True  # as most clients send it
    if "gzip" not in text and "*" not in text:
        return False
    accepted: dict[str, bool] = {}
    for part in text.split(","):
        coding, *parameters = (text.strip() for text in part.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        accepted[coding] = bool(quality.strip("0."))
    return accepted.get("gzip", accepted.get("*", False))


def _inflated(body: bytes, max_bytes: int) -> bytes:
    reader = zlib.decompressobj(_GZIP_WINDOW_BITS)
    try:
        inflated = reader.decompress(body, max_bytes + 1) if body else b""
    except zlib.error as error:
        raise MalformedRequest("The body is not gzipped, as its Content-Encoding says.") from error
    if len(inflated) > max_bytes:
        raise _too_large(max_bytes)
    if body and (not reader.eof or reader.unused_data):
        raise MalformedRequest("The body is not one whole gzip member.")
    return inflated


def _check_type(given: str, *, gzipped: bool) -> None:
    media_type, *parameters = (part.strip().lower() for part in given.split(";"))
    charsets = [part for part in parameters if part.startswith("charset=")]
    if gzipped and media_type == BINARY:
        return
    if media_type != "application/json" or not all(part in _UTF8 for part in charsets):
        raise UnsupportedMediaType


def _too_large(max_bytes: int) -> RequestTooLarge:
    return RequestTooLarge(f"The body of the request is over {max_bytes:,} bytes.")
