"""The functions that queues and groups name: they take time, fail at some messages, lose answers.

worker    calls ────────── answered: settles       calls ──x its environment ends
function    runs ─────────                           runs ─────────── to its own end
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.simulation.deployment import Deployment
from tests.simulation.environments import Environment

from cirrusmq.runtime.core import Called
from cirrusmq_local.judging.places import Delivery, handed
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import HANDED
from cirrusmq_local.testing import START_MS

_SHORT_MS = (1, 5, 40, 900)


class NamedFunctions:
    """Called with batches, each noted in the history as a call of the worker that made it.

    In `given`: `until_ms`, when the run ends whoever still waits for it; `failed`, the ids of the
    messages that it leaves; `untried`, of those the ones that it does not begin; `noted`, how many
    faults its worker's invocation had before.
    """

    def __init__(self, deployment: Deployment, scenario: Scenario) -> None:
        self._deployment = deployment
        self._failing = scenario.failing
        self._broken = {
            name: scenario.outage_ms
            for name, each in scenario.invoked.items()
            if each["invoke"].get("breaker")
        }
        """From when to when they fail at everything."""
        calm = scenario.quiet or (bool(self._broken) and scenario.unfailing)
        self._trouble = 0.0 if calm else 1.0
        self._groups = {name: each.get("ordered") for name, each in scenario.invoked.items()}
        self.is_well = False
        """Whether every run succeeds at once, as it does at the end."""

    def call(self, caller: Environment, arn: str, event: bytes, seconds: float) -> Called:
        """One call; the function's own timeout is not longer than `seconds`."""
        stage, history = self._deployment.stage, self._deployment.history
        draw = self._deployment.chaos.rng("{}.{}.{}".format(*caller.name_call()), 2)
        records = json.loads(event)["Records"]
        place = str(records[0]["eventSourceARN"]).rpartition(":")[2]
        given: dict[str, Any] = {
            "failed": [],
            "untried": [],
            "until_ms": stage.now_ms(),
            "noted": len(caller.under_way.faults),
            "invocation": caller.under_way,
        }
        call = history.begin(caller.client.name, HANDED, place, given, stage.now_ms())
        given["messages"] = [handed(call, each) for each in records]
        kind = 1.0 if self.is_well else draw.random() / (self._trouble or 1e-9)
        if kind < 0.04:
            given["untried"] = [each.id for each in given["messages"]]
            history.end(call, "refused", None, stage.now_ms())
            return Called(error="TooManyRequestsException", refused=True)
        lasts_ms = 5 if self.is_well else _duration_ms(draw, seconds)
        given["until_ms"] += lasts_ms
        given["failed"], behind = self._fail(place, given["messages"], draw)
        if kind < 0.08:
            stage.pause(draw.randrange(lasts_ms + 1))
            caller.note("crash after", HANDED)
            raise caller.crash()
        if kind < 0.12:
            # Its connection breaks while the function runs; or nothing comes as long as it waits.
            early = draw.random() < 0.5
            stage.pause(draw.randrange(lasts_ms + 1) if early else round(seconds * 1_000))
            caller.check_alive()
            caller.note("lost", HANDED)
            history.end(call, "failed", None, stage.now_ms())
            return Called(error="no answer", unknown=True)
        stage.pause(lasts_ms)
        caller.check_alive()
        history.end(call, "answered", "done", stage.now_ms())
        if len(given["failed"]) == len(records) and draw.random() < 0.5:
            return Called(error="raised")
        given["untried"] = [id for id in behind if draw.random() < 0.7]
        left = [
            {"itemIdentifier": id, **({"tried": False} if id in given["untried"] else {})}
            for id in given["failed"]
        ]
        return Called(answer={"batchItemFailures": left})

    def _fail(
        self, place: str, messages: list[Delivery], draw: Random
    ) -> tuple[list[str], list[str]]:
        """Ids of messages that it leaves; with an order those behind failures in their groups too,
        which are also by themselves in the second list."""
        first_ms, last_ms = self._broken.get(place, (0, 0))
        if not self.is_well and first_ms <= self._deployment.stage.now_ms() - START_MS < last_ms:
            return [each.id for each in messages], []
        failed: dict[str, str | None] = {}
        behind: list[str] = []
        for each in messages if not self.is_well else ():
            follows = bool(self._groups.get(place)) and each.group in failed.values()
            if draw.random() < self._failing or follows:
                failed[each.id] = each.group
                behind += [each.id] if follows else []
        return list(failed), behind


def _duration_ms(draw: Random, seconds: float) -> int:
    if draw.random() < 0.7:
        return draw.choice(_SHORT_MS)
    return min(draw.choice((4_000, 15_000, 60_000)), round(seconds * 1_000) - 1)
