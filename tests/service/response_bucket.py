"""S3 as CloudFormation's answers reach it: HTTPS on this machine, under the bucket's own name."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.x509 import DNSName
from tests.certificates import Authority

HOST = "cloudformation-custom-resource-response-eucentral1.s3.eu-central-1.amazonaws.com"


class ResponseBucket:
    """Takes answers; `statuses` are those of the next ones, after them it is 200."""

    def __init__(self, folder: Path) -> None:
        self.answers: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        authority = Authority(folder)
        self.authority = authority.file
        serving = authority.serving(DNSName(HOST))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._server.socket = serving.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def url(self, number: int) -> str:
        return f"https://{HOST}/arn%3Aaws%3Acloudformation%3A{number}?X-Amz-Signature=a%2Bb"

    def connect(self, address: tuple[str, int], *args: Any, **options: Any) -> socket.socket:
        """A connection to it, in the place of one to S3."""
        assert address == (HOST, 443)
        return socket.create_connection(("127.0.0.1", self._server.server_port), 5.0)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = bucket.statuses.pop(0) if bucket.statuses else 200
                if status == 200:
                    bucket.answers.append(json.loads(body))
                    bucket.headers.append({k.lower(): v for k, v in self.headers.items()})
                    bucket.paths.append(self.path)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        return Handler
