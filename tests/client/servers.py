"""A server that answers every call alike, also by TLS, and in the place of a proxy."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from cryptography.x509 import DNSName
from tests.certificates import Authority


class Server:
    """At `url`; by TLS if it is given a folder, for the file of its authority. Notes what came."""

    def __init__(self, folder: Path | None = None, host: str = "localhost") -> None:
        self.paths: list[str] = []
        self.proxy_keys: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                server.paths.append(self.path)
                server.proxy_keys.append(self.headers["proxy-authorization"])
                body = json.dumps({"queues": [], "port": self.client_address[1]}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def refuse(self) -> None:
                server.paths.append(self.path)
                self.send_error(407)

            do_GET = answer  # noqa: N815
            do_CONNECT = refuse  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Quietly."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        scheme = "http"
        if folder is not None:
            authority = Authority(folder)
            self.authority = authority.file
            context = authority.serving(DNSName(host))
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://localhost:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
