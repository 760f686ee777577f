"""An HTTP subscriber that notes when each message first comes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import httpx

from cirrusmq_local.testing.webhooks import DeliveryServer

REFUSED = "refused"
TAKEN = "taken"


class Subscriber:
    """Takes what is posted to `url(TAKEN)`, answers 500 at `url(REFUSED)`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._came: dict[str, float] = {}
        self._changed = threading.Condition()

    def url(self, path: str) -> str:
        """An endpoint of this subscriber."""
        return f"http://127.0.0.1:{self._port}/{path}"

    def note(self, message_id: str) -> None:
        """A message was taken."""
        now = time.perf_counter()
        with self._changed:
            self._came.setdefault(message_id, now)
            self._changed.notify_all()

    def wait_for(self, message_ids: list[str], seconds: float = 60) -> list[float]:
        """When each of these messages came, by `time.perf_counter`; TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._came.keys() >= set(message_ids), seconds):
                raise TimeoutError("messages did not arrive")
            return [self._came[message_id] for message_id in message_ids]


@contextlib.contextmanager
def subscriber() -> Iterator[Subscriber]:
    """A subscriber that listens while it is used."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            taken = self.path == f"/{TAKEN}"
            if taken:
                made.note(self.headers["x-cmq-message-id"])
            self.send_response(204 if taken else 500)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the console is for the table."""

    server = DeliveryServer(("127.0.0.1", 0), Handler)
    made = Subscriber(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def delays(http: httpx.Client, topic: str, at: Subscriber, count: int) -> list[float]:
    """Milliseconds from the publish call to the subscriber's request, one message after another."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        answer = http.post(f"/topics/{topic}/messages", json={"messages": [{"body": "x"}]})
        message_id = answer.raise_for_status().json()["messages"][0]["id"]
        found += [1_000 * (came - began) for came in at.wait_for([message_id])]
    return found
