"""A way to the service that cuts connections."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


def _read_message(connection: socket.socket) -> bytes:
    """One request, or answer, with its body; nothing at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        some = connection.recv(65_536)
        if not some:
            return b""
        data += some
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


class Cutter:
    """A way to the service that cuts connections: after the request, or in the midst of it."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        self._target = place.hostname, place.port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.loses = 0
        """So many answers are lost."""
        self.passes: int | None = None
        """Of the next request so many bytes pass; None: all."""
        self.requests = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as service, suppress(OSError):
            while data := _read_message(client):
                self.requests += 1
                if self.passes is not None:
                    service.sendall(data[: self.passes])
                    self.passes = None
                    return
                service.sendall(data)
                answer = _read_message(service)
                if self.loses:
                    self.loses -= 1
                    return
                client.sendall(answer)
