"""The bytes that a client sends, read as requests of HTTP/1.1."""

from __future__ import annotations

import time
from collections import deque

import httptools

from cirrusmq.base.errors import CirrusMQError, MalformedRequest, RequestTooLarge
from cirrusmq_local.cloud.events import Request

HEADER_BYTES = 10_240
"""Of the request line and the headers, by the API's own limit."""
HEAD_BYTES = 16 * 1_024
"""A head that is longer is not read to its end."""
BODY_BYTES = 10 * 1_024 * 1_024

# How much of a refused body is read before the answer, for a client that sends all of it first
# would not see an answer on a connection that was closed under it.
_DRAIN_SECONDS = 2.0
_DRAIN_BYTES = 64 * 1_024 * 1_024


class NotHttpError(Exception):
    """What came is no request; the text says why."""


class Incoming:
    """What came on one connection so far: whole requests, and the beginning of the next one.

    ::

        head ──> body ──> a request
          │        └── too long: what is left of it is read for a while ──> a refusal
          └── too long, or not HTTP ──> NotHttpError
    """

    def __init__(self, source: str, head_seconds: float, body_seconds: float) -> None:
        """`source`: the client's address. A head and a body have so many seconds each."""
        self._source = source
        self._head_seconds = head_seconds
        self._body_seconds = body_seconds
        self._parser = httptools.HttpRequestParser(self)
        self.requests: deque[Request] = deque()
        """Whole, in their order."""
        self.refusal: CirrusMQError | None = None
        """Why the request after them is not taken: no other is read."""
        self.keeps_alive = True
        """Whether the client may send another request."""
        self.awaits_go_ahead = False
        """Whether the client sends its body only when it is told to go on."""
        self.begun = False
        """Whether a part of a request has come, but not all."""
        self.deadline = time.monotonic() + head_seconds
        """When what has begun must have come, by the monotonic clock."""
        self._in_body = False
        self._begin()

    @property
    def refuses(self) -> bool:
        """Whether a refusal is to be answered now."""
        done = not self._in_body or self.awaits_go_ahead or self._body_bytes > _DRAIN_BYTES
        return self.refusal is not None and done

    def feed(self, data: bytes) -> None:
        """Take bytes in. Raises NotHttpError; whole requests before the fault stay."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # It is not offered. The request is answered as any other; what follows is not HTTP.
            self.keeps_alive = False
        except httptools.HttpParserError as error:
            raise NotHttpError("Invalid HTTP request received.") from error
        if self.begun and not self._in_body:
            self._head_read += len(data)
            if self._head_read > HEAD_BYTES:
                raise NotHttpError("The request line and headers are too long.")

    def give_up(self) -> None:
        """Refuse the request that is under way: its time is over."""
        if self._in_body and self.refusal is None:
            self.refusal = MalformedRequest(
                f"the body did not arrive within {self._body_seconds:g} s"
            )
        self._in_body = False

    # The parser calls these, in the order of a request.

    def on_message_begin(self) -> None:
        self.begun = True
        self.deadline = time.monotonic() + self._head_seconds
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:  # else it is behind a chunked body
            self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))
            self._head_bytes += len(name) + len(value)

    def on_headers_complete(self) -> None:
        headers = dict(self._headers)
        if "host" not in headers and self._parser.get_http_version() == "1.1":
            raise httptools.HttpParserError("a request of HTTP/1.1 names its host")
        self._in_body = True
        self.awaits_go_ahead = headers.get("expect", "").lower() == "100-continue"
        self.deadline = time.monotonic() + self._body_seconds
        if len(self._url) + self._head_bytes > HEADER_BYTES:
            self._refuse(MalformedRequest(f"path and headers are over {HEADER_BYTES:,} bytes"))
        elif int(headers.get("content-length", 0)) > BODY_BYTES:
            self._refuse(RequestTooLarge())

    def on_body(self, body: bytes) -> None:
        self.awaits_go_ahead = False
        self._body_bytes += len(body)
        if self.refusal is None:
            self._body.append(body)
            if self._body_bytes > BODY_BYTES:
                self._refuse(RequestTooLarge())

    def on_message_complete(self) -> None:
        if self.refusal is None:
            self.requests.append(self._request())
        self.keeps_alive = self._parser.should_keep_alive()
        self.begun = self._in_body = self.awaits_go_ahead = False
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._head_bytes = self._head_read = self._body_bytes = 0

    def _refuse(self, refusal: CirrusMQError) -> None:
        self.refusal = refusal
        self._body.clear()
        self.deadline = min(self.deadline, time.monotonic() + _DRAIN_SECONDS)

    def _request(self) -> Request:
        path, query = _take_apart(self._url)
        return Request(
            method=self._parser.get_method().decode("latin-1"),
            raw_path=path,
            query=query,
            headers=self._headers,
            body=self._body[0] if len(self._body) == 1 else b"".join(self._body),
            source=self._source,
            http_version=self._parser.get_http_version(),
        )


def _take_apart(url: bytes) -> tuple[str, str]:
    """Path and query of a request line, which may name the host as well."""
    if not url.startswith(b"/"):
        parsed = httptools.parse_url(url)
        return (parsed.path or b"").decode("latin-1"), (parsed.query or b"").decode("latin-1")
    path, _, query = url.partition(b"#")[0].partition(b"?")
    return path.decode("latin-1"), query.decode("latin-1")
