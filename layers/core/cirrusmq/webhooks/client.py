"""Posting to an endpoint that a subscriber chose: one attempt, bounded in time and in bytes.

The status of the subscriber's answer is kept, and the time in its `Retry-After`. An answer that did
not take the message has a sample besides, for a subscription that asks for it; no word of it gets
into a log.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime

from cirrusmq import __version__
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.model.answer_sample import BODY_BYTES, AnswerSample, sample_of
from cirrusmq.model.post_history import error_of
from cirrusmq.webhooks.addresses import AddressPolicy, Refused
from cirrusmq.webhooks.connections import (
    ANSWER_BYTES,
    AnswerTooLong,
    Connection,
    ConnectionKey,
    Pool,
    seconds_left,
)
from cirrusmq.webhooks.resolution import LookupFailed, Resolution, Resolver
from cirrusmq.webhooks.urls import Endpoint, split

TIMEOUT_SECONDS = 15.0
BUSY = (429, 503)
"""Statuses whose `Retry-After` says when to try again."""
USER_AGENT = f"CirrusMQ/{__version__}"

# First match wins: most are kinds of OSError, and RemoteDisconnected is also a BadStatusLine.
_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (InvalidParameter, "url"),
    (Refused, "address"),
    (LookupFailed, "dns"),
    (TimeoutError, "timeout"),
    (ssl.SSLEOFError, "connection"),
    (ssl.SSLZeroReturnError, "connection"),
    (ssl.SSLError, "tls"),
    (OSError, "connection"),
    (http.client.HTTPException, "protocol"),
    (AnswerTooLong, "protocol"),
)
_FAILURES = tuple(failures for failures, _ in _KINDS)


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """The outcome of an attempt.

    status: the answer's status; None without an answer. error: None for any 2xx: it is delivered,
    else `status <n>`, `redirect <n>`, `url`, `address`, `dns`, `connection`, `tls`, `timeout` or
    `protocol` (the answer is not HTTP). retry_after_seconds: from an answer 429 or 503; None
    without a header that has a time. sample: from an answer that is a failure.
    """

    status: int | None
    error: str | None
    retry_after_seconds: float | None = None
    # No log has it, not even by its repr.
    sample: AnswerSample | None = field(default=None, repr=False)


def _strict(context: ssl.SSLContext) -> ssl.SSLContext:
    """Makes every version of Python accept the certificates that 3.13 accepts by default.

    Certificates that break RFC 5280 are refused, and an intermediate authority may be trusted.
    """
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


class Poster:
    """Makes POST requests to global addresses; may be shared by many threads.

    resolver: like `socket.getaddrinfo`. timeout_seconds: for an attempt as a whole, real
    seconds. context: how TLS connections are checked, by default against the system's
    authorities; the poster makes it strict about the form of certificates.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        resolver: Resolver = socket.getaddrinfo,
        timeout_seconds: float = TIMEOUT_SECONDS,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._resolution = Resolution(policy, resolver)
        self._timeout_seconds = timeout_seconds
        self._pool = Pool(_strict(context or ssl.create_default_context()))

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> PostOutcome:
        """Posts `body` to `url` once; a failure is an outcome, not an exception.

        The status decides as soon as it and the headers are there. The rest of the answer is read
        only so that the connection can be used again, and only within the time of the attempt: an
        answer that drips costs its connection and its time, but its status counts.
        """
        deadline = time.monotonic() + self._timeout_seconds
        try:
            return self._post(split(url), headers, body, deadline)
        except _FAILURES as failure:
            kind = next(kind for failures, kind in _KINDS if isinstance(failure, failures))
            return PostOutcome(None, kind)

    def close(self) -> None:
        """Closes the connections that are kept."""
        self._pool.close()

    def _post(
        self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes, deadline: float
    ) -> PostOutcome:
        addresses = self._resolution.addresses(endpoint, deadline)
        tls = endpoint.scheme == "https"
        keys = [ConnectionKey(tls, endpoint.host, endpoint.port, each) for each in addresses]
        complete = {
            **headers,
            "Host": endpoint.host_header,
            "User-Agent": USER_AGENT,
            "Content-Length": str(len(body)),
        }
        kept = self._pool.take(keys)
        if kept is not None:
            try:
                kept.begin(deadline)
                return self._exchange(kept, endpoint.target, complete, body)
            except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
                # The server closed the idle connection while we wrote, which is no failure: it gets
                # the request on a new connection, unless it had begun to answer.
                if kept.is_answered:
                    raise
        return self._exchange(self._connected(keys, deadline), endpoint.target, complete, body)

    def _connected(self, keys: Sequence[ConnectionKey], deadline: float) -> Connection:
        """Returns a new connection to the first of `keys` that takes one.

        An address that does not answer leaves the others an equal share of the time.
        """
        for position, key in enumerate(keys, start=1):
            left = seconds_left(deadline)
            connect_by = time.monotonic() + left / (len(keys) - position + 1)
            connection = self._pool.new(key)
            try:
                connection.open(deadline, connect_by)
            except ssl.SSLError:
                raise
            except OSError:
                if position == len(keys):
                    raise
            else:
                return connection
        raise LookupFailed

    def _exchange(
        self, connection: Connection, target: str, headers: Mapping[str, str], body: bytes
    ) -> PostOutcome:
        """Sends a request, and keeps the connection if it can be used again."""
        reusable, begin = False, bytearray()
        try:
            connection.putrequest("POST", target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            with response:
                reusable = _drain(response, begin)
        finally:
            if not reusable:
                connection.close()
        if reusable:
            self._pool.give_back(connection)
        lines, error = getattr(response, "header_lines", ()), error_of(response.status)
        sample = sample_of(lines, bytes(begin)) if error else None
        after = None
        if response.status in BUSY:
            after = read_retry_after(response.headers.get("Retry-After"), time.time())
        return PostOutcome(response.status, error, after, sample)


def read_retry_after(text: str | None, now_s: float) -> float | None:
    """Returns the seconds that a `Retry-After` asks for (RFC 9110, 10.2.3): a number or a date.

    Returns None for any other text; 0 for a time that is over.
    """
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:  # such as "-0000"
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now_s)


def _drain(response: http.client.HTTPResponse, begin: bytearray) -> bool:
    """Reads the rest of an answer, and keeps its begin. Returns True if it can be used again."""
    try:
        begin += response.read(BODY_BYTES + 1)
        while response.read(ANSWER_BYTES):
            pass
    except (OSError, ValueError, http.client.HTTPException, AnswerTooLong):
        return False
    # After a change of protocol the next bytes are no answer to the next request.
    return response.isclosed() and not response.will_close and response.status >= 200
