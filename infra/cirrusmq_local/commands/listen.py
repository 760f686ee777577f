"""`cirrusmq listen`: an HTTP subscriber that prints deliveries, and can fail on purpose."""

from __future__ import annotations

import contextlib
import signal
import threading
from dataclasses import dataclass, field
from typing import Annotated, Any, NoReturn

import typer

from cirrusmq_local.commands.arguments import Json
from cirrusmq_local.commands.console import fail, print_json, show
from cirrusmq_local.testing import Delivery, Subscriber, read_secret

ACCEPTED, UNSIGNED, FAILED = 204, 401, 500


@dataclass
class Listener:
    """HTTP handler that answers and prints each delivery."""

    secret: str | None
    fail_first: int | None
    status: int | None
    as_json: bool
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, delivery: Delivery) -> int:
        """The status of the answer."""
        with self._lock:
            self._count += 1
            signed = None if self.secret is None else delivery.is_signed(self.secret)
            status = UNSIGNED if signed is False else self._status()
            self._print(delivery, signed, status)
        return status

    def _status(self) -> int:
        if self.fail_first is None:
            return self.status or ACCEPTED
        return (self.status or FAILED) if self._count <= self.fail_first else ACCEPTED

    def _print(self, delivery: Delivery, signed: bool | None, status: int) -> None:
        headers = delivery.headers
        printed = {
            "number": self._count,
            "type": headers.get("x-cmq-type", "Notification"),
            "id": delivery.message_id,
            "request_id": headers.get("x-cmq-request-id", ""),
            "tags": headers.get("x-cmq-message-tag", ""),
            "signature": {None: "unchecked", True: "right", False: "wrong"}[signed],
            "answered": status,
            "body": delivery.body.decode(errors="backslashreplace"),
        }
        if self.as_json:
            print_json(printed)
            return
        tags = f"  [{printed['tags']}]" if printed["tags"] else ""
        line = f"{printed['id']}{tags}  signature {printed['signature']}  answered {status}"
        print(show(f"{line}  {printed['body']}"), flush=True)


def listen(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.", min=0, max=65535)] = 8000,
    secret: Annotated[
        str | None, typer.Option(help="The subscription's whsec_…: verify signatures.")
    ] = None,
    fail_first: Annotated[
        int | None, typer.Option(help="Number of deliveries that fail first.", min=0)
    ] = None,
    status: Annotated[
        int | None,
        typer.Option(help="The status of failed deliveries (500), or of all.", min=200, max=599),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a subscriber on this machine: print each delivery on a line, until Ctrl-C."""
    try:
        if secret is not None:
            read_secret(secret)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--secret") from None
    listener = Listener(secret, fail_first, status, as_json)
    subscriber = Subscriber(listener.answer, host=host, port=port)
    signal.signal(signal.SIGTERM, _interrupt)
    with contextlib.ExitStack() as ending, contextlib.suppress(KeyboardInterrupt):
        try:
            ending.enter_context(subscriber)
        except OSError as error:
            fail(f"cannot listen on {host}:{port}: {error.strerror}", "take another --port")
        print(f"listening {subscriber.url().rstrip('/')}", flush=True)
        threading.Event().wait()


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt
