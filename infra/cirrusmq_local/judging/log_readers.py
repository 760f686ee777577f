"""Readers of a topic's log, as broadcasting consumers: each keeps its cursor."""

from __future__ import annotations

from random import Random
from typing import Any

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.scenario import Cast, Scenario

READ = "read log"


LAST_DUE_MS = 80_000
"""The longest delay of a publish is over by then, and readers are past it."""


class LogReader:
    """Reads the log of one topic on and on, and never twice from the same place if it can help."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._scenario = scenario
        self._topic = cast.place.name
        self._client = Client(cast.name)
        self._cursor: str | None = None

    def step(self, number: int, draw: Random) -> None:
        """Some pages, as quickly as a consumer asks for them."""
        self._client.begin(number)
        for _ in range(draw.choice((1, 3, 6))):
            self._read(draw.choice((1, 2, 100)))
            self._deployment.stage.pause(draw.choice((10, 1_000, 2_500)))

    def finish(self) -> None:
        """Read to the end, with the messages that are due later."""
        if self._scenario.delayed:
            self._deployment.stage.pause(LAST_DUE_MS)
        call = self._read(100)
        while call.known and call.answer:
            call = self._read(100)

    def _read(self, limit: int) -> Call:
        def read(call: Call, answer: Any) -> list[tuple[str, str]]:
            self._cursor = answer["cursor"]
            # The beginning of a body: which message of which step of which actor it is.
            return [(each["id"], each["body"].split(" ")[0]) for each in answer["messages"]]

        route, path = "GET /topics/{topic}/messages", {"topic": self._topic}
        query = {"limit": str(limit)} | ({"after": self._cursor} if self._cursor else {})
        given = {"limit": limit}
        return self._deployment.http(
            self._client, READ, self._topic, given, route, path, query=query, read=read
        )
