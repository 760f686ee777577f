"""Connections to addresses that were checked, kept for later requests.

Built on `http.client`, which follows no redirect, repeats nothing, unpacks no body and asks no
environment for a proxy. All that a pooling library adds would have to be turned off again, and its
limits are per call of the system, so that an answer that drips would keep it forever.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from ipaddress import IPv4Address
from typing import Any, NamedTuple, cast

from cirrusmq.webhooks.addresses import Address

IDLE_CONNECTIONS = 64
IDLE_SECONDS = 20.0
ANSWER_BYTES = 65_536
"""Bytes that are read of one answer at most, its headers included."""
SAMPLED_BYTES = 4_096
"""Least bytes of headers for a sample, if an answer has as many: a sample leaves out some."""
_NEEDED_HEADERS = frozenset(
    b"connection content-length keep-alive proxy-connection transfer-encoding retry-after".split()
)
"""The library needs them to find the end of an answer, and if the connection stays open; the last
one has the time of the next attempt."""


class AnswerTooLong(Exception):
    """The answer is longer than `ANSWER_BYTES`."""


class ConnectionKey(NamedTuple):
    """The far end of a connection. Requests to two places never share a connection."""

    tls: bool
    host: str
    port: int
    address: Address


@dataclass(slots=True)
class _Bounds:
    """The end of one request, on the monotonic clock, and the bytes left to read of its answer."""

    deadline: float
    bytes_left: int = ANSWER_BYTES


class _Bounded:
    """A socket whose calls all end by one moment, and that receives a bounded number of bytes.

    A timeout bounds a single call: one byte every few seconds would stay below it forever.
    """

    bounds: _Bounds

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self._bound()
        received: int = super().recv_into(*arguments, **options)  # type: ignore[misc]
        self.bounds.bytes_left -= received
        if self.bounds.bytes_left < 0:
            raise AnswerTooLong
        return received

    def sendall(self, *arguments: Any, **options: Any) -> None:
        self._bound()
        super().sendall(*arguments, **options)  # type: ignore[misc]

    def _bound(self) -> None:
        cast(socket.socket, self).settimeout(seconds_left(self.bounds.deadline))


class _PlainSocket(_Bounded, socket.socket):
    pass


class _TlsSocket(_Bounded, ssl.SSLSocket):
    pass


class _NeededLines:
    """Hands on an answer's status and the headers that are read, line by line.

    The library gives up at 100 headers, and an answer's status is lost with them. Here their number
    has no limit: their bytes are bounded with the whole answer's.
    """

    def __init__(self, file: Any) -> None:
        self.file = file
        self.lines: list[bytes] = []
        """Headers of the answer that is read, as they came: enough for a sample of them."""
        self._in_headers = False
        self._needed = False
        self._kept_bytes = 0

    def readline(self, limit: int) -> bytes:
        while True:
            line: bytes = self.file.readline(limit)
            if not self._in_headers:
                self._in_headers = True
                self.lines, self._kept_bytes = [], 0
                return line
            if not line.strip(b"\r\n"):  # the end of the headers, or of the connection
                self._in_headers = False
                return line
            if line[:1] not in (b" ", b"\t"):  # else it goes on with the header before it
                self._needed = line.partition(b":")[0].strip().lower() in _NEEDED_HEADERS
            if self._kept_bytes < SAMPLED_BYTES:
                self.lines.append(line)
                self._kept_bytes += len(line)
            if self._needed or len(line) == limit:  # the library refuses a line that is too long
                return line

    def close(self) -> None:
        self.file.close()


class _FinalResponse(HTTPResponse):
    """The final answer, after any interim ones with a status of 1xx (RFC 9110, 15.2)."""

    header_lines: list[bytes]

    def begin(self) -> None:
        whole = self.fp
        lines: Any = _NeededLines(whole)
        self.fp = lines
        try:
            super().begin()
            while 100 <= self.status < 200 and self.status != HTTPStatus.SWITCHING_PROTOCOLS:
                self.headers = self.msg = None  # type: ignore[assignment]
                super().begin()
        finally:
            self.header_lines = lines.lines
            if self.fp is lines:  # else it is closed
                self.fp = whole


class Connection(HTTPConnection):
    """A connection to one place, which connects only by `open`.

    A plain `HTTPConnection` connects again whenever the other side has closed, by the host's name:
    past every check.
    """

    auto_open = 0
    response_class = _FinalResponse
    sock: _PlainSocket | _TlsSocket | None

    def __init__(self, place: ConnectionKey, context: ssl.SSLContext) -> None:
        super().__init__(place.host, place.port)
        self.place = place
        self.idle_since = 0.0
        self._context = context
        self._bounds = _Bounds(deadline=0.0)

    def open(self, deadline: float, connect_by: float) -> None:
        """Connects to the place's address; the request that follows must be over by `deadline`."""
        address = self.place.address
        family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
        plain = _PlainSocket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(seconds_left(min(deadline, connect_by)))
            plain.connect((str(address), self.place.port))
            # Headers and body are two writes: the second must not wait for the first's receipt.
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(seconds_left(deadline))
            self.sock = self._wrapped(plain) if self.place.tls else plain
        except BaseException:
            plain.close()
            raise
        self.begin(deadline)

    def begin(self, deadline: float) -> None:
        """Bounds the next request in time and bytes."""
        assert self.sock is not None
        self._bounds = self.sock.bounds = _Bounds(deadline)

    @property
    def is_answered(self) -> bool:
        """True if any byte was received since `begin`."""
        return self._bounds.bytes_left < ANSWER_BYTES

    @property
    def is_quiet(self) -> bool:
        """True if an idle connection has nothing to read: neither its end nor an unasked answer."""
        if self.sock is None:
            return False
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return not poll.poll(0)

    def _wrapped(self, plain: _PlainSocket) -> _TlsSocket:
        """Returns the connection under TLS, bounded as a whole; the certificate is the host's."""
        name = self.place.host.removesuffix(".")
        return cast(_TlsSocket, self._context.wrap_socket(plain, server_hostname=name))


class Pool:
    """Idle connections, the newest last; safe to share between threads."""

    def __init__(self, context: ssl.SSLContext) -> None:
        context.sslsocket_class = _TlsSocket
        self._context = context
        self._idle: deque[Connection] = deque()
        self._lock = threading.Lock()

    def new(self, place: ConnectionKey) -> Connection:
        """Returns a connection that is not open yet."""
        return Connection(place, self._context)

    def take(self, places: Collection[ConnectionKey]) -> Connection | None:
        """Returns an open connection to one of `places` that may be used again, or None."""
        while True:
            connection = self._pop(places)
            if connection is None or connection.is_quiet:
                return connection
            connection.close()

    def give_back(self, connection: Connection) -> None:
        """Keeps a connection whose request and answer are both complete."""
        connection.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(connection)
            surplus = self._drop_stale()
            if len(self._idle) > IDLE_CONNECTIONS:
                surplus.append(self._idle.popleft())
        _close(surplus)

    def close(self) -> None:
        """Closes every idle connection."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        _close(idle)

    def _pop(self, places: Collection[ConnectionKey]) -> Connection | None:
        with self._lock:
            stale = self._drop_stale()
            found = next((each for each in reversed(self._idle) if each.place in places), None)
            if found is not None:
                self._idle.remove(found)
        _close(stale)
        return found

    def _drop_stale(self) -> list[Connection]:
        """Removes connections that a server may have closed by now, and returns them."""
        stale = []
        while self._idle and self._idle[0].idle_since < time.monotonic() - IDLE_SECONDS:
            stale.append(self._idle.popleft())
        return stale


def seconds_left(deadline: float) -> float:
    """Returns the seconds until `deadline`, never 0. Raises `TimeoutError` after it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _close(connections: Collection[Connection]) -> None:
    for connection in connections:
        connection.close()
