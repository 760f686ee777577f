"""`cirrusmq listen`: a subscriber by HTTP that prints what it gets, and fails when told so."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Annotated, Any

import typer

from cirrusmq_local.commands.arguments import Json
from cirrusmq_local.commands.console import fail, print_json, show
from cirrusmq_local.testing.webhooks import DeliveryServer, is_signed, read_secret

ACCEPTED, UNSIGNED, FAILED = 204, 401, 500
MOST_BYTES = 1_048_576


@dataclass
class Subscriber:
    """Answers each delivery, and prints it."""

    secret: bytes | None
    fail_first: int | None
    status: int | None
    as_json: bool
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer."""
        with self._lock:
            self._count += 1
            signed = None if self.secret is None else is_signed(self.secret, headers, body)
            status = UNSIGNED if signed is False else self._status()
            self._print(headers, body, signed, status)
        return status

    def _status(self) -> int:
        if self.fail_first is None:
            return self.status or ACCEPTED
        return (self.status or FAILED) if self._count <= self.fail_first else ACCEPTED

    def _print(
        self, headers: Mapping[str, str], body: bytes, signed: bool | None, status: int
    ) -> None:
        delivery = {
            "number": self._count,
            "type": headers.get("x-cmq-type", "Notification"),
            "id": headers.get("x-cmq-message-id", ""),
            "request_id": headers.get("x-cmq-request-id", ""),
            "tags": headers.get("x-cmq-message-tag", ""),
            "signature": {None: "unchecked", True: "right", False: "wrong"}[signed],
            "answered": status,
            "body": body.decode(errors="backslashreplace"),
        }
        if self.as_json:
            print_json(delivery)
            return
        tags = f"  [{delivery['tags']}]" if delivery["tags"] else ""
        line = f"{delivery['id']}{tags}  signature {delivery['signature']}  answered {status}"
        print(show(f"{line}  {delivery['body']}"), flush=True)


def listen(
    host: Annotated[str, typer.Option(help="Address to answer on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    secret: Annotated[
        str | None, typer.Option(help="The subscription's whsec_…: verify signatures.")
    ] = None,
    fail_first: Annotated[
        int | None, typer.Option(help="Fail so many deliveries, then accept.", min=0)
    ] = None,
    status: Annotated[
        int | None, typer.Option(help="The status of failures (500), or of all.", min=200, max=599)
    ] = None,
    as_json: Json = False,
) -> None:
    """Be a subscriber on this machine: print each delivery, a line each, until Ctrl-C."""
    try:
        key = None if secret is None else read_secret(secret)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--secret") from None
    subscriber = Subscriber(key, fail_first, status, as_json)
    try:
        server = DeliveryServer((host, port), _handler_for(subscriber))
    except OSError as error:
        fail(f"cannot listen on {host}:{port}: {error.strerror}", "take another --port")
    signal.signal(signal.SIGTERM, _interrupt)
    print(f"listening http://{host}:{server.server_port}", flush=True)
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever(poll_interval=0.1)


def _handler_for(subscriber: Subscriber) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            given = self.headers.get("content-length", "")
            size = int(given) if given.isdigit() else 0
            if size > MOST_BYTES:
                self.send_error(413)
                return
            body = self.rfile.read(size)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(subscriber.take(headers, body))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Deliveries are printed by their subscriber."""

    return Handler


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
