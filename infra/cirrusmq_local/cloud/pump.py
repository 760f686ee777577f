"""Passes a table's change stream to a function, as a Lambda event source mapping does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from cirrusmq.runtime.clock import Clock
from cirrusmq_local.cloud.clock import ClockStopped
from cirrusmq_local.cloud.invocation import PAYLOAD_BYTES, MeasuredEvent
from cirrusmq_local.cloud.patterns import compile_patterns
from cirrusmq_local.cloud.template import StreamSource

LambdaRecord: TypeAlias = dict[str, Any]
T = TypeVar("T")
Run: TypeAlias = Callable[[str, Any], Any]
Park: TypeAlias = Callable[[StreamSource, Sequence[LambdaRecord]], None]

READ_RECORDS = 1_000
_EVENT_BYTES = 100
"""Size of an event without its records."""
# A stop or a flush is noticed within this time.
WAKE_SECONDS = 0.25
# If the function's filter drops many records, to read each record alone would cost too much. The
# first pause, which doubles while all records are dropped, and the longest pause.
UNWANTED_PAUSE_SECONDS = (0.01, 0.04)
# Skipped records need no exact position, so it is then saved at this interval only.
SAVE_EVERY_SECONDS = 5.0
RETRY_SECONDS = (0.1, 30.0)

_log = logging.getLogger(__name__)


class StreamRecord(Protocol):
    """A change of an item."""

    @property
    def sequence(self) -> int: ...

    @property
    def event_name(self) -> str: ...

    @property
    def keys(self) -> Mapping[str, Any]: ...

    @property
    def new_image(self) -> Mapping[str, Any] | None: ...

    def as_lambda_record(self) -> LambdaRecord: ...


class Stream(Protocol):
    """The part of the engine that the pump uses."""

    def read_stream(self, table: str, after: int, limit: int) -> Sequence[StreamRecord]: ...

    def wait_for_stream(self, table: str, after: int, timeout_seconds: float) -> bool: ...

    def save_position(self, reader: str, position: int) -> None: ...

    def load_position(self, reader: str) -> int: ...


class PumpClock(Clock, Protocol):
    """A clock that can be stopped."""

    @property
    def stopped(self) -> bool: ...


class Pump:
    """Reads one stream for one function.

    The position is saved after a batch is done, never before: a stack that was killed in between
    passes the same records to the function again.
    """

    def __init__(
        self, source: StreamSource, stream: Stream, run: Run, park: Park, clock: PumpClock
    ) -> None:
        self.source = source
        self._stream = stream
        self._run = run
        self._park = park
        self._clock = clock
        self._wanted = compile_patterns(source.filters)
        self._reader = f"{source.table}:{source.function}"
        self._position = self.saved = stream.load_position(self._reader) or 0
        self._saved_at = time.monotonic()
        self._pause_seconds = UNWANTED_PAUSE_SECONDS[0]
        self._flush = threading.Event()
        self._flushed = threading.Condition()
        self._flushes_done = 0

    def run_until_stopped(self) -> None:
        """Passes records to the function until the stack's clock stops; runs in its own thread."""
        while not self._clock.stopped:
            try:
                self.step()
            except ClockStopped:
                return
            except Exception:
                # The position is behind the last batch that is done: nothing is skipped.
                _log.exception("reading the stream for %s failed", self.source.function)
                time.sleep(WAKE_SECONDS)

    def step(self) -> None:
        """Collects a batch that is full or whose window is over, and processes it."""
        flushing = self._flush.is_set()
        batch, read_to, at_end = self._collect()
        if batch:
            self._process(batch)
        self._position = read_to
        due = time.monotonic() - self._saved_at > SAVE_EVERY_SECONDS
        if self._position > self.saved and (batch or due or self._clock.stopped):
            self._save()
        if flushing and at_end:
            self._end_flush()

    def flush(self) -> None:
        """Has all records in the stream processed. Returns when this is done."""
        with self._flushed:
            awaited = self._flushes_done + 1
            self._flush.set()
            while self._flushes_done < awaited and not self._clock.stopped:
                self._flushed.wait(WAKE_SECONDS)

    def drain(self) -> None:
        """As `flush`, in this thread; no other thread may run the pump."""
        self._flush.set()
        while self._flush.is_set():
            self.step()

    def _end_flush(self) -> None:
        with self._flushed:
            self._flush.clear()
            self._flushes_done += 1
            self._flushed.notify_all()

    def _save(self) -> None:
        self._stream.save_position(self._reader, self._position)
        self.saved = self._position
        self._saved_at = time.monotonic()

    def _collect(self) -> tuple[list[LambdaRecord], int, bool]:
        """Returns a batch, the position behind it, and True if that is the stream's end."""
        batch: list[LambdaRecord] = []
        size = _EVENT_BYTES
        read_to = self._position
        waited_until = 0.0
        while True:
            records = self._stream.read_stream(self.source.table, read_to, READ_RECORDS)
            for record in records:
                head = {"eventName": record.event_name, "dynamodb": _Change(record)}
                if self._wanted(head):
                    made = record.as_lambda_record()
                    size += len(msgspec.json.encode(made)) + 1
                    if batch and size > PAYLOAD_BYTES:
                        return batch, read_to, False
                    batch.append(made)
                read_to = record.sequence
                if len(batch) == self.source.batch_size:
                    return batch, read_to, False
            if len(records) == READ_RECORDS:
                continue
            if batch and not waited_until:
                waited_until = time.monotonic() + self.source.window_seconds / self._clock.scale
            unwanted_alone = not batch and read_to > self._position
            if not unwanted_alone:
                self._pause_seconds = UNWANTED_PAUSE_SECONDS[0]
            left = waited_until - time.monotonic()
            if self._flush.is_set() or self._clock.stopped or (batch and left <= 0):
                return batch, read_to, True
            if unwanted_alone:
                time.sleep(self._pause_seconds)
                self._pause_seconds = min(2 * self._pause_seconds, UNWANTED_PAUSE_SECONDS[1])
                return batch, read_to, True
            self._wait(read_to, left if batch else WAKE_SECONDS)
            if not batch:
                return batch, read_to, False

    def _wait(self, read_to: int, seconds: float) -> None:
        seconds = min(seconds, WAKE_SECONDS)
        if self.source.window_seconds:
            # The batch may wait, so there is no reason to read each record at once.
            self._flush.wait(seconds)
        else:
            self._stream.wait_for_stream(self.source.table, read_to, seconds)

    def _process(self, batch: Sequence[LambdaRecord]) -> None:
        """Processes every record of the batch, or parks it after its last retry."""
        plan = Plan(self.source, batch)
        pause_seconds = RETRY_SECONDS[0]
        while (piece := plan.next()) is not None:
            done, raised = self._try(piece)
            given_up = plan.settle(done, raised, self._age_seconds(piece))
            if given_up:
                self._park(self.source, given_up)
            elif done == len(piece):
                pause_seconds = RETRY_SECONDS[0]
            else:
                self._clock.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, RETRY_SECONDS[1])

    def _try(self, records: Sequence[LambdaRecord]) -> tuple[int, bool]:
        """Returns how many records, from the first, are done, and True if the function raised."""
        try:
            event = MeasuredEvent(Records=list(records))
            answer = self._run(self.source.function, event)
        except Exception:
            _log.exception("%s failed on %d records", self.source.function, len(records))
            return 0, True
        return records_done(self.source, records, answer), False

    def _age_seconds(self, records: Sequence[LambdaRecord]) -> float:
        created = float(records[0]["dynamodb"]["ApproximateCreationDateTime"])
        return self._clock.now_ms() / 1_000 - created


class Plan(Generic[T]):
    """The tries of a batch until every record of it is done or given up.

    a b c d ──c raises──> a b ──> c d ──c raises──> c ──c raises──> given up ──> d
    a b c d ──c reported──> c d ──c reported──> c d … given up

    If the function raises, the rest of the batch is halved, which counts as no retry. If it
    reports its first failure, the rest from there on is tried again whole.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
    """

    def __init__(self, source: StreamSource, batch: Sequence[T]) -> None:
        self._source = source
        self._pieces: list[tuple[Sequence[T], int]] = [(batch, 0)]
        """The remaining pieces, the next one at the end, each with the number of its retries."""

    def next(self) -> Sequence[T] | None:
        """Returns the records to try now, or None if nothing is left."""
        return self._pieces[-1][0] if self._pieces else None

    def settle(self, done: int, raised: bool, age_seconds: float) -> Sequence[T]:
        """Notes that the piece's first `done` records are done. Returns the records to give up.

        `age_seconds`: age of the piece's first record.
        """
        records, tries = self._pieces.pop()
        rest = records[done:]
        # Records that were reached only now have not been tried before.
        tries = 0 if done else tries
        if not rest:
            return ()
        if raised and len(rest) > 1 and self._source.bisect:
            middle = (len(rest) + 1) // 2
            self._pieces += [(rest[middle:], 0), (rest[:middle], tries)]
            return ()
        if 0 <= self._source.retries <= tries or 0 <= self._source.max_age_seconds < age_seconds:
            return rest
        self._pieces.append((rest, tries + 1))
        return ()


def records_done(source: StreamSource, records: Sequence[LambdaRecord], answer: Any) -> int:
    """Returns how many records, from the first, are done by a function's answer."""
    if not source.reports_failures or not answer:
        return len(records)
    failed = {held.get("itemIdentifier") for held in answer.get("batchItemFailures") or []}
    if not failed:
        return len(records)
    for index, record in enumerate(records):
        if record["dynamodb"]["SequenceNumber"] in failed:
            return index
    # The answer names no record of the batch: as in the cloud, the whole batch counts as failed.
    return 0


class _Change(Mapping[str, Any]):
    """The part of a record that filters read, with binaries as bytes; read only if a filter asks.

    For many records the event's name alone decides.
    """

    def __init__(self, record: StreamRecord) -> None:
        self._record = record

    def __getitem__(self, name: str) -> Any:
        match name:
            case "Keys":
                return self._record.keys
            case "NewImage":
                return self._record.new_image
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("Keys", "NewImage"))

    def __len__(self) -> int:
        return 2
