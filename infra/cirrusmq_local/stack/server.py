"""The HTTP server under the gateway: uvicorn in a thread, with an end to slow requests."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cirrusmq_local.stack.gateway import Gateway

HEADER_SECONDS = 30.0
HEADER_BYTES = 16 * 1_024
KEEP_ALIVE_SECONDS = 65
STOP_SECONDS = 3
BACKLOG = 2_048


class AddressError(Exception):
    """An address cannot be used: one line with the reason and the remedy."""


class _ImpatientProtocol(HttpToolsProtocol):
    """Closes a connection whose request line and headers do not arrive in time, or never end.

    uvicorn itself waits for ever on a client that sends a byte now and then.
    """

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    """Of a request line and headers that are not whole yet."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()
        if not self._awaits_request():
            self._head_bytes = 0
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("The request line and headers are too long.")

    def on_headers_complete(self) -> None:
        if self.parser.get_http_version() == "1.1" and b"host" not in dict(self.headers):
            raise httptools.HttpParserError("a request of HTTP/1.1 names its host")
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _watch(self) -> None:
        if not self._awaits_request():
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if self._awaits_request():
            self.transport.close()

    def _awaits_request(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


class Server:
    """Answers on a port from `start` until `stop`."""

    def __init__(self, gateway: Gateway, host: str, port: int) -> None:
        """Take the port; AddressError."""
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                gateway,
                http=_ImpatientProtocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                date_header=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=STOP_SECONDS,
                backlog=BACKLOG,
            )
        )
        # In a thread, so that signals stay with the stack's main thread.
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)
        self._started = threading.Event()

    def start(self) -> None:
        """Begin to answer; returns when the port does."""
        self._thread.start()
        self._started.wait()

    def refuse(self) -> None:
        """Take no new connections any more."""
        self._server.should_exit = True

    def stop(self) -> None:
        """Let open calls end for a moment, then close."""
        self.refuse()
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        # The socket listens already: connections from here on are answered.
        self._started.set()
        await self._server.serve(sockets=[self._socket])


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
