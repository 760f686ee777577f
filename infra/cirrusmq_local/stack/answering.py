"""Serves a connection in its own greenlet: reads requests and answers them."""

from __future__ import annotations

import logging
import time

from cirrusmq_local.cloud.events import Answer, Request
from cirrusmq_local.hub import Hub, Task
from cirrusmq_local.stack.connections import Connection
from cirrusmq_local.stack.gateway import Call, Gateway
from cirrusmq_local.stack.incoming import NotHttpError
from cirrusmq_local.stack.outgoing import GO_AHEAD, encode_fault

_log = logging.getLogger(__name__)


class Answering:
    """Serves the server's connections. All methods are for the hub's thread.

    A function that does not give way runs in a thread; after its timeout, its call is answered
    without it. A function that gives way ends in time, as each call of the store checks the time.

        read ─ function ─ send ─ read ─ function ······························> (no answer)
                                            └ late, or the stack stops ─ send
    """

    def __init__(self, gateway: Gateway, hub: Hub) -> None:
        self._gateway = gateway
        self._hub = hub
        self._connections: set[Connection] = set()
        self._working = 0
        self._aside: set[Task[Answer]] = set()
        self._refusing = self._stopping = False

    @property
    def connected(self) -> int:
        """Number of connected clients."""
        return len(self._connections)

    @property
    def busy(self) -> bool:
        """True if a call is under way."""
        return self._working > 0

    def begin(self, connection: Connection) -> None:
        """Serves a client, in a new greenlet, until the connection ends."""
        self._connections.add(connection)
        self._hub.start(lambda: self._serve(connection))

    def refuse(self) -> None:
        """Closes idle connections now, and the others after their answers."""
        self._refusing = True
        for connection in self._connections:
            connection.leave_if_idle()

    def stop(self) -> None:
        """Refuses all calls under way, because the service is stopping."""
        self._stopping = True
        for task in self._aside:
            task.give_up()

    def end(self) -> None:
        """Breaks off all connections."""
        for connection in self._connections:
            connection.end()

    def _serve(self, connection: Connection) -> None:
        try:
            while self._answer_next(connection):
                pass
        except OSError:
            pass  # the client has gone
        except Exception:
            _log.exception("a request was not answered")
        finally:
            self._connections.discard(connection)
            connection.close()

    def _answer_next(self, connection: Connection) -> bool:
        """Reads once and answers complete requests. Returns True if the connection goes on."""
        incoming = connection.incoming
        if self._refusing and not incoming.begun:
            return False
        data = connection.receive()
        if data is None:
            return self._end(connection)
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
        return True

    def _answer_whole(self, connection: Connection) -> bool:
        """Serves all complete requests. Returns True if the connection goes on."""
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
        call = self._gateway.open(request)
        self._working += 1
        try:
            answer = self._run_watched(connection, call) if call.receives else self._run(call)
        finally:
            self._working -= 1
        if call.receives and connection.has_gone():
            self._gateway.take_back(answer)
            return False
        in_time = answer is not None
        if answer is None:
            instead = self._gateway.stopping if self._stopping else self._gateway.late
            answer = instead(call)
        ends = last and not connection.incoming.keeps_alive
        closing = ends or not in_time or self._refusing
        connection.note_answered()
        try:
            connection.send(self._gateway.encode(call, answer, closing=closing))
        except OSError:
            if call.receives:
                self._gateway.take_back(answer)
            raise
        finally:
            self._gateway.note(call, answer)
        return not closing

    def _run(self, call: Call) -> Answer | None:
        """Returns the function's answer, or None if the function takes too long."""
        return self._gateway.run(call) if call.gives_way else self._run_aside(call)

    def _run_watched(self, connection: Connection, call: Call) -> Answer | None:
        """As `_run` unless the client has gone; if it goes later, a waiting call ends at once."""
        with connection.watched():
            return None if connection.has_gone() else self._run(call)

    def _run_aside(self, call: Call) -> Answer | None:
        """Runs a function in a thread. Returns its answer, or None if it takes too long."""
        task = self._hub.start_aside(lambda: self._gateway.run(call))
        self._aside.add(task)
        try:
            return task.outcome() if task.wait(call.ends) else None
        finally:
            self._aside.discard(task)

    def _end(self, connection: Connection) -> bool:
        """Ends a connection whose request did not arrive in time."""
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
