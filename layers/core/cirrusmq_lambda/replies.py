"""Replies: the values that routes return, and their form for the HTTP API (payload format 2.0).

The OpenAPI document describes a route's answers by the route's return type:
`Created[SentMessages] | Ok[SentMessages]` are 201 and 200, each with that struct.

Lambda's runtime encodes a reply again, as JSON in ASCII: in a text body a quote then takes 4 bytes,
a Chinese character 6 instead of 3. Base64 has nothing to escape. A single message whose JSON is
larger than an answer is gzipped if the caller accepts that; otherwise it is not received.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from cirrusmq.base.limits import ANSWER_BYTES, TEXT_ANSWER_BYTES
from cirrusmq.model.message import answer_too_large, gzipped

B = TypeVar("B", bound=msgspec.Struct)
M = TypeVar("M", bound=str)


def envelope(
    status: int, headers: dict[str, str], body: bytes, *, gzip: bool = False
) -> dict[str, Any]:
    """Returns the answer with this body of UTF-8 text, in base64 if it is large.

    `gzip`: True if the caller accepts gzip, which is used if the body is still too large. Raises
    MessageTooLarge otherwise; a receive claims no message for which that would happen.
    """
    large = len(body) > TEXT_ANSWER_BYTES
    if len(body) > ANSWER_BYTES:
        if not gzip:
            raise answer_too_large(len(body), ANSWER_BYTES)
        body = gzipped(body, ANSWER_BYTES)
        headers = {**headers, "Content-Encoding": "gzip"}
    return {
        "statusCode": status,
        "headers": headers,
        "body": base64.b64encode(body).decode() if large else body.decode(),
        "isBase64Encoded": large,
    }


class Reply:
    """Anything that a route returns."""

    status: ClassVar[int] = 200

    def envelope(self, *, gzip: bool = False) -> dict[str, Any]:
        """Returns the reply in API Gateway's form. `gzip`: it may be gzipped."""
        return envelope(self.status, {}, b"")


class Ok(Reply, Generic[B]):
    """The call is done; `body` is its result."""

    def __init__(self, body: B) -> None:
        self.body = body

    def envelope(self, *, gzip: bool = False) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        return envelope(self.status, headers, msgspec.json.encode(self.body), gzip=gzip)


class Created(Ok[B]):
    """Something is new."""

    status = 201


class Accepted(Ok[B]):
    """Work continues after the answer."""

    status = 202


class NoContent(Reply):
    """The call is done, and has no result."""

    status = 204


class File(Reply, Generic[M]):
    """A file; `M` are its possible media types."""

    def __init__(
        self, media_type: M, content: bytes, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._headers: dict[str, str] = {"Content-Type": media_type, **headers}
        self._content = content

    def envelope(self, *, gzip: bool = False) -> dict[str, Any]:
        return envelope(self.status, self._headers, self._content, gzip=gzip)
