"""The readers of the stream, fed as Lambda feeds them."""

from __future__ import annotations

from collections import deque

from tests.simulation.deployment import Deployment, Environment
from tests.simulation.stage import Actor

from cirrusmq.handing_out import hand_out
from cirrusmq.handouts import LogEntry
from cirrusmq.metering import StreamRecord, meter
from cirrusmq_local.engine.changes import StreamRecord as Change

_METERED = ("Q#", "R#", "L#")
FUNCTION_SECONDS = 60
FAN_OUT_SECONDS = 40


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

    def _process(self, batch: list[Change]) -> int:
        """How many records, from the first, are done."""
        raise NotImplementedError

    def _read(self) -> None:
        table = self._deployment.tables.messages
        for change in self._deployment.engine.read_stream(table, self._read_to, 1_000):
            self._read_to = change.sequence
            if self.wanted(change):
                self._records.append(change)


class FanOut(StreamReader):
    """Feeds log records to `fan_out`."""

    def wanted(self, change: Change) -> bool:
        return change.event_name != "REMOVE" and change.keys["pk"]["S"].startswith("L#")

    def _process(self, batch: list[Change]) -> int:
        entries = [to_entry(change) for change in batch]
        call = self._deployment.call(
            self._environment,
            self._name,
            "",
            {"records": " ".join(change.keys["sk"]["S"] for change in batch)},
            lambda core: hand_out(core, entries, 1_000 * FAN_OUT_SECONDS).records,
            FUNCTION_SECONDS,
        )
        return int(call.answer) if call.known else 0


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
            lambda core: meter(core, records).records,
            FUNCTION_SECONDS,
        )
        return int(call.answer) if call.known else 0


def to_entry(change: Change) -> LogEntry:
    """A new log record as fan_out reads it."""
    assert change.new_image is not None
    came_ms = change.approximate_creation_ms // 1000 * 1000
    return LogEntry(item=change.new_image, place=f"{change.sequence:040d}", came_ms=came_ms)


def to_record(change: Change) -> StreamRecord:
    """A change as the functions read it."""
    return StreamRecord(
        event_id=f"e{change.sequence:09d}",
        time_ms=change.approximate_creation_ms,
        before=change.old_image,
        after=change.new_image,
        by_ttl=change.user_identity is not None,
    )
