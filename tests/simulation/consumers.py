"""Receivers: they take, hold, give back, delete, give up and forget, early and too late."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from tests.simulation.deployment import Deployment, Environment
from tests.simulation.history import Call
from tests.simulation.places import Delivery, Place, read_deliveries
from tests.simulation.scenario import Cast, Scenario

from cirrusmq import ulid
from cirrusmq.core import Core
from cirrusmq.deleting import DeleteRequest, delete
from cirrusmq.errors import CirrusMQError
from cirrusmq.holding import GiveBackRequest, VisibilityRequest, change_visibility, give_back
from cirrusmq.receipts import Fate
from cirrusmq.receiving import ReceiveRequest, receive
from cirrusmq.surrendering import DeadLetterRequest, surrender

_TIMEOUTS = (1, 1, 2, 3, 8, 30)
_ACTS = ("delete",) * 6 + ("visibility",) * 2 + ("give back",) * 2 + ("dead letter", "nothing")


class Receiver:
    """Receives from one place, and acts on what it has or had."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place = cast.place
        self._name = cast.name
        self._environment = Environment(deployment, cast.name)
        self._had: list[Delivery] = []

    def step(self, number: int, draw: Random) -> None:
        """Receive, think, act; now and then with receipts of long ago."""
        stage = self._deployment.stage
        self._environment.begin(self._name, number)
        received = self._receive(draw)
        for _ in range(draw.choice((1, 1, 2))):
            if received:
                stage.pause(draw.choice((0, 5, 100, 900, 1_100, 4_000)))
                chosen = received if draw.random() < 0.6 else draw.sample(received, 1)
                self._act(draw.choice(_ACTS), chosen, draw)
        if self._had and draw.random() < 0.3:
            old = draw.sample(self._had, min(len(self._had), draw.choice((1, 2))))
            self._act(draw.choice(_ACTS), old, draw)
        self._had = (self._had + received)[-6:]

    def _receive(self, draw: Random) -> list[Delivery]:
        given: dict[str, Any] = {
            "max": draw.choice((1, 2, 4, 16)),
            "timeout": draw.choice(_TIMEOUTS),
            "wait": draw.choice((0, 0, 0.3, 2)),
        }
        if draw.random() < 0.3:
            entropy = draw.randbytes(10)
            given["attempt"] = ulid.encode(self._deployment.stage.now_ms(), entropy)
        call = take(self._environment, self._place, given)
        if "attempt" in given and (not call.known or draw.random() < 0.2):
            self._deployment.stage.pause(draw.choice((0, 200, 1_500)))
            call = take(self._environment, self._place, {**given, "repeat": True})
        return list(call.answer) if call.known else []

    def _act(self, verb: str, deliveries: list[Delivery], draw: Random) -> None:
        if verb == "nothing":
            return
        given: dict[str, Any] = {}
        if verb == "visibility":
            given["seconds"] = draw.choice((0, 1, 5, 100))
        elif verb == "give back":
            given["seconds"] = draw.choice((None, None, 0, 3, 70))
        call = act(self._environment, self._place, verb, deliveries, given)
        if call.outcome in ("failed", "crashed") and draw.random() < 0.6:
            act(self._environment, self._place, verb, deliveries, given)


def take(environment: Environment, place: Place, given: dict[str, Any]) -> Call:
    """One receive."""
    request: dict[str, Any] = {
        "max": given["max"],
        "wait_seconds": given["wait"],
        "visibility_timeout_seconds": given["timeout"],
    }
    for name in ("attempt", "repeat"):
        if name in given:
            request[name] = given[name]
    asked = msgspec.convert(request, ReceiveRequest)

    def work(core: Core) -> Any:
        received = receive(core, lambda: place.source(core), "key", asked, 27)
        return read_deliveries(environment.under_way, received)

    return environment.deployment.call(environment, "receive", place.name, given, work)


def act(
    environment: Environment,
    place: Place,
    verb: str,
    deliveries: list[Delivery],
    given: dict[str, Any],
) -> Call:
    """One call by receipts; answers what came of each."""
    receipts = list(dict.fromkeys(delivery.receipt for delivery in deliveries))
    seconds = given.get("seconds")

    def work(core: Core) -> list[int | str]:
        source_of = place.source_of(core)
        fate: Fate
        if verb == "delete":
            fate = delete(core, DeleteRequest(receipts), source_of)
        elif verb == "dead letter":
            fate = surrender(core, DeadLetterRequest(receipts), source_of)
        elif verb == "visibility":
            entries = [{"receipt": r, "visibility_timeout_seconds": seconds} for r in receipts]
            request = msgspec.convert({"entries": entries}, VisibilityRequest)
            fate = change_visibility(core, request, source_of)
        else:
            asked = {"receipts": receipts} | ({} if seconds is None else {"delay_seconds": seconds})
            fate = give_back(core, msgspec.convert(asked, GiveBackRequest), source_of)
        return [_told(fate[delivery.receipt]) for delivery in deliveries]

    shown = {"messages": deliveries, **given}
    return environment.deployment.call(environment, verb, place.name, shown, work)


def _told(outcome: CirrusMQError | int) -> int | str:
    return outcome.code if isinstance(outcome, CirrusMQError) else outcome
