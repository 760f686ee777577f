"""A proxy that loses answers and cuts connections, in front of one server.

client ── request ──> proxy ── request ──> service
       x── closed ──        <── answer ───            the work is done, and the client hears nothing
       x── closed ──                                  or nothing arrived

For HTTPS clients ask it by CONNECT, and it carries bytes that it cannot read.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading

_CHUNK = 65_536


class Proxy:
    """Listens on a free port of this machine, within `with`."""

    def __init__(
        self, host: str, port: int, *, seed: int, lost: float, cut: float, http: bool = True
    ) -> None:
        """lost, cut: the share of answers that are thrown away, and of requests.

        http: False for a protocol whose server may speak first.
        """
        self._target, self._http = (host, port), http
        self._random = random.Random(seed)
        self._lost, self._cut = lost, cut
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.on = False
        """True while it makes faults."""
        self.faults = {"answers lost": 0, "requests cut": 0}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.close_all()

    def close_all(self) -> None:
        """Closes all connections that are open now."""
        with self._lock:
            for each in self._open:
                _shut(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, self._kept(client):
            try:
                first = client.recv(_CHUNK) if self._http else b""
                tunnel = first.startswith(b"CONNECT ")
                upstream = socket.create_connection(self._target, 10)
            except OSError:
                return
            with upstream, self._kept(upstream):
                upstream.settimeout(None)
                back = threading.Thread(target=self._carry_back, args=(upstream, client))
                try:
                    if tunnel:
                        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    back.start()
                    data = b"" if tunnel else first
                    while data or (data := client.recv(_CHUNK)):
                        if self._happens(self._cut, "requests cut"):
                            break
                        upstream.sendall(data)
                        data = b""
                except OSError:
                    pass
                _shut(upstream)
                _shut(client)
                back.join()

    def _carry_back(self, upstream: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := upstream.recv(_CHUNK):
                if self._happens(self._lost, "answers lost"):
                    break
                client.sendall(data)
        _shut(upstream)
        _shut(client)

    def _happens(self, share: float, kind: str) -> bool:
        with self._lock:
            if not self.on or self._random.random() >= share:
                return False
            self.faults[kind] += 1
            return True

    @contextlib.contextmanager
    def _kept(self, connection: socket.socket):  # type: ignore[no-untyped-def]
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
