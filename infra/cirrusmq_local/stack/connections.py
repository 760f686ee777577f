"""One client's connection: what it sends and what it is answered."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

from cirrusmq_local.hub import READ, WRITE, Channel, Hub, caller
from cirrusmq_local.stack.incoming import Incoming

RECEIVED_BYTES = 64 * 1_024
SEND_SECONDS = 30.0
"""A client that takes no byte of its answer for so long is left."""
KEEP_ALIVE_SECONDS = 65.0
"""So long a connection may be idle between two requests."""


class Connection:
    """A client's socket, for one greenlet."""

    def __init__(
        self,
        hub: Hub,
        client: socket.socket,
        source: str,
        head_seconds: float,
        body_seconds: float,
    ) -> None:
        """`source`: the client's address."""
        self._hub = hub
        self._channel = Channel(client)
        self._socket = client
        self.incoming = Incoming(source, head_seconds, body_seconds)
        self._idle_until: float | None = None

    def receive(self) -> bytes | None:
        """What comes next, empty where the client has ended its side; None if it took too long."""
        while self._hub.wait_for(self._channel, READ, self._deadline):
            with contextlib.suppress(BlockingIOError):
                return self._socket.recv(RECEIVED_BYTES)
        return None

    def send(self, data: bytes) -> None:
        """Send all of it, or raise OSError."""
        rest = memoryview(data)
        while True:
            with contextlib.suppress(BlockingIOError):
                rest = rest[self._socket.send(rest) :]
            if not rest:
                return
            if not self._hub.wait_for(self._channel, WRITE, time.monotonic() + SEND_SECONDS):
                raise TimeoutError("the client takes nothing of its answer")

    def note_answered(self) -> None:
        """The client may take its time now until its next request."""
        self._idle_until = time.monotonic() + KEEP_ALIVE_SECONDS

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Have what sleeps in here end if the client ends its side.

        A client that ends its sending side alone, to read the answer to what it asked, cannot be
        told from one that has gone, and gets none. What it sends in the meantime is its next
        request: then its end is seen no more.
        """
        self._hub.watch(self._channel)
        token = caller.set(self._channel)
        try:
            yield
        finally:
            caller.reset(token)

    def has_gone(self) -> bool:
        """Whether the client has ended its side, as far as it was watched or can be seen now."""
        if not self._channel.ended:
            self._channel.look()
        return self._channel.ended

    def leave_if_idle(self) -> None:
        """Wait no longer for a request that has not begun."""
        if not self.incoming.begun:
            self._hub.leave(self._channel)

    def end(self) -> None:
        """Break it off; its greenlet goes on."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._hub.leave(self._channel)

    def close(self) -> None:
        """Close it; its greenlet may not use it any more."""
        self._hub.forget(self._channel)
        self._socket.close()

    @property
    def _deadline(self) -> float:
        """When it is left, if nothing more comes, by the monotonic clock."""
        if self.incoming.begun or self._idle_until is None:
            return self.incoming.deadline
        return self._idle_until
