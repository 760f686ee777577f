"""The HTTP server under the gateway: a thread that watches connections, and threads that answer.

A request is read, answered by its function and sent in one thread, which then waits a moment for
the same client's next request: a change of threads costs as much as the reading of a request.

    watcher     ──readable──> thread: read ─ function ─ send ─ linger ─ read ─ function ─ send …
       ^                                                          └─ nothing more ─┐
       └────────────────────────────────────────────────────────────────────── watched again
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from typing import Any

from cirrusmq_local.stack.answering import Answering
from cirrusmq_local.stack.connections import Connection
from cirrusmq_local.stack.gateway import Gateway

HEADER_SECONDS = 30.0
STOP_SECONDS = 3.0
BACKLOG = 2_048
CHECK_SECONDS = 0.25
"""So often it is looked whose time is over."""


class AddressError(Exception):
    """An address cannot be used: one line with the reason and the remedy."""


class Server:
    """Answers on a port from `start` until `stop`."""

    def __init__(self, gateway: Gateway, host: str, port: int) -> None:
        """Take the port; AddressError."""
        self._gateway = gateway
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for each in (self._woken, self._waker, self._socket):
            each.setblocking(False)
        self._returned: deque[Connection] = deque()
        """Connections that are to be watched again."""
        self._refusing = threading.Event()
        self._answering = Answering(gateway, self._watch_again, self._refusing)
        # A thread of its own, so that signals stay with the stack's main thread.
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    @property
    def busy(self) -> bool:
        """Whether a thread has a connection."""
        return self._answering.busy

    @property
    def lingering(self) -> int:
        """How many threads wait for a client's next bytes."""
        return self._answering.lingering

    def start(self) -> None:
        """Begin to answer: the port listens already."""
        self._thread.start()

    def refuse(self) -> None:
        """Take no new connections any more."""
        self._refusing.set()
        self._wake()

    def stop(self) -> None:
        """Let open calls end for a moment, then close."""
        self.refuse()
        if self._thread.ident is not None:
            self._thread.join()
        for each in (self._selector, self._socket, self._woken, self._waker):
            each.close()

    def _watch_again(self, connection: Connection) -> None:
        self._returned.append(connection)
        self._wake()

    def _wake(self) -> None:
        try:
            self._waker.send(b"\0")
        except OSError:  # it is awake, or has ended
            return

    def _run(self) -> None:
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(self._socket, selectors.EVENT_READ)
        checked = time.monotonic()
        while not self._refusing.is_set():
            self._step()
            if time.monotonic() - checked >= CHECK_SECONDS:
                checked = time.monotonic()
                self._check(checked)
        self._selector.unregister(self._socket)
        self._socket.close()
        until = time.monotonic() + STOP_SECONDS
        while time.monotonic() < until:
            self._leave_idle()
            if not self._answering.busy:
                break
            self._step()
            self._check(time.monotonic())
        self._answering.stop()
        for connection in (*self._watched(), *self._returned):
            connection.close()

    def _step(self) -> None:
        """Wait until something happens, and have it done."""
        for key, _ in self._selector.select(CHECK_SECONDS):
            if key.data is not None:
                self._selector.unregister(key.fileobj)
                self._answering.go_on(key.data)
            elif key.fileobj is self._woken:
                self._woken.recv(4_096)
            else:
                self._accept()
        while self._returned:
            connection = self._returned.popleft()
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def _accept(self) -> None:
        try:
            client, address = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is left, or the client has gone
            time.sleep(CHECK_SECONDS)
            return
        seconds = HEADER_SECONDS, self._gateway.body_seconds
        connection = Connection(client, address[0], *seconds)
        self._selector.register(client, selectors.EVENT_READ, connection)

    def _check(self, now: float) -> None:
        """Part with those whose time is over."""
        for connection in self._watched():
            if connection.deadline < now:
                self._selector.unregister(connection.socket)
                self._answering.give_up(connection)
        self._answering.answer_late(now)

    def _leave_idle(self) -> None:
        for connection in self._watched():
            if not connection.incoming.begun:
                self._selector.unregister(connection.socket)
                connection.close()

    def _watched(self) -> list[Connection]:
        return [key.data for key in self._selector.get_map().values() if key.data is not None]


def _listen(host: str, port: int) -> socket.socket:
    try:
        return _bind(host, port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressError(
            f"cannot answer on {host}:{port}: {reason}: take another --port or --host"
        ) from error


def _bind(host: str, port: int) -> socket.socket:
    family: Any = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Answers are small and written whole; waiting for more to send would only delay them.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
