"""The functions that nobody waits for: the minute's sweep, operations, pushes, retry schedules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from botocore.exceptions import ConnectTimeoutError
from tests.simulation.deployment import Deployment, Environment
from tests.simulation.history import Call
from tests.simulation.scenario import Cast, Scenario
from tests.simulation.wire import ENDPOINT

from cirrusmq.core import Core
from cirrusmq.operations import Pointer
from cirrusmq.parking import drain
from cirrusmq.pushes import make_push
from cirrusmq.pushing import deliver, retry
from cirrusmq.replays import run
from cirrusmq.storage.directory import RUNNING
from cirrusmq.sweeping import sweep
from cirrusmq.visiting import give_up_on

_REPLAY_SECONDS = (0.0, 0.05, 60.0)
_PUSH_SECONDS = 120
_POST_SECONDS = 17
"""Kept back by an invocation that pushes: it starts no post with less time left."""


class Sweeper:
    """Sweeps once a minute, as the schedule has it."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._name = cast.name
        self._environment = Environment(deployment, cast.name)

    def step(self, number: int, draw: Random) -> None:
        """Wait for the minute, then sweep."""
        self._deployment.stage.pause(60_000)
        self._environment.begin(self._name, number)
        self.sweep()
        if draw.random() < 0.5:  # the store removes what expired when it comes to it
            self._deployment.engine.remove_expired()
            self._deployment.on_write()

    def sweep(self) -> None:
        """One sweep."""
        self._deployment.call(
            self._environment, "sweep", "", {}, lambda core: sweep(core, 50_000), 300
        )


class Functions:
    """Runs what is invoked asynchronously; an invocation may fail, be lost or come twice."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._executions: set[str] = set()

    def invoke(self, caller: Environment, role: str, event: dict[str, Any]) -> None:
        """Have a function run soon."""
        name, draw = self._name(caller, role)
        kind = 1.0 if self._deployment.chaos.calm else draw.random()
        if kind < 0.02:
            raise ConnectTimeoutError(endpoint_url=ENDPOINT)
        for copy in range(0 if kind < 0.05 else 2 if kind < 0.1 else 1):
            self._spawn(f"{name}/{copy}", role, event, draw)

    def start_execution(self, caller: Environment, name: str, given: dict[str, Any]) -> None:
        """Start an execution; one of that name that was started before is this very one."""
        actor, draw = self._name(caller, "schedule")
        kind = 1.0 if self._deployment.chaos.calm else draw.random()
        if kind >= 0.05 and name not in self._executions:
            self._executions.add(name)
            self._deployment.stage.spawn(actor, lambda: self._execute(actor, given, draw), 20)
        if kind < 0.08:
            raise ConnectTimeoutError(endpoint_url=ENDPOINT)

    def running(self) -> int:
        """How many operations are not finished."""
        request = {
            "TableName": self._deployment.tables.directory,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": RUNNING}},
        }
        return int(self._deployment.engine.execute("Query", request)["Count"])

    def _name(self, caller: Environment, role: str) -> tuple[str, Random]:
        name = role + "<{}.{}.{}".format(*caller.name_call())
        return name, self._deployment.chaos.rng(name, 0)

    def _spawn(self, name: str, role: str, event: dict[str, Any], draw: Random) -> None:
        def body() -> None:
            if role == "replay" and "aged" in event:
                aged = event["aged"]
                self._run(
                    name,
                    "replay",
                    "",
                    aged,
                    lambda core: give_up_on(core, **aged, most_ms=60_000),
                    900,
                )
            elif role == "replay":
                self._replay(name, event, draw)
            else:
                self._push(name, "push", event["deliver"], deliver)

        self._deployment.stage.spawn(name, body, after_ms=draw.choice((1, 30, 400)))

    def _replay(self, name: str, event: dict[str, Any], draw: Random) -> None:
        most_ms = int(draw.choice(_REPLAY_SECONDS) * 1000)
        if "parked" in event:
            reader_id = event["parked"]
            given = {"parked": reader_id}
            self._run(name, "replay", "", given, lambda core: drain(core, reader_id, most_ms), 900)
            return
        pointer = Pointer(**event["operation"])
        given = {"operation": pointer.id}
        self._run(name, "replay", "", given, lambda core: run(core, pointer, most_ms), 900)

    def _push(
        self, name: str, kind: str, place: dict[str, Any], work: Callable[[Any], Any]
    ) -> Call:
        most_ms = 1_000 * (_PUSH_SECONDS - _POST_SECONDS)

        def push(core: Core) -> Any:
            made = make_push(core, place, name, most_ms)
            return {"action": "done"} if made is None else work(made)

        return self._run(name, kind, place["subscription"], {}, push, _PUSH_SECONDS)

    def _execute(self, name: str, given: dict[str, Any], draw: Random) -> None:
        """The state machine: push, then wait, again or done; an error leaves it to the sweep."""
        state = given
        for number in range(1_000):
            told = state["retry"]
            call = self._push(f"{name}#{number}", "retry", told, partial(retry, given=told))
            if not call.known or call.answer["action"] == "done":
                return
            state = call.answer
            self._deployment.stage.pause(1_000 * int(state["wait_seconds"]))

    def _run(
        self,
        name: str,
        role: str,
        place: str,
        given: dict[str, Any],
        work: Callable[[Core], Any],
        seconds: int,
    ) -> Call:
        environment = self._deployment.borrow(role)
        environment.begin(name, 0)
        call = self._deployment.call(environment, role, place, given, work, seconds)
        self._deployment.give_back(role, environment)
        return call
