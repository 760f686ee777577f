"""How long a published message takes to a subscriber's URL, on one machine."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from .servers import our_stack
from .table import middle, show

MESSAGES = 200


def run() -> None:
    """Print the table: from the publish call's start to the subscriber's request."""
    arrived: dict[str, float] = {}
    arrival = threading.Condition()

    class Subscriber(BaseHTTPRequestHandler):
        """Notes when each message comes."""

        def do_POST(self) -> None:
            now = time.perf_counter()
            self.rfile.read(int(self.headers["Content-Length"]))
            with arrival:
                arrived.setdefault(self.headers["x-cmq-message-id"], now)
                arrival.notify_all()
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the console is for the table."""

    subscriber = ThreadingHTTPServer(("127.0.0.1", 0), Subscriber)
    threading.Thread(target=subscriber.serve_forever, daemon=True).start()
    delays = []
    with our_stack() as stack, httpx.Client(base_url=stack.url, headers=stack.headers) as http:
        http.put("/topics/bench", json={}).raise_for_status()
        endpoint = f"http://127.0.0.1:{subscriber.server_port}/"
        body = {"protocol": "http", "endpoint": endpoint}
        http.put("/topics/bench/subscriptions/web", json=body).raise_for_status()
        for _ in range(MESSAGES):
            started = time.perf_counter()
            answer = http.post("/topics/bench/messages", json={"messages": [{"body": "x"}]})
            message_id = answer.raise_for_status().json()["messages"][0]["id"]
            with arrival:
                if not arrival.wait_for(lambda: message_id in arrived, timeout=30):  # noqa: B023
                    raise TimeoutError(f"{message_id} did not arrive")
            delays.append(1000 * (arrived[message_id] - started))
    subscriber.shutdown()
    subscriber.server_close()
    delays.sort()
    show(
        f"From publishing to the subscriber's URL, {MESSAGES} messages one after the other",
        ["median, ms", "p99, ms", "slowest, ms"],
        [(middle(delays), delays[int(0.99 * MESSAGES)], delays[-1])],
    )
