"""The threads that answer requests, each a connection at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from cirrusmq_local.cloud.events import Answer, Request
from cirrusmq_local.stack.connections import Connection
from cirrusmq_local.stack.gateway import Call, Gateway
from cirrusmq_local.stack.incoming import NotHttpError
from cirrusmq_local.stack.outgoing import GO_AHEAD, encode_fault

LINGERING = 64
"""So many threads wait for a client's next bytes at most; the others leave at once."""

_log = logging.getLogger(__name__)


class Answering:
    """Answers what comes on connections, which belong to one thread at a time.

    A call is in `_open` until a thread has taken it out, and that one answers it: its own, or the
    server's when its time is over.
    """

    def __init__(
        self, gateway: Gateway, leave: Callable[[Connection], None], refusing: threading.Event
    ) -> None:
        """`leave` is given connections on which nothing comes now; none while `refusing`."""
        self._gateway = gateway
        self._leave = leave
        self._refusing = refusing
        self._open: dict[str, tuple[Call, Connection]] = {}
        self._answering_for_others = threading.Lock()
        self._served: set[Connection] = set()
        self._lingering: set[Connection] = set()

    @property
    def lingering(self) -> int:
        """How many threads wait for a client's next bytes."""
        return len(self._lingering)

    @property
    def busy(self) -> bool:
        """Whether a thread has a connection."""
        return bool(self._served)

    def go_on(self, connection: Connection) -> None:
        """Something came: have a thread read and answer it."""
        self._start(connection, self._serve)

    def give_up(self, connection: Connection) -> None:
        """Nothing came in time: have a thread end it."""
        self._start(connection, self._end)

    def answer_late(self, now: float) -> None:
        """Answer the calls whose time is over, by the monotonic clock."""
        for call, connection in self._open.copy().values():
            if call.ends < now:
                self._answer_for(call, connection, self._gateway.late)

    def stop(self) -> None:
        """Answer the open calls that the service is stopping, and end all connections."""
        for call, connection in self._open.copy().values():
            self._answer_for(call, connection, self._gateway.stopping)
        for connection in self._served.copy():
            connection.end()

    def _start(self, connection: Connection, work: Callable[[Connection], bool]) -> None:
        """Do a work with a connection in a thread; it answers whether the connection goes on."""

        def run() -> None:
            goes_on = False
            try:
                goes_on = work(connection)
            except OSError:
                pass  # the client has gone
            except Exception:
                _log.exception("a request was not answered")
            if not goes_on:
                connection.close()
            self._served.discard(connection)
            if goes_on:
                self._leave(connection)

        self._served.add(connection)
        self._gateway.functions.start(run)

    def _serve(self, connection: Connection) -> bool:
        """Answer until nothing more comes."""
        incoming = connection.incoming
        while True:
            data = self._receive(connection)
            if data is None:
                return incoming.begun or not self._refusing.is_set()
            if not data:
                return False
            try:
                incoming.feed(data)
            except NotHttpError as fault:
                if self._answer_whole(connection):
                    connection.send(encode_fault(str(fault)))
                return False
            if not self._answer_whole(connection):
                return False
            if incoming.begun and incoming.deadline < time.monotonic():
                return self._end(connection)

    def _receive(self, connection: Connection) -> bytes | None:
        if self.lingering >= LINGERING:
            return connection.receive(wait=False)
        self._lingering.add(connection)
        try:
            return connection.receive(wait=True)
        finally:
            self._lingering.discard(connection)

    def _answer_whole(self, connection: Connection) -> bool:
        """Answer the requests that have come; whether the connection goes on."""
        incoming = connection.incoming
        while incoming.requests:
            request = incoming.requests.popleft()
            if not self._answer(connection, request, last=not incoming.requests):
                return False
        if incoming.refuses:
            self._refuse(connection)
            return False
        if incoming.awaits_go_ahead:
            incoming.awaits_go_ahead = False
            connection.send(GO_AHEAD)
        return True

    def _answer(self, connection: Connection, request: Request, *, last: bool) -> bool:
        gateway = self._gateway
        call = gateway.open(request)
        self._open[call.id] = call, connection
        answer = gateway.run(call)
        if self._open.pop(call.id, None) is None:
            # Another thread answers it; the connection is not closed under it.
            with self._answering_for_others:
                return False
        closing = (last and not connection.incoming.keeps_alive) or self._refusing.is_set()
        connection.note_answered()
        try:
            connection.send(gateway.encode(call, answer, closing=closing))
        finally:
            gateway.note(call, answer)
        return not closing

    def _answer_for(
        self, call: Call, connection: Connection, make: Callable[[Call], Answer]
    ) -> None:
        """Answer a call whose own thread is still at work, and end its connection."""
        with self._answering_for_others:
            if self._open.pop(call.id, None) is None:
                return
            answer = make(call)
            connection.send_at_once(self._gateway.encode(call, answer, closing=True))
            connection.end()
        self._gateway.note(call, answer)

    def _end(self, connection: Connection) -> bool:
        """Its time is over."""
        connection.incoming.give_up()
        if connection.incoming.refuses:
            self._refuse(connection)
        return False

    def _refuse(self, connection: Connection) -> None:
        refusal = connection.incoming.refusal
        assert refusal is not None
        call = self._gateway.open_refused()
        answer = self._gateway.refuse(refusal, call)
        connection.send(self._gateway.encode(call, answer, closing=True))
        self._gateway.note(call, answer)
