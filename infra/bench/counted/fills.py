"""Receives of single messages in several partitions: calls and read units for a message.

Each message was sent separately. A consumer receives up to 16 until it has all. Then 16 consumers,
each in a separate environment, receive at once: all read before the first one claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import show

PARTITIONS = (1, 4, 16, 64)
WAITING = (1, 4, 16, 64)
CONSUMERS, AT_ONCE_WAITING = 16, (16, 64, 256)
BATCH = 16
_TRIALS = 30
"""Number of trials for a mean."""
_LEASE_SECONDS = 43_200


def run() -> None:
    """Prints both tables."""
    show(
        f"Singles that wait, received up to {BATCH} at once: calls / read units a message",
        ["waiting", *map(_partitions, PARTITIONS)],
        [
            [waiting, *("{:.3g} / {:.3g}".format(*filled(count, waiting)) for count in PARTITIONS)]
            for waiting in WAITING
        ],
    )
    show(
        f"{CONSUMERS} receives of {BATCH} at once: messages / empty answers / refused claims",
        ["waiting", *map(_partitions, PARTITIONS)],
        [
            [waiting, *("{} / {} / {}".format(*at_once(count, waiting)) for count in PARTITIONS)]
            for waiting in AT_ONCE_WAITING
        ],
    )


def filled(partitions: int, waiting: int) -> tuple[float, float]:
    """Returns means of (calls, read units) for a message, until all are received."""
    world, alice = _queue(partitions)
    calls, units = 0, 0.0
    for _ in range(_TRIALS):
        _send(world, alice, waiting)
        world.clock.pass_seconds(31)  # receivers' cached heads have expired
        received = 0
        world.engine.reset_capacity()
        receipts: list[str] = []
        while received < waiting:
            messages = alice.receive("work", BATCH)
            received += len(messages)
            receipts += [message["receipt"] for message in messages]
            calls += 1
        units += world.engine.capacity()["by_table"][world.tables.messages]["read_units"]
        for first in range(0, len(receipts), BATCH):
            some = receipts[first : first + BATCH]
            alice.post("/queues/work/messages/delete", {"receipts": some})
    world.engine.close()
    return calls / (_TRIALS * waiting), units / (_TRIALS * waiting)


def at_once(partitions: int, waiting: int) -> tuple[int, int, int]:
    """Returns (received messages, empty answers, refused claims) of simultaneous receives."""
    world, alice = _queue(partitions)
    _send(world, alice, waiting)
    world.clock.pass_seconds(5)
    crowd = _Crowd(world, alice)
    answers = crowd.receive()
    world.engine.close()
    return sum(answers), answers.count(0), crowd.refused


class _Crowd:
    """Receives of many environments; each begins when the previous one is about to claim."""

    def __init__(self, world: World, client: Client) -> None:
        self._world, self._client = world, client
        self.refused = 0
        self._execute = world.engine.execute
        self._others: Iterator[Callable[[], None]] = iter(())
        world.engine.execute = self._first_the_others  # type: ignore[method-assign]

    def receive(self) -> list[int]:
        """Returns the number of messages in each receive, the first one last."""
        answers: list[int] = []

        def receive(number: int) -> None:
            self._world.core = replace(self._world.core, memories={})
            answers.append(len(self._client.receive("work", BATCH)))

        self._others = iter([partial(receive, number) for number in range(1, CONSUMERS)])
        receive(0)
        for left in self._others:
            left()
        return answers

    def _first_the_others(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        claims = operation == "UpdateItem" and "Q#" in str(request["Key"])
        if claims and (other := next(self._others, None)) is not None:
            core = self._world.core
            other()
            self._world.core = core
        try:
            answer: dict[str, Any] = self._execute(operation, request)
        except Exception:
            self.refused += claims
            raise
        return answer


def _queue(partitions: int) -> tuple[World, Client]:
    world = World(seed=1)
    alice = world.client("alice")
    attributes = {"partitions": partitions, "visibility_timeout_seconds": _LEASE_SECONDS}
    alice.put("/queues/work", attributes)
    return world, alice


def _send(world: World, client: Client, count: int) -> None:
    for _ in range(count):
        client.send("work", "x" * 100)
        world.clock.pass_seconds(0.01)


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
