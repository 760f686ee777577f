"""The HTTP server under the gateway: one thread, in which each connection has a greenlet."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from cirrusmq_local.hub import CHECK_SECONDS, READ, Channel, Hub
from cirrusmq_local.stack.answering import Answering
from cirrusmq_local.stack.connections import Connection
from cirrusmq_local.stack.gateway import Gateway

HEADER_SECONDS = 30.0
STOP_SECONDS = 3.0
BACKLOG = 2_048


class AddressError(Exception):
    """An address cannot be used. The text has the reason and the remedy, in one line."""


class Server:
    """Serves a port from `start` until `stop`.

    ::

        answers ──refuse──> takes no connections ──calls have ended, or 3 s──> closed
    """

    def __init__(self, gateway: Gateway, host: str, port: int) -> None:
        """Takes the port. Raises AddressError if it cannot be used."""
        self._gateway = gateway
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._hub = Hub(gateway.functions.start)
        self._answering = Answering(gateway, self._hub)
        self._refusing = threading.Event()
        # In a separate thread, so that signals stay with the stack's main thread.
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    @property
    def busy(self) -> bool:
        """True if a call is under way."""
        return self._answering.busy

    @property
    def connected(self) -> int:
        """Number of connected clients."""
        return self._answering.connected

    def start(self) -> None:
        """Starts the thread that answers; the port listens already."""
        self._thread.start()

    def refuse(self) -> None:
        """Takes no new connections from now on."""
        self._refusing.set()
        self._hub.post(lambda: None)

    def stop(self) -> None:
        """Gives open calls some seconds to end, then closes."""
        self.refuse()
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()
        self._hub.close()

    def _run(self) -> None:
        listening = Channel(self._socket)
        self._hub.start(lambda: self._accept(listening))
        while not self._refusing.is_set():
            self._hub.turn(CHECK_SECONDS)
        self._hub.leave(listening)
        until = time.monotonic() + STOP_SECONDS
        self._answering.refuse()
        while self._answering.busy and time.monotonic() < until:
            # The clock on which calls sleep may have stopped in the meantime.
            self._hub.wake_sleepers()
            self._hub.turn(CHECK_SECONDS)
        self._answering.stop()
        self._hub.turn(0)
        self._answering.end()
        self._hub.turn(0)

    def _accept(self, listening: Channel) -> None:
        seconds = HEADER_SECONDS, self._gateway.body_seconds
        while self._hub.wait_for(listening, READ, float("inf")):
            try:
                client, address = self._socket.accept()
                self._answering.begin(Connection(self._hub, client, address[0], *seconds))
            except BlockingIOError:
                continue
            except OSError:  # no descriptor is left, or the client has gone
                self._hub.sleep(CHECK_SECONDS, self._refusing.is_set)
        self._hub.forget(listening)
        self._socket.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return _bind(host, port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressError(
            f"cannot answer on {host}:{port}: {reason}: take another --port or --host"
            " (make up PORT=9000)"
        ) from error


def _bind(host: str, port: int) -> socket.socket:
    family: Any = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # An answer is small and written whole: to wait for more bytes would only delay it.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
