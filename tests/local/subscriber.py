"""An HTTP endpoint of a subscriber, that fails as a test wants and notes when what came."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler
from typing import Any

from cirrusmq_local.testing.webhooks import DeliveryServer

HANG_SECONDS = 5


class Subscriber:
    """Answers 204; paths in `failing` are answered with 500, in `hanging` not for a while."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.hanging: set[str] = set()
        self.times: dict[tuple[str, str], list[float]] = defaultdict(list)
        """(path, body) -> real seconds of each attempt."""
        self.order: dict[str, list[str]] = defaultdict(list)
        """Path -> the bodies of its attempts."""
        self.accepted: Counter[str] = Counter()
        subscriber = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                at = time.monotonic()
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                path = self.path.strip("/")
                subscriber.times[path, body].append(at)
                subscriber.order[path].append(body)
                if path in subscriber.hanging:
                    time.sleep(HANG_SECONDS)
                    return
                refused = path in subscriber.failing
                if not refused:
                    subscriber.accepted[path] += 1
                self.send_response(500 if refused else 204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = DeliveryServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{path}"

    def attempts(self, path: str) -> Counter[str]:
        """Body -> how often it came to this path."""
        return Counter(tuple(self.order[path]))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
