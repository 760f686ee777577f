"""Sends, receives and deletes of one queue, with the CPU and the store calls of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from cirrusmq_local.testing.world import World

from ..counted import bodies

SIZE = 1_024


class TimedCalls(ABC):
    """A client of a queue with one partition; its messages have 1 KB."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.store_calls = 0
        """Calls of the store since it was made."""
        execute = world.engine.execute

        def counted(*arguments: Any, **named: Any) -> Any:
            self.store_calls += 1
            return execute(*arguments, **named)

        world.engine.execute = counted  # type: ignore[method-assign]

    @abstractmethod
    def timed(self, name: str, body: Any) -> tuple[float, int, Any]:
        """Returns CPU seconds, store calls and answer of `send`, `receive` or `delete`."""

    def send(self, count: int) -> tuple[float, int]:
        """Sends messages in a call. Returns CPU seconds and store calls."""
        took, calls, _ = self.timed("send", {"messages": [bodies.text(SIZE) for _ in range(count)]})
        return took, calls

    def take(self, count: int) -> tuple[float, int]:
        """Receives and deletes messages. Returns CPU seconds and store calls of both."""
        # Messages sent in one millisecond are in the order of random ids.
        self.world.clock.pass_seconds(0.001)
        asked = {"max": count, "wait_seconds": 0}
        receive, reads, received = self.timed("receive", asked)
        receipts = [message["receipt"] for message in received["messages"]]
        delete, deletes, gone = self.timed("delete", {"receipts": receipts})
        assert len(gone["deleted"]) == count
        return receive + delete, reads + deletes
