"""Readers of a topic's log: what broadcasting consumers do, each from a cursor of its own."""

from __future__ import annotations

from random import Random

from tests.simulation.deployment import ACCOUNT, Deployment, Environment
from tests.simulation.history import Call
from tests.simulation.scenario import Cast, Scenario

from cirrusmq.core import Core
from cirrusmq.topic_log import read_log
from cirrusmq.topics import get_topic

READ = "read log"


class LogReader:
    """Reads the log of one topic on and on, and never twice from the same place if it can help."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._topic = cast.place.name
        self._name = cast.name
        self._environment = Environment(deployment, cast.name)
        self._cursor: str | None = None

    def step(self, number: int, draw: Random) -> None:
        """Some pages, as quickly as a consumer asks for them."""
        self._environment.begin(self._name, number)
        for _ in range(draw.choice((1, 3, 6))):
            self._read(draw.choice((1, 2, 100)))
            self._deployment.stage.pause(draw.choice((10, 1_000, 2_500)))

    def finish(self) -> None:
        """Read to the end."""
        while self._read(100).answer:
            pass

    def _read(self, limit: int) -> Call:
        def work(core: Core) -> list[tuple[str, str]]:
            topic = get_topic(core, ACCOUNT, self._topic)
            page = read_log(core, topic, None, self._cursor, limit)
            cursors.append(page["cursor"])
            # The beginning of a body: which message of which step of which actor it is.
            return [(each["id"], each["body"].split(" ")[0]) for each in page["messages"]]

        cursors: list[str] = []
        call = self._deployment.call(self._environment, READ, self._topic, {"limit": limit}, work)
        if call.known:
            self._cursor = cursors[-1]
        return call
