"""The whole service on one machine, by the client library's producer and consumer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from cirrusmq_client import Client as Calls
from cirrusmq_client import Connection, Consumer, Producer, Received, Retry

from ...rivals.servers import free_port, wait_for_answer
from .. import QUEUE, Peer, Place, Terms
from ..program import Program


class Ours:
    """A producer, or a consumer with one thread for handlers."""

    def __init__(self, place: Place, terms: Terms) -> None:
        made = json.loads((place.folder / "connection.json").read_text())
        url = f"http://127.0.0.1:{place.port}"
        self._calls = Calls(
            Connection(url=url, access_key_id=made["access_key_id"], secret=made["secret"])
        )
        self._producer = Producer(self._calls)
        self._terms = terms

    def send(self, body: str) -> None:
        """Makes one send, which the library repeats with its token."""
        self._producer.send(QUEUE, body)

    def work(self, handle: Callable[[str], bool]) -> None:
        """Runs the library's consumer."""

        def handler(message: Received) -> Retry | None:
            return None if handle(message.text) else Retry(after=self._terms.retry_seconds)

        Consumer(QUEUE, handler, client=self._calls, workers=1).run()

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Receives in batches."""
        held: list[Received] = []
        while len(held) < count:
            held += self._calls.receive(QUEUE, min(16, count - len(held)), wait_seconds=1)
        wait()
        for first in range(0, count, 16):
            some = held[first : first + 16]
            self._calls.delete(QUEUE, [message.receipt for message in some])
        return [message.text for message in held]

    def close(self) -> None:
        """Ends the connections."""
        self._calls.close()


def _server(folder: Path) -> Program:
    port = free_port()
    cirrusmq = str(Path(sys.executable).with_name("cirrusmq"))
    command = [cirrusmq, "up", "--port", str(port), "--data", str(folder), "--dialect-port", "0"]
    answers = f"http://127.0.0.1:{port}/health"
    return Program(
        command, port, folder.parent / "server.log", answers=lambda: wait_for_answer(answers)
    )


def _create(place: Place, terms: Terms) -> None:
    calls = Ours(place, terms)._calls
    calls.create_queue(QUEUE, {"visibility_timeout_seconds": terms.lease_seconds})
    calls.close()


PEER = Peer(
    name="ours",
    durable="fsync before each answer",
    server=_server,
    create=_create,
    client=Ours,
)
