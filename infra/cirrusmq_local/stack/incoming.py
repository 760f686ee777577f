"""The bytes that a client sends, read as requests of HTTP/1.1."""

from __future__ import annotations

import time
from collections import deque

import httptools

from cirrusmq.base.errors import CirrusMQError, MalformedRequest, RequestTooLarge
from cirrusmq_local.cloud.events import Request

HEADER_BYTES = 10_240
"""Maximum size of the request line and the headers, by the API's own limit."""
HEAD_BYTES = 16 * 1_024
"""A head that is longer is not read to its end."""
BODY_BYTES = 10 * 1_024 * 1_024

# Limits for reading a refused body before the answer: a client that sends all of its body first
# would not see an answer on a connection that was closed in the middle.
_DRAIN_SECONDS = 2.0
_DRAIN_BYTES = 64 * 1_024 * 1_024


class NotHttpError(Exception):
    """The bytes are no HTTP request; the text says why."""


class Incoming:
    """The received bytes of one connection: complete requests, and the beginning of the next one.

    ::

        head ──> body ──> a request
          │        └── too long: its rest is read for a while ──> a refusal
          └── too long, or not HTTP ──> NotHttpError
    """

    def __init__(self, source: str, head_seconds: float, body_seconds: float) -> None:
        """`source`: the client's address. A head and a body each have a time limit in seconds."""
        self._source = source
        self._head_seconds = head_seconds
        self._body_seconds = body_seconds
        self._parser = httptools.HttpRequestParser(self)
        self.requests: deque[Request] = deque()
        """Complete requests, in their order."""
        self.refusal: CirrusMQError | None = None
        """The error for the request after these; nothing after it is read."""
        self.keeps_alive = True
        """True if the client may send another request."""
        self.awaits_go_ahead = False
        """True if the client sends its body only after `100 Continue`."""
        self.begun = False
        """True if a part of a request has come, but not all of it."""
        self.deadline = time.monotonic() + head_seconds
        """Time, by the monotonic clock, at which the begun request must be complete."""
        self._in_body = False
        self._begin()

    @property
    def refuses(self) -> bool:
        """True if the refusal is to be sent now."""
        done = not self._in_body or self.awaits_go_ahead or self._body_bytes > _DRAIN_BYTES
        return self.refusal is not None and done

    def feed(self, data: bytes) -> None:
        """Parses bytes. Raises NotHttpError for a fault; complete requests before it stay."""
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
        """Refuses the begun request: it did not arrive in time."""
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
