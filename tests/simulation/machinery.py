"""The functions that nobody calls: the minute's sweep, operations, the stream's readers."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from tests.simulation.deployment import Deployment, Environment
from tests.simulation.scenario import Cast, Scenario
from tests.simulation.stage import Actor

from cirrusmq.core import Core
from cirrusmq.fan_out import fan_out
from cirrusmq.metering import StreamRecord, meter
from cirrusmq.operations import Pointer
from cirrusmq.replays import run
from cirrusmq.storage.directory import RUNNING
from cirrusmq.sweeping import sweep
from cirrusmq_local.engine.changes import StreamRecord as Change

_REPLAY_SECONDS = (0.0, 0.05, 60.0)
_METERED = ("Q#", "R#", "L#")


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

    def sweep(self) -> None:
        """One sweep."""
        self._deployment.call(
            self._environment, "sweep", "", {}, lambda core: sweep(core, 50_000), 60
        )


class Replays:
    """Runs what is invoked asynchronously; an invocation may be lost or come twice."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def invoke(self, caller: Environment, role: str, event: dict[str, Any]) -> None:
        """Have a function run soon."""
        name = role + "<{}.{}.{}".format(*caller.name_call())
        draw = self._deployment.chaos.rng(name, 0)
        kind = 1.0 if self._deployment.chaos.calm else draw.random()
        for copy in range(0 if kind < 0.05 else 2 if kind < 0.1 else 1):
            self._deployment.stage.spawn(
                f"{name}/{copy}",
                lambda copy=copy: self._run(f"{name}/{copy}", role, event, draw),  # type: ignore[misc]
                after_ms=draw.choice((1, 30, 400)),
            )

    def _run(self, name: str, role: str, event: dict[str, Any], draw: Random) -> None:
        assert role == "replay"
        environment = self._deployment.borrow(role)
        environment.begin(name, 0)
        most_ms = int(draw.choice(_REPLAY_SECONDS) * 1000)
        pointer = Pointer(**event["operation"])
        given = {"operation": pointer.id}
        self._deployment.call(
            environment, role, "", given, lambda core: run(core, pointer, most_ms), 900
        )
        self._deployment.give_back(role, environment)

    def running(self) -> int:
        """How many operations are not finished."""
        request = {
            "TableName": self._deployment.tables.directory,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": RUNNING}},
        }
        return int(self._deployment.engine.execute("Query", request)["Count"])


class StreamReader:
    """Feeds a function from the stream, as Lambda does: from where the last batch was done.

    Batches are cut anew each time, and one that failed or whose answer was lost comes again.
    """

    def __init__(self, deployment: Deployment, name: str) -> None:
        self._deployment = deployment
        self._name = name
        self._environment = Environment(deployment, name)
        self._records: deque[Change] = deque()
        self._read_to = 0
        self._batch = 0
        self.actor: Actor | None = None

    def live(self) -> None:
        """Read whenever somebody wakes this."""
        stage, chaos = self._deployment.stage, self._deployment.chaos
        while True:
            self._read()
            while self._records:
                self._batch += 1
                draw = chaos.rng(self._name, self._batch)
                most = draw.choice((1, 3, 10, 1_000))
                batch = [self._records[n] for n in range(min(most, len(self._records)))]
                self._environment.begin(self._name, self._batch)
                done = self._process(batch)
                if not chaos.calm and draw.random() < 0.05:
                    done = 0  # the answer was lost
                for _ in range(done):
                    self._records.popleft()
                if done < len(batch):
                    stage.pause(draw.choice((10, 500)))
                self._read()
            stage.park()

    def wanted(self, change: Change) -> bool:
        """Whether the function's filter lets a change through."""
        raise NotImplementedError

    def work(self, core: Core, record: StreamRecord) -> None:
        """Do what the function does with one record."""
        raise NotImplementedError

    def _process(self, batch: list[Change]) -> int:
        """How many records, from the first, are done."""
        for place, change in enumerate(batch):
            record = to_record(change)
            call = self._deployment.call(
                self._environment,
                self._name,
                "",
                {"record": f"{record.pk} {change.keys['sk']['S']}"},
                lambda core, record=record: self.work(core, record),  # type: ignore[misc]
                60,
            )
            if not call.known:
                return place
        return len(batch)

    def _read(self) -> None:
        table = self._deployment.tables.messages
        for change in self._deployment.engine.read_stream(table, self._read_to, 1_000):
            self._read_to = change.sequence
            if self.wanted(change):
                self._records.append(change)


class FanOut(StreamReader):
    """Feeds log records to `fan_out`."""

    def wanted(self, change: Change) -> bool:
        return change.event_name == "INSERT" and change.keys["pk"]["S"].startswith("L#")

    def work(self, core: Core, record: StreamRecord) -> None:
        assert record.after is not None
        fan_out(core, record.after)


class Meter(StreamReader):
    """Feeds batches to `meter`."""

    def wanted(self, change: Change) -> bool:
        return change.keys["pk"]["S"][:2] in _METERED

    def _process(self, batch: list[Change]) -> int:
        records = [to_record(change) for change in batch]
        call = self._deployment.call(
            self._environment,
            self._name,
            "",
            {"records": len(records)},
            lambda core: meter(core, records),
            60,
        )
        return int(call.answer) if call.known else 0


def to_record(change: Change) -> StreamRecord:
    """A change as the functions read it."""
    return StreamRecord(
        event_id=f"e{change.sequence:09d}",
        time_ms=change.approximate_creation_ms,
        before=change.old_image,
        after=change.new_image,
        by_ttl=change.user_identity is not None,
    )
