"""A way to the service that loses answers: the service acts, then the connection is cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx


class LosingProxy:
    """Passes calls on to `url`. `lose(part)`: the next answer of a path with `part` is lost,
    and `meanwhile` runs between the service's act and the cut."""

    def __init__(self, url: str) -> None:
        self._losses: list[tuple[str, Callable[[], object]]] = []
        self.lost = 0
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        proxy = self
        upstream = httpx.Client(base_url=url, timeout=60, trust_env=False)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                proxy.paths.append(self.path)
                proxy.bodies.append(body)
                kept = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() in ("authorization", "content-type")
                }
                answer = upstream.request(self.command, self.path, content=body, headers=kept)
                if proxy._loses(urlsplit(self.path).path):
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response_only(answer.status_code)
                for name in ("date", "content-type", "content-length"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.end_headers()
                self.wfile.write(answer.content)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = pass_on  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Quietly."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._upstream = upstream
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def lose(self, part: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._losses.append((part, meanwhile))

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._upstream.close()

    def _loses(self, path: str) -> bool:
        for loss in self._losses:
            part, meanwhile = loss
            if path.endswith(part):
                self._losses.remove(loss)
                self.lost += 1
                meanwhile()
                return True
        return False
