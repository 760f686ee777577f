"""The wait of quiet groups' messages for their first receive, beside a group with a large backlog.

Consumers take one message after the other, which uses half of their time; a noisy group's backlog
uses the rest. Each consumer's receives have a separate environment. Time is simulated: two runs
give the same figures.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from random import Random
from statistics import median, quantiles
from typing import NamedTuple

from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import show
from .polls import environment

GROUPS = 100
"""Number of groups; one of them may be noisy."""
BACKLOG = 100_000
SECONDS, WARM_UP_SECONDS = 30, 5
CONSUMERS = 10
HANDLER_SECONDS = 0.1
QUIET_A_SECOND = 50
LOOK_SECONDS = 0.34
"""Time between two scans of all partitions by an idle consumer, as in a long poll."""
_BATCH = 16


class Setting(NamedTuple):
    """The parameters of a run."""

    fair: bool
    backlog: int
    groups: int = GROUPS
    seconds: int = SECONDS


class Dwell(NamedTuple):
    """Waits of quiet messages, from the send to the receive, or to the end of the run."""

    seconds: list[float]
    received: int
    noisy: int
    """Number of received messages of the noisy group."""
    units: float
    """Read units of a receive with a message."""


def run() -> None:
    """Prints the waits in a fair and in a plain queue, without and with the noisy group."""
    rows: list[tuple[object, ...]] = []
    for fair in (True, False):
        alone, beside = (dwell(Setting(fair, backlog)) for backlog in (0, BACKLOG))
        for found, backlog in ((alone, 0), (beside, BACKLOG)):
            times = found.seconds
            rows.append(
                (
                    "fair" if fair else "plain",
                    backlog,
                    median(times),
                    quantiles(times, n=20)[-1],
                    round(100 * found.received / len(times)),
                    found.noisy,
                    round(found.units, 2),
                )
            )
        rows.append(("ratio", "", median(beside.seconds) / median(alone.seconds), "", "", "", ""))
    show(
        f"Messages of {GROUPS - 1} quiet groups, from sending to receive, {CONSUMERS} consumers",
        [
            "queue",
            "noisy group's backlog",
            "median s",
            "19 of 20 s",
            "received %",
            "noisy ones received",
            "read units a message",
        ],
        rows,
    )
    print(f"\n{SECONDS} s of {QUIET_A_SECOND} quiet messages a second. A message that was not")
    print("received counts with its wait until the end: the plain queue's figures would grow.")


def dwell(setting: Setting) -> Dwell:
    """Returns the waits of quiet messages in one run."""
    world = World(seed=1, shared_caches=False)
    client = world.client("alice")
    try:
        client.put("/queues/work", {"fair": setting.fair, "visibility_timeout_seconds": 600})
        for first in range(0, setting.backlog, _BATCH):
            size = min(_BATCH, setting.backlog - first)
            client.send("work", *["noisy"] * size, group="noisy")
            world.clock.pass_seconds(0.001)
        return _Run(world, client, setting).dwell()
    finally:
        world.engine.close()


class _Run:
    def __init__(self, world: World, client: Client, setting: Setting) -> None:
        self._world, self._client, self._setting = world, client, setting
        self._draw = Random(setting.groups)
        self._cores = [environment(world, 0) for _ in range(CONSUMERS)]
        self._begun_ms = world.clock.now_ms()
        self._numbers = count()
        self._events: list[tuple[float, int, int]] = []
        """(time, number, consumer or -1 for a send)"""
        self._sent: dict[str, int] = {}
        self._waited: list[float] = []
        self._noisy = self._taken = 0
        self._units = 0.0

    def dwell(self) -> Dwell:
        for consumer in range(CONSUMERS):
            self._plan(self._draw.uniform(0, LOOK_SECONDS), consumer)
        for seconds in self._sends():
            self._plan(seconds, -1)
        end = self._setting.seconds + WARM_UP_SECONDS
        while self._events and self._events[0][0] < end:
            seconds, _, consumer = heapq.heappop(self._events)
            self._world.clock.pass_seconds(max(0.0, seconds - self._seconds()))
            if consumer < 0:
                self._send()
            else:
                self._take(consumer)
        left = [end - (sent_ms - self._begun_ms) / 1000 for sent_ms in self._sent.values()]
        return Dwell(
            self._waited + left, len(self._waited), self._noisy, self._units / max(1, self._taken)
        )

    def _sends(self) -> Iterator[float]:
        seconds = 0.0
        while seconds < self._setting.seconds + WARM_UP_SECONDS:
            yield seconds
            seconds += self._draw.expovariate(QUIET_A_SECOND)

    def _plan(self, seconds: float, who: int) -> None:
        heapq.heappush(self._events, (seconds, next(self._numbers), who))

    def _seconds(self) -> float:
        return (self._world.clock.now_ms() - self._begun_ms) / 1000

    def _send(self) -> None:
        group = f"quiet {self._draw.randrange(self._setting.groups - 1)}"
        (sent,) = self._client.send("work", "quiet", group=group)
        if self._seconds() >= WARM_UP_SECONDS:
            self._sent[sent["id"]] = self._world.clock.now_ms()

    def _take(self, consumer: int) -> None:
        core, self._world.core = self._world.core, self._cores[consumer]
        before = float(self._world.engine.capacity()["read_units"])
        received = self._client.receive("work", 1)
        if received:
            self._taken += 1
            self._units += float(self._world.engine.capacity()["read_units"]) - before
            receipts = [message["receipt"] for message in received]
            self._client.post("/queues/work/messages/delete", {"receipts": receipts})
        self._world.core = core
        for message in received:
            sent_ms = self._sent.pop(message["id"], None)
            if sent_ms is not None:
                self._waited.append((self._world.clock.now_ms() - sent_ms) / 1000)
            self._noisy += message["body"] == "noisy"
        pause = HANDLER_SECONDS if received else LOOK_SECONDS
        self._plan(self._seconds() + pause * self._draw.uniform(0.9, 1.1), consumer)
