"""A subscriber: notes what is delivered to it, answers as it is told, and listens by HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

from cirrusmq_local.testing.webhooks import is_signed, read_secret

TAKEN, FAILED = 204, 500
MOST_BYTES = 26_214_400
"""Of a body: larger ones are answered with 413."""
IDLE_SECONDS = 30
POLL_SECONDS = 0.02
"""So long a subscriber that ends waits for its server."""


@dataclass(frozen=True)
class Delivery:
    """One attempt to deliver, as received. `headers`: names in lower case."""

    path: str
    """Of the URL, without the slash that it begins with."""
    headers: Mapping[str, str]
    body: bytes
    at_ms: float
    """Of the subscriber's clock."""

    @property
    def message_id(self) -> str:
        """The same in each attempt; empty in a request to confirm a subscription."""
        return self.headers.get("x-cmq-message-id", "")

    @cached_property
    def content(self) -> Any:
        """The body's JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @cached_property
    def text(self) -> str:
        """The message's body, whichever content format the subscription has."""
        held, body = self.content, self.body
        if isinstance(held, dict) and self.message_id and held.get("msgId") == self.message_id:
            if "bodyEncoding" not in held:
                return str(held["msgBody"])
            body = base64.b64decode(held["msgBody"])
        return body.decode(errors="backslashreplace")

    def is_signed(self, secret: str, now: float | None = None) -> bool:
        """Whether it is signed with the subscription's `whsec_…`, within 5 minutes of `now`."""
        return is_signed(read_secret(secret), self.headers, self.body, now)


Answer = Callable[[Delivery], int | None]
"""The status that a delivery is answered with; None: the connection is closed without an answer.

It is called in the thread of the connection: one that takes its time delays nothing else.
"""


class Subscriber:
    """Takes deliveries at each path of a free port of 127.0.0.1, within `with`.

        with Subscriber() as subscriber:
            endpoint = subscriber.url("orders")  # of a subscription with protocol http

    `answer` may be set at any time; so do `down` and `up`. `deliveries` are all attempts, `taken`
    those that were answered with 2xx. A world's (`World.subscriber`) needs no `with`.
    """

    def __init__(
        self,
        answer: Answer = lambda delivery: TAKEN,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1_000,
    ) -> None:
        self.answer = answer
        self._now_ms = now_ms
        self.deliveries: list[Delivery] = []
        self.taken: list[Delivery] = []
        self._first_taken: dict[str, Delivery] = {}
        self._changed = threading.Condition()
        self._address = host, port
        self._server: _Server | None = None

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> int | None:
        """One delivery: the status of its answer, None for none."""
        lower = {name.lower(): value for name, value in headers.items()}
        delivery = Delivery(path, lower, body, self._now_ms())
        with self._changed:
            self.deliveries.append(delivery)
        status = self.answer(delivery)
        if status is not None and 200 <= status < 300:
            with self._changed:
                self.taken.append(delivery)
                self._first_taken.setdefault(delivery.message_id, delivery)
                self._changed.notify_all()
        return status

    def down(self, *bodies: str, path: str | None = None) -> None:
        """Answer 500 to messages of these bodies (all, if none are given) at a path (any)."""

        def answer(delivery: Delivery) -> int:
            here = path is None or delivery.path == path
            return FAILED if here and (not bodies or delivery.text in bodies) else TAKEN

        self.answer = answer

    def up(self) -> None:
        """Answer 204 from now on."""
        self.answer = lambda delivery: TAKEN

    def bodies(self, path: str | None = None) -> list[str]:
        """The messages' bodies, of each attempt, at a path or at any."""
        return [each.text for each in self._at(path)]

    def times(self, body: str, path: str | None = None) -> list[float]:
        """Milliseconds at which a message was attempted."""
        return [each.at_ms for each in self._at(path) if each.text == body]

    def waits(self, body: str, path: str | None = None) -> list[float]:
        """Seconds between the attempts of a message."""
        return [(late - soon) / 1_000 for soon, late in pairwise(self.times(body, path))]

    def wait_for(self, message_ids: Iterable[str], seconds: float = 60) -> list[Delivery]:
        """The first deliveries of these messages that were taken, once all are; TimeoutError."""
        wanted = list(message_ids)
        with self._changed:
            if not self._changed.wait_for(
                lambda: all(each in self._first_taken for each in wanted), seconds
            ):
                missing = sum(each not in self._first_taken for each in wanted)
                raise TimeoutError(f"{missing} of {len(wanted)} messages were not taken")
            return [self._first_taken[each] for each in wanted]

    @property
    def port(self) -> int:
        """The port that it listens on; only within `with`."""
        assert self._server is not None, "it listens within `with` only"
        return self._server.server_port

    def url(self, path: str = "") -> str:
        """An endpoint of this subscriber; only within `with`."""
        return f"http://{self._address[0]}:{self.port}/{path}"

    def __enter__(self) -> Subscriber:
        self._server = _Server(self._address, _handler(self))
        threading.Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), daemon=True
        ).start()
        return self

    def __exit__(self, *raised: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    def _at(self, path: str | None) -> list[Delivery]:
        with self._changed:
            return [each for each in self.deliveries if path in (None, each.path)]


class _Server(ThreadingHTTPServer):
    """Takes many connections at once: with the library's backlog of five some would fail."""

    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[Any] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Connections that are kept end too: nothing is taken from now on."""
        super().server_close()
        for request in list(self._open):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


def _handler(subscriber: Subscriber) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = IDLE_SECONDS

        def do_POST(self) -> None:
            given = self.headers.get("content-length", "")
            size = int(given) if given.isdigit() else 0
            if size > MOST_BYTES:
                self.close_connection = True
                self.send_error(413)
                return
            body = self.rfile.read(size)
            status = subscriber.take(self.path.strip("/"), dict(self.headers), body)
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """A subscriber notes deliveries itself."""

    return Handler
