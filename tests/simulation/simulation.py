"""One run: the scenario of a seed played to its end, everything drained, and every promise checked.

setup ──> actors, faults ──> calm: functions finish ──> drain ──> what is left? ──> checks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from tests.simulation.chaos import CallName, Chaos, draw_profile
from tests.simulation.checks import check
from tests.simulation.consumers import Receiver
from tests.simulation.deployment import ACCOUNT, Deployment, Environment
from tests.simulation.draining import Drain, live_parcels
from tests.simulation.endpoints import Endpoints
from tests.simulation.history import History, Violation
from tests.simulation.log_readers import LogReader
from tests.simulation.machinery import Functions, Sweeper
from tests.simulation.operators import Operator
from tests.simulation.places import Place
from tests.simulation.producers import Sender
from tests.simulation.scenario import Cast, Scenario, draw_scenario
from tests.simulation.streams import FanOut, Meter, StreamReader

from cirrusmq.limits import LOG_HELD_BACK_MS
from cirrusmq.queue import QueueInput
from cirrusmq.queues import create_queue, get_queue
from cirrusmq.receivers import ReceiverInput, put_receiver
from cirrusmq.subscriptions import put_subscription
from cirrusmq.topic import SubscriptionInput, TopicInput
from cirrusmq.topics import create_topic

CALM_MINUTES = 12
_PARTS: dict[str, Callable[[Deployment, Scenario, Cast], Any]] = {
    "sender": Sender,
    "publisher": Sender,
    "receiver": Receiver,
    "log reader": LogReader,
    "sweeper": Sweeper,
    "rewinder": Operator,
    "redriver": Operator,
    "purger": Operator,
    "changer": Operator,
}


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left out of a run, to make its history shorter. `faults` None: none is left out."""

    actors: frozenset[str] = frozenset()
    steps: frozenset[tuple[str, int]] = frozenset()
    faults: frozenset[CallName] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run."""

    history: History
    violation: Violation | None
    faults: tuple[tuple[CallName, str], ...]


def play(seed: int, cut: Cut = Cut()) -> Run:
    """Play the scenario of a seed."""
    chaos = Chaos(seed, draw_profile(seed), cut.faults)
    deployment = Deployment(chaos)
    try:
        violation = _Play(deployment, draw_scenario(seed), cut).run()
    finally:
        deployment.stage.close()
    return Run(deployment.history, violation, tuple(chaos.fired))


class _Play:
    def __init__(self, deployment: Deployment, scenario: Scenario, cut: Cut) -> None:
        self._deployment = deployment
        self._scenario = scenario
        self._cut = cut
        self._functions = Functions(deployment)
        self._readers: list[StreamReader] = []
        self._log_readers: list[LogReader] = []
        self._stuck: list[str] = []

    def run(self) -> Violation | None:
        stage, scenario = self._deployment.stage, self._scenario
        self._deployment.invoke = self._functions.invoke
        self._deployment.start_execution = self._functions.start_execution
        self._deployment.post = Endpoints(self._deployment, scenario).post
        stage.spawn("owner", self._set_up)
        stage.run()
        self._deployment.chaos.calm = False
        self._raise_curtain()
        stage.run()
        self._deployment.chaos.calm = True
        stage.spawn("calm", self._calm_down)
        stage.run()
        stage.spawn("log readers", self._finish_logs)
        stage.run()
        drain = Drain(self._deployment, scenario)
        stage.spawn("drain", drain.run)
        stage.run()
        drain.blocked += self._stuck
        return check(scenario, self._deployment, drain)

    def _set_up(self) -> None:
        environment = Environment(self._deployment, "owner")
        for name, attributes in self._scenario.queues.items():
            given = msgspec.convert(attributes, QueueInput)
            create_queue(environment.core, ACCOUNT, name, given)
        for name in self._scenario.receivers:
            queue = get_queue(environment.core, ACCOUNT, "orders")
            put_receiver(environment.core, queue, name, ReceiverInput())
        if self._scenario.subscriptions:
            topic, _ = create_topic(environment.core, ACCOUNT, "news", TopicInput())
        for name, attributes in self._scenario.subscriptions.items():
            wanted = msgspec.convert(attributes, SubscriptionInput)
            put_subscription(environment.core, topic, name, wanted)

    def _raise_curtain(self) -> None:
        stage, chaos = self._deployment.stage, self._deployment.chaos
        for cast in self._scenario.cast:
            if cast.name in self._cut.actors:
                continue
            if cast.part == "meter":
                self._readers.append(Meter(self._deployment, "meter"))
                continue
            part = _PARTS[cast.part](self._deployment, self._scenario, cast)
            if isinstance(part, LogReader):
                self._log_readers.append(part)
            body = lambda cast=cast, part=part: self._live(cast, part)  # noqa: E731
            stage.spawn(cast.name, body, chaos.draw(cast.name) % (self._scenario.pause_ms + 1))
        if self._scenario.receivers or self._scenario.subscriptions:
            self._readers.append(FanOut(self._deployment, "fan_out"))
        for reader in self._readers:
            reader.actor = stage.spawn("reader", reader.live)
        self._deployment.on_write = self._wake_readers

    def _live(self, cast: Cast, part: Any) -> None:
        chaos = self._deployment.chaos
        for number in range(cast.steps):
            if (cast.name, number) in self._cut.steps:
                continue
            draw = chaos.rng(cast.name, number)
            self._deployment.stage.pause(draw.randrange(2 * self._scenario.pause_ms + 1))
            part.step(number, draw)

    def _wake_readers(self) -> None:
        for reader in self._readers:
            if reader.actor is not None and reader.actor.parked:
                self._deployment.stage.wake(reader.actor, 100)

    def _calm_down(self) -> None:
        """Let the machinery finish: nothing fails any more, and the sweep comes by."""
        stage = self._deployment.stage
        sweeper = Cast("calm", "sweeper", self._scenario.places[0], 0)
        part = Sweeper(self._deployment, self._scenario, sweeper)
        for _ in range(CALM_MINUTES):
            part.sweep()
            stage.pause(61_000)
            if not self._functions.running() and not self._pushed():
                return
        self._stuck = self._pushed() or ["an operation"]

    def _finish_logs(self) -> None:
        self._deployment.stage.pause(LOG_HELD_BACK_MS + 1)
        for reader in self._log_readers:
            reader.finish()

    def _pushed(self) -> list[str]:
        """Messages that are still to be pushed."""
        core = Environment(self._deployment, "auditor").core
        left = []
        for name, attributes in self._scenario.subscriptions.items():
            if attributes["protocol"] == "http":
                source = Place(f"news/{name}", topic=True).source(core)
                left += live_parcels(core, source)
        return [f"{parcel.source_id} {parcel.sort_key}" for parcel in left]
