"""Operators of queues: rewinds, redrives, purges, changes of attributes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import Cast, Scenario

KINDS = {"rewinder": "rewind", "redriver": "redrive", "purger": "purge", "changer": "change"}
"""The kind of the calls of each part."""


class Operator:
    """Operates one queue in one way."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._scenario = scenario
        self._queue = cast.place.name
        self._part = cast.part
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """One operation, somewhat later than its turn: there is to be something to operate on."""
        self._deployment.stage.pause(draw.choice((500, 3_000, 10_000)))
        self._client.begin(number)
        draws: dict[str, Callable[[Random], tuple[dict[str, Any], dict[str, Any]]]] = {
            "rewinder": self._rewind,
            "redriver": self._redrive,
            "purger": lambda draw: ({}, {}),
            "changer": self._change,
        }
        given, body = draws[self._part](draw)
        kind = KINDS[self._part]
        route = "PATCH /queues/{queue}" if kind == "change" else f"POST /queues/{{queue}}/{kind}"
        path = {"queue": self._queue}
        self._deployment.http(self._client, kind, self._queue, given, route, path, body)

    def _rewind(self, draw: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        to_ms = self._deployment.stage.now_ms() - draw.choice((100, 2_000, 20_000, 60_000))
        return {"to_ms": to_ms}, {"to": format_time(to_ms)}

    def _redrive(self, draw: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        ways = self._scenario.redrives
        way = ways[0] if len(ways) == 1 else draw.choice(ways)
        if way == "ids" and (ids := self._sent()):
            given: dict[str, Any] = {"ids": draw.sample(ids, min(len(ids), draw.choice((1, 4))))}
            return given, given
        if way == "receipts" and (held := self._held(draw)):
            return {"messages": held}, {"receipts": [each.receipt for each in held]}
        if way == "reason":
            given = {
                "dead_letter": {"reason": draw.choice(("max_receives", "retries", "consumer"))}
            }
            return given, given
        given = {"max_messages": draw.choice((1, 3))} if draw.random() < 0.3 else {}
        return given, given

    def _sent(self) -> list[str]:
        """The ids of the messages that were sent last."""
        history = self._deployment.history.calls
        sends = [call for call in history if call.kind in ("send", "send again") and call.known]
        return list(dict.fromkeys(id for call in sends[-6:] for id, _ in call.answer))

    def _held(self, draw: Random) -> list[Delivery]:
        """Messages received from the queue not long ago; consumers may not hold them any more."""
        calls = [call for call in self._deployment.history.calls if call.place == self._queue]
        received = [call for call in calls if call.kind == "receive" and call.known and call.answer]
        return list(draw.choice(received[-3:]).answer[:16]) if received else []

    def _change(self, draw: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        attributes = self._scenario.queues[self._queue]
        changes: list[dict[str, Any]] = [
            {"message_retention_seconds": draw.choice((70, 200, 345_600))},
            {"visibility_timeout_seconds": draw.choice((1, 4))},
        ]
        if not attributes.get("ordered"):
            changes.append({"partitions": attributes["partitions"] + 1 + draw.randrange(2)})
            changes.append({"delay_seconds": draw.choice((0, 1, 4))})
        given = draw.choice(changes)
        return given, given
