"""One client's connection: what it sends and what it is answered."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from cirrusmq_local.stack.incoming import Incoming

RECEIVED_BYTES = 64 * 1_024
LINGER_SECONDS = 0.1
"""So long a thread waits for a client's next bytes before it leaves the connection."""
SEND_SECONDS = 30.0
"""A client that takes no byte of its answer for so long is left."""
KEEP_ALIVE_SECONDS = 65.0
"""So long a connection may be idle between two requests."""


class Connection:
    """A socket that blocks, each time for a short while at most."""

    def __init__(
        self, client: socket.socket, source: str, head_seconds: float, body_seconds: float
    ) -> None:
        """`source`: the client's address."""
        client.setblocking(True)
        # Of the socket itself: a timeout of Python's takes a system call more each time.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(LINGER_SECONDS))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(SEND_SECONDS))
        self.socket = client
        self.incoming = Incoming(source, head_seconds, body_seconds)
        self._idle_until: float | None = None

    def receive(self, *, wait: bool) -> bytes | None:
        """What has come; None where nothing has, empty where the client has ended its side."""
        try:
            return self.socket.recv(RECEIVED_BYTES, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def send(self, data: bytes) -> None:
        """Send all of it, or raise OSError."""
        self.socket.sendall(data)

    def send_at_once(self, data: bytes) -> None:
        """Send a short text, or as much of it as the client takes now."""
        with contextlib.suppress(OSError):
            self.socket.send(data, socket.MSG_DONTWAIT)

    def note_answered(self) -> None:
        """The client may take its time now until its next request."""
        self._idle_until = time.monotonic() + KEEP_ALIVE_SECONDS

    @property
    def deadline(self) -> float:
        """When it is left, if nothing more comes, by the monotonic clock."""
        if self.incoming.begun or self._idle_until is None:
            return self.incoming.deadline
        return self._idle_until

    def end(self) -> None:
        """Break it off; a thread that waits for it goes on."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it; no thread may use it any more."""
        self.socket.close()


def _timeval(seconds: float) -> bytes:
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
