"""Calls of a client that sends, receives and deletes in its own process, on the SDK's client."""

from __future__ import annotations

import time
from typing import Any

import botocore.session

from cirrusmq.wiring.bootstrap import make_dynamodb
from cirrusmq_local.engine import attach
from cirrusmq_local.testing.world import World

from ..counted import bodies
from ..counted.own_lives import OwnClient

_SIZE = 1_024


class OwnProcess:
    """A client in a process, and a queue with one partition that it may call."""

    def __init__(self) -> None:
        client = make_dynamodb(botocore.session.Session(), "us-east-1")
        self._own = OwnClient(partitions=1, client=client)
        attach(self.world.engine, client)
        self._called = 0
        execute = self.world.engine.execute

        def counted(*arguments: Any, **named: Any) -> Any:
            self._called += 1
            return execute(*arguments, **named)

        self.world.engine.execute = counted  # type: ignore[method-assign]

    @property
    def world(self) -> World:
        """The world of the queue."""
        return self._own.world

    def send(self, count: int) -> tuple[float, int]:
        """Sends messages in a call. Returns CPU seconds and store calls."""
        took, calls, _ = self._timed("", {"messages": [bodies.text(_SIZE) for _ in range(count)]})
        return took, calls

    def take(self, count: int) -> tuple[float, int]:
        """Receives and deletes messages. Returns CPU seconds and store calls of both."""
        # Messages sent in one millisecond are in the order of random ids.
        self.world.clock.pass_seconds(0.001)
        asked = {"max": count, "wait_seconds": 0}
        receive, reads, received = self._timed("/receive", asked)
        receipts = [message["receipt"] for message in received["messages"]]
        delete, deletes, gone = self._timed("/delete", {"receipts": receipts})
        assert len(gone["deleted"]) == count
        return receive + delete, reads + deletes

    def _timed(self, kind: str, body: dict[str, Any]) -> tuple[float, int, dict[str, Any]]:
        before = self._called
        began = time.process_time()
        answer = self._own.call(kind, body)
        return time.process_time() - began, self._called - before, answer
