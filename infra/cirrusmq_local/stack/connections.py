"""One client's connection: reads from its socket and writes to it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

from cirrusmq_local.hub import READ, WRITE, Channel, Hub, caller
from cirrusmq_local.stack.incoming import Incoming

RECEIVED_BYTES = 64 * 1_024
SEND_SECONDS = 30.0
"""A connection is closed if its client takes no byte of an answer for this time."""
KEEP_ALIVE_SECONDS = 65.0
"""Maximum time that a connection may be idle between two requests."""


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
        """Returns the next bytes, empty if the client ended its side, None after the deadline."""
        while self._hub.wait_for(self._channel, READ, self._deadline):
            with contextlib.suppress(BlockingIOError):
                return self._socket.recv(RECEIVED_BYTES)
        return None

    def send(self, data: bytes) -> None:
        """Sends all of the data. Raises OSError if the client has gone or takes too long."""
        rest = memoryview(data)
        while True:
            with contextlib.suppress(BlockingIOError):
                rest = rest[self._socket.send(rest) :]
            if not rest:
                return
            if not self._hub.wait_for(self._channel, WRITE, time.monotonic() + SEND_SECONDS):
                raise TimeoutError("the client takes nothing of its answer")

    def note_answered(self) -> None:
        """Notes that a request was answered: from now on the connection is idle."""
        self._idle_until = time.monotonic() + KEEP_ALIVE_SECONDS

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Ends sleeps within the context if the client ends its side.

        A client that ends only its sending side, to read the answer, cannot be distinguished from
        one that has gone, and gets no answer. If it sends bytes in the meantime, they are its next
        request, and its end is no longer noticed.
        """
        self._hub.watch(self._channel)
        token = caller.set(self._channel)
        try:
            yield
        finally:
            caller.reset(token)

    def has_gone(self) -> bool:
        """Returns True if the client has ended its side, by the watch or by a look now."""
        if not self._channel.ended:
            self._channel.look()
        return self._channel.ended

    def leave_if_idle(self) -> None:
        """Stops the wait for the next request if none has begun."""
        if not self.incoming.begun:
            self._hub.leave(self._channel)

    def end(self) -> None:
        """Breaks the connection off; its greenlet goes on."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._hub.leave(self._channel)

    def close(self) -> None:
        """Closes the socket; its greenlet may not use it after this."""
        self._hub.forget(self._channel)
        self._socket.close()

    @property
    def _deadline(self) -> float:
        """Time, by the monotonic clock, at which the connection ends if no bytes come."""
        if self.incoming.begun or self._idle_until is None:
            return self.incoming.deadline
        return self._idle_until
