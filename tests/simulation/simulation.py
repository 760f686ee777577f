"""One run: the scenario of a seed played to its end, everything drained, and every promise checked.

setup ──> actors, faults ──> calm: functions finish ──> drain ──> what is left? ──> checks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.simulation.buckets import days_of
from tests.simulation.chaos import Chaos, draw_profile
from tests.simulation.checks import check
from tests.simulation.crowd import hold_for_good
from tests.simulation.deployment import Deployment, listening
from tests.simulation.draining import Drain, live_parcels, source_of
from tests.simulation.drawing import draw_scenario
from tests.simulation.endpoints import Endpoints, Subscriber
from tests.simulation.machinery import Functions, Sweeper
from tests.simulation.named_functions import NamedFunctions
from tests.simulation.neighbours import (
    NEIGHBOUR,
    PROBE,
    TOPIC,
    Neighbour,
    subscriptions_beside,
    wait_for_the_end_of_slowness,
)
from tests.simulation.notified import notify
from tests.simulation.set_clocks import clocks_set
from tests.simulation.small_looks import pages_of
from tests.simulation.streams import Mapping

from cirrusmq.base.limits import LOG_HELD_BACK_MS
from cirrusmq.model.parcel import Parcel
from cirrusmq.runtime.core import Core
from cirrusmq_local.judging.cancellers import Canceller
from cirrusmq_local.judging.clients import GUEST, CallName, Client
from cirrusmq_local.judging.consumers import Receiver
from cirrusmq_local.judging.half_producers import Checker, HalfProducer
from cirrusmq_local.judging.history import MAX_SKEW_MS, History, Violation
from cirrusmq_local.judging.log_readers import LogReader
from cirrusmq_local.judging.operators import Operator
from cirrusmq_local.judging.pausers import Pauser
from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.producers import Sender
from cirrusmq_local.judging.redeliverers import Redeliverer
from cirrusmq_local.judging.rewinders import GroupRewinder, Opener, open_group, open_receiver
from cirrusmq_local.judging.scenario import LATE, NEWS, ORDERS, Cast, Scenario
from cirrusmq_local.judging.schedulers import Scheduler

CALM_MINUTES = 12
_LONGEST_WORK_MINUTES = 16
"""So long a worker that has crashed counts in its account's share."""
_PARTS: dict[str, Callable[[Deployment, Scenario, Cast], Any]] = {
    "sender": Sender,
    "publisher": Sender,
    "guest": Sender,
    "receiver": Receiver,
    "log reader": LogReader,
    "sweeper": Sweeper,
    "rewinder": Operator,
    "redriver": Operator,
    "purger": Operator,
    "changer": Operator,
    "subscriber": Subscriber,
    "half producer": HalfProducer,
    "checker": Checker,
    "canceller": Canceller,
    "group rewinder": GroupRewinder,
    "opener": Opener,
    "pauser": Pauser,
    "redeliverer": Redeliverer,
    "neighbour": Neighbour,
    "scheduler": Scheduler,
}


@dataclass(frozen=True, slots=True)
class Cut:
    """The parts left out of a run, to make its history shorter. `faults` None: none is left out."""

    actors: frozenset[str] = frozenset()
    steps: frozenset[tuple[str, int]] = frozenset()
    faults: frozenset[CallName] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run."""

    history: History
    violation: Violation | None
    faults: tuple[tuple[CallName, str], ...]


def play(seed: int, cut: Cut = Cut()) -> Run:
    """Play the scenario of a seed."""
    scenario = draw_scenario(seed)
    storm = scenario.family == "storm"
    calm = scenario.family == "crowd" or scenario.unfailing
    profile = draw_profile(seed, storm=storm, calm=calm, slow=scenario.purged)
    chaos = Chaos(seed, profile, cut.faults)
    chaos.unfailing = scenario.unfailing
    deployment = Deployment(
        *(chaos, scenario.turned_over_ms, scenario.objects_from, scenario.object_faults),
        slow_pushes=scenario.slow_pushes,
        workers=scenario.workers,
    )
    try:
        with (
            listening(),
            days_of(scenario.object_day_ms),
            pages_of(scenario.small_pages),
            clocks_set(scenario),
        ):
            violation = _Play(deployment, scenario, cut).run()
    finally:
        deployment.stage.close()
    return Run(deployment.history, violation, tuple(chaos.fired))


class _Play:
    def __init__(self, deployment: Deployment, scenario: Scenario, cut: Cut) -> None:
        self._deployment = deployment
        self._scenario = scenario
        self._cut = cut
        self._functions = Functions(deployment)
        self._named = NamedFunctions(deployment, scenario)
        self._readers: list[Mapping] = []
        self._log_readers: list[LogReader] = []
        self._stuck: list[str] = []

    def run(self) -> Violation | None:
        stage, scenario = self._deployment.stage, self._scenario
        self._deployment.invoke = self._functions.invoke
        self._deployment.start_execution = self._functions.start_execution
        self._deployment.post = Endpoints(self._deployment, scenario).post
        self._deployment.call = self._named.call
        stage.spawn("owner", self._set_up)
        stage.run()
        deployment = self._deployment
        deployment.opened_at = deployment.engine.stream_position(deployment.tables.messages)
        self._deployment.chaos.calm = scenario.quiet
        self._raise_curtain()
        stage.run()
        self._deployment.chaos.calm = self._named.is_well = True
        stage.spawn("calm", self._calm_down)
        stage.run()
        if scenario.sleep_ms:
            stage.spawn("sleep", self._sleep)
            stage.run()
        if scenario.halves:
            stage.spawn("checks", self._finish_checks)
            stage.run()
        if scenario.slow_until_ms:
            stage.spawn("probes", self._probe_urls)
            stage.run()
        stage.spawn("log readers", self._finish_logs)
        stage.run()
        drain = Drain(self._deployment, scenario)
        stage.spawn("drain", drain.run)
        stage.run()
        drain.blocked += self._stuck
        return check(scenario, self._deployment, drain)

    def _set_up(self) -> None:
        deployment, client = self._deployment, Client("owner")
        self._make_key(client)

        def put(route: str, body: dict[str, Any], **path: str) -> Any:
            call = deployment.http(client, "create", "", {}, f"PUT {route}", path, body)
            assert call.known, call.line()
            return call.answer

        for name, attributes in self._scenario.queues.items():
            put("/queues/{queue}", attributes, queue=name)
        for name in self._scenario.receivers:
            put("/queues/{queue}/receivers/{receiver}", {}, queue="orders", receiver=name)
        if self._scenario.subscriptions:
            put("/topics/{topic}", {}, topic="news")
        for name, attributes in self._scenario.subscriptions.items():
            path = {"topic": "news", "subscription": name}
            made = put("/topics/{topic}/subscriptions/{subscription}", attributes, **path)
            if "secret" in made:
                deployment.signing_secrets[name] = made["secret"]
        if self._scenario.notified:
            notify(deployment.auditor())
        if self._scenario.in_flight:
            hold_for_good(deployment, client, self._scenario.in_flight)
        self._let_guests_send(put)
        if any(cast.part == "neighbour" for cast in self._scenario.cast):
            client = Client("owner beside", NEIGHBOUR)
            self._make_key(client)
            put("/topics/{topic}", {}, topic=TOPIC)
            for name, attributes in subscriptions_beside(self._scenario).items():
                path = {"topic": TOPIC, "subscription": name}
                made = put("/topics/{topic}/subscriptions/{subscription}", attributes, **path)
                if "secret" in made:
                    deployment.signing_secrets[name] = made["secret"]

    def _let_guests_send(self, put: Callable[..., Any]) -> None:
        guests = [cast for cast in self._scenario.cast if cast.part == "guest"]
        if not guests:
            return
        self._make_key(Client("owner of guests", GUEST))
        for place in {cast.place for cast in guests}:
            kind, permission = ("topic", "publish") if place.topic else ("queue", "send")
            route = f"/{kind}s/{{{kind}}}/grants/{{account}}"
            put(route, {"permission": permission}, account=GUEST, **{kind: place.name})

    def _make_key(self, client: Client) -> None:
        asked = {"create_admin_key": {"account": client.account}}
        made = self._deployment.run(client, "manage", "key", "", {}, asked).answer
        header = f"Bearer {made['access_key_id']}:{made['secret']}"
        self._deployment.authorizations[client.account] = header

    def _raise_curtain(self) -> None:
        stage, chaos = self._deployment.stage, self._deployment.chaos
        for cast in self._scenario.cast:
            if cast.name in self._cut.actors:
                continue
            if cast.part == "meter":
                self._read_stream("meter")
                continue
            part = _PARTS[cast.part](self._deployment, self._scenario, cast)
            if isinstance(part, LogReader):
                self._log_readers.append(part)
            body = lambda cast=cast, part=part: self._live(cast, part)  # noqa: E731
            stage.spawn(cast.name, body, chaos.draw(cast.name) % (self._scenario.pause_ms + 1))
        scenario = self._scenario
        copied = scenario.receivers or scenario.early or scenario.subscriptions
        if copied or scenario.invoked or scenario.scheduled_topic:
            self._read_stream("fan_out")
        for reader in self._readers:
            after_ms = scenario.fan_out_after_ms if reader.role == "fan_out" else 0
            reader.actor = stage.spawn("reader", reader.live, after_ms)
        self._deployment.on_write = self._wake_readers

    def _read_stream(self, role: str) -> None:
        """A stream has one shard or two, each read on its own."""
        shards = 1 + self._deployment.chaos.draw(role, 0) % 2
        for shard in range(shards):
            self._readers.append(Mapping(self._deployment, role, shard, shards))

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
        """Let the functions finish: there are no more faults, and the sweep runs."""
        stage = self._deployment.stage
        if self._scenario.late:  # its opener may be left out
            open_group(self._deployment, Client("calm owner"), "news/late", self._scenario.late)
        if self._scenario.early:
            open_receiver(self._deployment, Client("calm owner"), LATE.name)
        for place in self._scenario.paused:
            Pauser(
                self._deployment,
                self._scenario,
                Cast(f"calm pauser of {place.name}", "pauser", place, 0),
            ).finish()
        sweeper = Cast("calm", "sweeper", self._scenario.places[0], 0)
        part = Sweeper(self._deployment, self._scenario, sweeper)
        for _ in range(CALM_MINUTES + _LONGEST_WORK_MINUTES * bool(self._scenario.workers)):
            part.sweep()
            stage.pause(61_000)
            left = self._not_done() + self._functions.parked()
            if not self._functions.running() and not left:
                return
        self._stuck = left or ["an operation"]

    def _sleep(self) -> None:
        """Let what nobody does anything about come to its end."""
        self._deployment.stage.pause(self._scenario.sleep_ms)
        self._calm_down()

    def _probe_urls(self) -> None:
        """Publish once more when no URL is slow any longer."""
        wait_for_the_end_of_slowness(self._deployment)
        # A deduplication id that was used before would make it a reminder of an old message.
        scenario = replace(self._scenario, deduplication=0)
        prober = Sender(self._deployment, scenario, Cast(PROBE, "publisher", NEWS, 1))
        prober.step(0, self._deployment.chaos.rng(PROBE, 0))
        self._calm_down()

    def _finish_checks(self) -> None:
        """Let producers decide what they are asked for; then learn how each was decided."""
        checker = Checker(
            self._deployment, self._scenario, Cast("calm checker", "checker", NEWS, 0)
        )
        for _ in range(CALM_MINUTES):
            self._deployment.stage.pause(61_000)
            checker.finish()
        self._calm_down()
        checker.probe()
        self._calm_down()

    def _finish_logs(self) -> None:
        self._deployment.stage.pause(LOG_HELD_BACK_MS + MAX_SKEW_MS + 1)
        for reader in self._log_readers:
            reader.finish()

    def _not_done(self) -> list[str]:
        """Messages that are still to be pushed, handed to a function, or given up for their age."""
        core = self._deployment.auditor()
        places = [
            Place(f"news/{name}", topic=True)
            for name, attributes in self._scenario.subscriptions.items()
            if attributes["protocol"] == "http"
        ]
        places += [each for each in self._scenario.places if each.name in self._scenario.invoked]
        left = [parcel for place in places for parcel in live_parcels(core, source_of(place, core))]
        return [f"{parcel.source_id} {parcel.sort_key}" for parcel in left + self._aged(core)]

    def _aged(self, core: Core) -> list[Parcel]:
        """Behind a sleep: what has reached its queue's limit of age, and is still there."""
        limit = self._scenario.queues["orders"].get("dead_letter", {}).get("max_age_seconds")
        if limit is None or not self._scenario.sleep_ms:
            return []
        since_ms = core.now_ms() - 1_000 * limit - 2 * MAX_SKEW_MS
        return [
            each for each in live_parcels(core, source_of(ORDERS, core)) if each.sent_ms < since_ms
        ]
