"""Units and calls of messages that producers of one client send soon, by the library's own code.

Each of 16 producers has one message, as 16 threads of a web server that send at the same time. The
first one's linger ends, and its call takes the others' messages along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from cirrusmq_client import Client, Message, Producer
from cirrusmq_local.testing import World

from .cost import Usage, gathered_usage
from .lives import Workload, metering_units, units_of

_LONG_LINGER = 10.0
"""Seconds: a flush ends it, so that the count does not depend on the machine."""


class CountedClient:
    """The only method of a client that `send_soon` calls, on a world; it counts its calls."""

    def __init__(self, world: World) -> None:
        self.alice = world.client("alice")
        self.calls = 0

    def send_each(self, queue: str, messages: Sequence[Message]) -> Sequence[Any]:
        """Sends the messages in one call."""
        self.calls += 1
        body = {"messages": [{"body": each.body} for each in messages], "atomic": False}
        sent: list[Any] = self.alice.post(f"/queues/{queue}/messages", body).json["messages"]
        return sent


def lingered_life(workload: Workload, producers: int) -> tuple[tuple[float, float], int]:
    """Returns ((write units, read units), sends) of a workload, received in one call.

    The receive deletes the previous messages. Raises RuntimeError if a message is missing.
    """
    world = World()
    client = CountedClient(world)
    client.alice.put("/queues/work")
    made = [Producer(cast(Client, client), linger=_LONG_LINGER, sends=1) for _ in range(producers)]
    done: list[str] = []

    def turn() -> None:
        nonlocal done
        for number, message in enumerate(workload.messages()):
            made[number % producers].send_soon("work", message["body"])
        for producer in made:
            producer.flush()
        request = {"max": 16, "delete": done}
        answer = client.alice.post("/queues/work/messages/receive", request).json
        if len(answer["messages"]) != workload.count:
            raise RuntimeError(f"not all was received: {answer}")
        done = [message["receipt"] for message in answer["messages"]]

    turn()
    before = client.calls
    units = units_of(world, turn)
    sends = client.calls - before
    for producer in made:
        producer.close()
    return units, sends


def lingered(workload: Workload, producers: int = 16) -> Usage:
    """Returns the use of messages that producers send soon, received together."""
    units, sends = lingered_life(workload, producers)
    return gathered_usage(workload, units, metering_units(), sends)
