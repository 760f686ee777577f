"""Functions without a client: the minute's sweep, operations, pushes, the retry state machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from botocore.exceptions import ConnectTimeoutError
from tests.simulation.deployment import Deployment, Item, functions, scan
from tests.simulation.environments import Environment, Event
from tests.simulation.stage import Stage
from tests.simulation.wire import ENDPOINT

from cirrusmq.storage.directory import RUNNING
from cirrusmq_local.engine import Engine
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.scenario import Cast, Scenario

_MAX_ROUNDS = 1_000
"""Of an execution."""
_REPLAY_SECONDS = (10.0, 10.05, 70.0)
"""The remaining time that an operation's function is told at its begin."""


def _parked(item: Item) -> bool:
    """Whether an item is a share of a record, put aside; its reader's mark may stay longer."""
    pk = item["pk"]["S"]
    return bool(pk.startswith("P#") and pk.count("#") > 1)


def running(engine: Engine, directory: str) -> int:
    """How many operations are not finished, by the table that has their pointers."""
    request = {
        "TableName": directory,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": RUNNING}},
    }
    return int(engine.execute("Query", request)["Count"])


def describe(role: str, event: Event) -> tuple[str, str]:
    """The kind of a function's call by its event, and the subscriptions that it is for."""
    kind = "retry" if "retry" in event else "work" if "invoke" in event else role
    first = event.get("retry") or event.get("deliver") or {}
    places = [first, *event.get("others", ())]
    return (
        "push" if kind == "push_slow" else kind,
        " ".join(each.get("subscription", "") for each in places),
    )


def execute(
    stage: Stage, push: Callable[[int, Event], Call], given: Event, max_rounds: int
) -> None:
    """The state machine: push, then wait, again or done; an error leaves it to the sweep.

    push: is given the number of the round.
    """
    state = given
    for number in range(max_rounds):
        if state["action"] == "wait":
            stage.pause(1_000 * int(state["wait_seconds"]))
        call = push(number, state)
        if not call.known or call.answer["action"] not in ("wait", "again"):
            return
        state = json.loads(json.dumps(call.answer))


class Sweeper:
    """Sweeps once a minute, as the schedule has it."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """Wait for the minute, then sweep."""
        self._deployment.stage.pause(60_000)
        self._client.begin(number)
        self.sweep()
        if draw.random() < 0.5:  # the store removes expired items some time later
            self._deployment.engine.remove_expired()
            self._deployment.written()

    def sweep(self) -> None:
        """One sweep."""
        self._deployment.run(self._client, "sweep", "sweep", "", {}, {})


class Functions:
    """Runs asynchronous invocations; one may fail, be lost or be run twice."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._chaos = deployment.chaos
        self._executions: set[str] = set()

    def invoke(self, caller: Environment, role: str, event: Event) -> None:
        """Have a function run soon."""
        caller.check_alive()
        name, draw = self._name(caller, role)
        kind = 1.0 if self._chaos.calm or self._chaos.unfailing else draw.random()
        if kind < 0.02:
            raise ConnectTimeoutError(endpoint_url=ENDPOINT)
        copied = json.loads(json.dumps(event))
        for copy in range(0 if kind < 0.05 else 2 if kind < 0.1 else 1):
            self._spawn(f"{name}/{copy}", role, copied, draw)

    def start_execution(self, caller: Environment, name: str, given: Event) -> None:
        """Start an execution; one of that name that was started before is this very one."""
        caller.check_alive()
        actor, draw = self._name(caller, "schedule")
        kind = 1.0 if self._chaos.calm or self._chaos.unfailing else draw.random()
        if kind >= 0.05 and name not in self._executions:
            self._executions.add(name)
            state = json.loads(json.dumps(given))
            self._deployment.stage.spawn(actor, lambda: self._execute(actor, state), 20)
        if kind < 0.08:
            raise ConnectTimeoutError(endpoint_url=ENDPOINT)

    def running(self) -> int:
        """How many operations are not finished."""
        return running(self._deployment.engine, self._deployment.tables.directory)

    def parked(self) -> list[str]:
        """Shares that fan_out parked, and no drainer has handed out yet."""
        items = scan(self._deployment.engine, self._deployment.tables.messages)
        return [f"{each['pk']['S']} {each['sk']['S']}" for each in items if _parked(each)]

    def _name(self, caller: Environment, role: str) -> tuple[str, Random]:
        name = role + "<{}.{}.{}".format(*caller.name_call())
        return name, self._deployment.chaos.rng(name, 0)

    def _spawn(self, name: str, role: str, event: Event, draw: Random) -> None:
        def body() -> None:
            if role == "replay":
                self._replay(name, event, draw)
            else:
                self._run(name, role, event)

        self._deployment.stage.spawn(name, body, after_ms=draw.choice((1, 30, 400)))

    def _replay(self, name: str, event: Event, draw: Random) -> None:
        client = Client(name)
        if "operation" not in event:
            self._deployment.run(client, "replay", "replay", "", dict(event), event)
            return
        less_ms = 1_000 * functions()["replay"].timeout_seconds
        less_ms -= int(1_000 * draw.choice(_REPLAY_SECONDS))
        given = {"operation": event["operation"]["id"]}
        self._deployment.run(client, "replay", "replay", "", given, event, less_ms)

    def _run(self, name: str, role: str, event: Event) -> Call:
        kind, place = describe(role, event)
        return self._deployment.run(Client(name), role, kind, place, {}, event)

    def _execute(self, name: str, given: Event) -> None:
        def push(number: int, state: Event) -> Call:
            return self._run(f"{name}#{number}", "push_slow", state)

        execute(self._deployment.stage, push, given, _MAX_ROUNDS)
