"""A subscriber for tests: notes its deliveries, answers by a rule, and listens by HTTP."""

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
MAX_BYTES = 26_214_400
"""Maximum size of a body: a larger one is answered with 413."""
IDLE_SECONDS = 30
POLL_SECONDS = 0.02
"""Maximum wait of a subscriber for the end of its server."""


@dataclass(frozen=True)
class Delivery:
    """One attempt to deliver, as received. `headers`: names in lower case."""

    path: str
    """The URL's path, without the first slash."""
    headers: Mapping[str, str]
    body: bytes
    at_ms: float
    """Time of the delivery on the subscriber's clock."""

    @property
    def message_id(self) -> str:
        """The message's id, equal in each attempt; empty in a request to confirm a subscription."""
        return self.headers.get("x-cmq-message-id", "")

    @cached_property
    def content(self) -> Any:
        """The body's JSON value, or None if the body is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @cached_property
    def text(self) -> str:
        """The message's body, for each content format of a subscription."""
        held, body = self.content, self.body
        if isinstance(held, dict) and self.message_id and held.get("msgId") == self.message_id:
            if "bodyEncoding" not in held:
                return str(held["msgBody"])
            body = base64.b64decode(held["msgBody"])
        return body.decode(errors="backslashreplace")

    def is_signed(self, secret: str, now: float | None = None) -> bool:
        """Returns True if a signature by the `whsec_…` is valid, within 5 minutes of `now`."""
        return is_signed(read_secret(secret), self.headers, self.body, now)


Answer = Callable[[Delivery], int | None]
"""Returns the status of a delivery's answer; None closes the connection without an answer.

It is called in the connection's thread: a slow call does not delay other deliveries.
"""


class Subscriber:
    """Takes deliveries at each path of a free port of 127.0.0.1, within `with`.

        with Subscriber() as subscriber:
            endpoint = subscriber.url("orders")  # of a subscription with protocol http

    `answer` may be set at any time; `down` and `up` set it, too. `deliveries` are all attempts,
    `taken` are the attempts answered with 2xx. A world's (`World.subscriber`) needs no `with`.
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
        """Takes one delivery. Returns the status of its answer, or None for no answer."""
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
        """Fails deliveries of messages with these bodies, at a path, with 500 from now on.

        No bodies: all messages. `path`: None is any path.
        """

        def answer(delivery: Delivery) -> int:
            here = path is None or delivery.path == path
            return FAILED if here and (not bodies or delivery.text in bodies) else TAKEN

        self.answer = answer

    def up(self) -> None:
        """Lets each delivery succeed from now on, with 204."""
        self.answer = lambda delivery: TAKEN

    def bodies(self, path: str | None = None) -> list[str]:
        """Returns the messages' bodies, one for each attempt. `path`: None is any path."""
        return [each.text for each in self._at(path)]

    def times(self, body: str, path: str | None = None) -> list[float]:
        """Returns the times of a message's attempts in milliseconds. `path`: None is any path."""
        return [each.at_ms for each in self._at(path) if each.text == body]

    def waits(self, body: str, path: str | None = None) -> list[float]:
        """Returns the seconds between a message's attempts. `path`: None is any path."""
        return [(late - soon) / 1_000 for soon, late in pairwise(self.times(body, path))]

    def wait_for(self, message_ids: Iterable[str], seconds: float = 60) -> list[Delivery]:
        """Waits until all these messages are taken. Returns their first taken deliveries.

        Raises TimeoutError after `seconds`.
        """
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
        """The subscriber's port; only within `with`."""
        assert self._server is not None, "it listens within `with` only"
        return self._server.server_port

    def url(self, path: str = "") -> str:
        """Returns an endpoint of this subscriber; only within `with`."""
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
    """Accepts many connections at once; with the library's backlog of five some would fail."""

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
        """Closes kept connections, too: no delivery is taken from now on."""
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
            if size > MAX_BYTES:
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
            """Logs nothing: a subscriber notes deliveries itself."""

    return Handler
