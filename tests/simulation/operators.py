"""Whoever runs a queue: rewinds, redrives, purges, changes of attributes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from tests.simulation.deployment import ACCOUNT, Deployment, Environment
from tests.simulation.scenario import Cast, Scenario

from cirrusmq.core import Core
from cirrusmq.purging import purge
from cirrusmq.queue import QueueInput
from cirrusmq.queues import change_queue, get_queue
from cirrusmq.redriving import RedriveRequest, redrive
from cirrusmq.rewinding import RewindRequest, rewind
from cirrusmq.timestamps import format_time

KINDS = {"rewinder": "rewind", "redriver": "redrive", "purger": "purge", "changer": "change"}
"""What the calls of each part are called."""


class Operator:
    """Operates one queue in one way."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._scenario = scenario
        self._queue = cast.place.name
        self._name = cast.name
        self._part = cast.part
        self._environment = Environment(deployment, cast.name)

    def step(self, number: int, draw: Random) -> None:
        """One operation, somewhat later than its turn: there is to be something to operate on."""
        self._deployment.stage.pause(draw.choice((500, 3_000, 10_000)))
        self._environment.begin(self._name, number)
        draws: dict[str, Callable[[Random], tuple[dict[str, Any], Callable[[Core], Any]]]] = {
            "rewinder": self._rewind,
            "redriver": self._redrive,
            "purger": self._purge,
            "changer": self._change,
        }
        given, work = draws[self._part](draw)
        self._deployment.call(self._environment, KINDS[self._part], self._queue, given, work)

    def _rewind(self, draw: Random) -> tuple[dict[str, Any], Callable[[Core], Any]]:
        to_ms = self._deployment.stage.now_ms() - draw.choice((100, 2_000, 20_000, 60_000))
        request = RewindRequest(to=format_time(to_ms))
        return {"to_ms": to_ms}, lambda core: rewind(core, self._find(core), request).id

    def _redrive(self, draw: Random) -> tuple[dict[str, Any], Callable[[Core], Any]]:
        given = {"max_messages": draw.choice((1, 3))} if draw.random() < 0.3 else {}
        request = msgspec.convert(given, RedriveRequest)
        return dict(given), lambda core: redrive(core, self._find(core), request).id

    def _purge(self, draw: Random) -> tuple[dict[str, Any], Callable[[Core], Any]]:
        return {}, lambda core: purge(core, self._find(core)).id

    def _change(self, draw: Random) -> tuple[dict[str, Any], Callable[[Core], Any]]:
        attributes = self._scenario.queues[self._queue]
        changes: list[dict[str, Any]] = [
            {"message_retention_seconds": draw.choice((70, 200, 345_600))},
            {"visibility_timeout_seconds": draw.choice((1, 4))},
        ]
        if not attributes.get("ordered"):
            changes.append({"partitions": attributes["partitions"] + 1 + draw.randrange(2)})
            changes.append({"delay_seconds": draw.choice((0, 1, 4))})
        given = draw.choice(changes)
        change = msgspec.convert(given, QueueInput)
        return given, lambda core: change_queue(core, ACCOUNT, self._queue, change).id

    def _find(self, core: Core) -> Any:
        return get_queue(core, ACCOUNT, self._queue)
