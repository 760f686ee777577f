"""S3 as CloudFormation's answers reach it: HTTPS on this machine, under the bucket's own name."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "cloudformation-custom-resource-response-eucentral1.s3.eu-central-1.amazonaws.com"


class ResponseBucket:
    """Takes answers; `statuses` are those of the next ones, after them it is 200."""

    def __init__(self, folder: Path) -> None:
        self.answers: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self.authority = folder / "authority.pem"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._server.socket = self._serving(folder).wrap_socket(
            self._server.socket, server_side=True
        )
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

    def _serving(self, folder: Path) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a bucket")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.KeyUsage(True, False, False, False, False, True, True, False, False),
                critical=True,
            )
            .sign(key, hashes.SHA256())
        )
        self.authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private = folder / "key.pem"
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.authority, private)
        return context
