"""A queue of the local stack, by HTTP.

The client is the standard library's, on one connection: httpx uses as much CPU time for a call as
the service, and would dominate the measurement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from . import Service
from .servers import Stack, our_stack

WAIT_SECONDS = 10


class OurQueue:
    """A queue over one connection."""

    def __init__(self, stack: Stack, name: str) -> None:
        self._http = HTTPConnection(urlsplit(stack.url).netloc, timeout=60)
        self._headers = {**stack.headers, "Content-Type": "application/json"}
        self._path = f"/queues/{name}"

    def create(self) -> None:
        """Makes the queue."""
        self._call("PUT", self._path, {})

    def send(self, bodies: Sequence[str]) -> None:
        """Makes one send."""
        self._post("messages", {"messages": [{"body": body} for body in bodies]})

    def take(self, limit: int) -> int:
        """Makes one receive and one delete."""
        held = self._receive(limit, 0.2)
        if held:
            self._delete(held)
        return len(held)

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Receives by long polls."""
        while count:
            held = self._receive(1, WAIT_SECONDS)
            if held:
                handle(held[0]["body"])
                self._delete(held)
                count -= 1

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def _receive(self, limit: int, wait_seconds: float) -> list[dict[str, Any]]:
        asked = {"max": limit, "wait_seconds": wait_seconds}
        held: list[dict[str, Any]] = self._post("messages/receive", asked)["messages"]
        return held

    def _delete(self, held: list[dict[str, Any]]) -> None:
        self._post("messages/delete", {"receipts": [message["receipt"] for message in held]})

    def _post(self, path: str, body: object) -> Any:
        return self._call("POST", f"{self._path}/{path}", body)

    def _call(self, method: str, path: str, body: object) -> Any:
        self._http.request(method, path, json.dumps(body).encode(), self._headers)
        answer = self._http.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)


SERVICE = Service(
    name="ours",
    send_batch=16,
    take_batch=16,
    running=our_stack,
    queue=OurQueue,
)
