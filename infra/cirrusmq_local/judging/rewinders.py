"""Operators: one rewinds a group, one makes a group or receiver that has earlier messages."""

from __future__ import annotations

from random import Random
from typing import Any

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.scenario import Cast, Scenario

REWIND, OPEN = "rewind group", "open"
ROUTE = "/topics/{topic}/subscriptions/{subscription}"
_MAX_TRIES = 100


def ask(
    deployment: Deployment, client: Client, draw: Random, kind: str, place: str, *given: Any
) -> None:
    """Make a call once, or a second time if it is not known to have worked.

    given: as `Deployment.http` takes it behind the place.
    """
    for _ in range(draw.choice((1, 2))):
        if deployment.http(client, kind, place, *given).known:
            return
        deployment.stage.pause(draw.choice((500, 5_000)))


class GroupRewinder:
    """Rewinds one group."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place, self._rewinds_ms = cast.place.name, scenario.rewinds_ms
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """One rewind, somewhat later than its turn; again if it is not known to have worked."""
        self._deployment.stage.pause(draw.choice((500, 3_000, 10_000)))
        self._client.begin(number)
        to_ms = self._deployment.stage.now_ms() - draw.choice(self._rewinds_ms)
        topic, _, name = self._place.partition("/")
        path = {"topic": topic, "subscription": name}
        body = {"to": format_time(to_ms)}
        ask(
            *(self._deployment, self._client, draw, REWIND, self._place, {"to_ms": to_ms}),
            *(f"POST {ROUTE}/rewind", path, body),
        )


class Opener:
    """Makes a group or a receiver in the middle of the run; it begins with the earliest message."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place, self._attributes = cast.place, scenario.late
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """Make it, again until that is answered."""
        self._deployment.stage.pause(draw.choice((500, 3_000, 20_000)))
        self._client.begin(number)
        for _ in range(_MAX_TRIES):
            if self._open().known:
                return
            self._deployment.stage.pause(1_000)

    def _open(self) -> Call:
        if self._place.topic:
            return open_group(self._deployment, self._client, self._place.name, self._attributes)
        return open_receiver(self._deployment, self._client, self._place.name)


def open_receiver(deployment: Deployment, client: Client, place: str) -> Call:
    """Make a receiver that gets the queue's backlog, or find it."""
    queue, _, name = place.partition("/")
    path, body = {"queue": queue, "receiver": name}, {"start": "earliest"}
    route = "PUT /queues/{queue}/receivers/{receiver}"
    return deployment.http(client, OPEN, place, {}, route, path, body)


def open_group(
    deployment: Deployment, client: Client, place: str, attributes: dict[str, Any]
) -> Call:
    """Make a group, or find it."""
    topic, _, name = place.partition("/")
    path = {"topic": topic, "subscription": name}
    return deployment.http(client, OPEN, place, {}, f"PUT {ROUTE}", path, attributes)
