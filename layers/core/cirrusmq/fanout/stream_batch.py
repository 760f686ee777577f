"""A batch of the stream handed out: each reader's share of each record, in parallel.

Shares of one reader that are in order are handed out one after the other, all others in parallel.
A share that fails three times is put aside, and its reader's later shares in the batch with it,
untried: one hot key costs the shard three tries. The batch stops if the store does not take a
share that is put aside, and at the end of its time. The stream then repeats it from the first
record that is not done.

    r1  A ✓  B ✓  C ✓
    r2  A ✓  B ✗  C ✓      B's share is put aside: r2 is done
    r3  A ✓  B ─  C ─      no time left: the stream repeats the batch from r3 on
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Literal, NamedTuple, TypeAlias

from cirrusmq.base.errors import Unavailable
from cirrusmq.fanout import parking_lot
from cirrusmq.fanout.parked import clear_the_way, put_aside, start_draining
from cirrusmq.fanout.push_triggers import Notices
from cirrusmq.fanout.reader_parcels import FannedOut, LogEntry, ReaderDelivery, levels
from cirrusmq.fanout.record_shares import handouts_of
from cirrusmq.runtime.core import Core

TRIES = 3
TOGETHER = 16
"""Records in parallel: the most that are in part done again if a batch stops."""
CLEAR_MS = 2_000
"""How long a batch hands out the parked shares of one reader, before it adds to them instead."""
_Became: TypeAlias = Literal["given", "aside", "undone"]


class BatchOutcome(NamedTuple):
    """The outcome of a batch."""

    records: int
    """How many are done, from the first on."""
    errors: list[Exception]
    """Why shares were put aside, notices not sent, or the batch stopped."""


def deliver_records(core: Core, entries: Sequence[LogEntry], max_ms: int) -> BatchOutcome:
    """Hands out the records of a batch, for at most about `max_ms` real milliseconds."""
    return _Batch(core, core.now_ms() + int(max_ms * core.clock.scale)).run(entries)


class _Batch:
    def __init__(self, core: Core, deadline_ms: int) -> None:
        self._core = core
        self._deadline_ms = deadline_ms
        self._notices = Notices(core)
        self._looked: set[str] = set()
        """Readers with an order whose parked shares this batch has looked for."""
        self._aside: set[str] = set()
        """Readers whose shares are put aside, untried."""
        self._marked: set[str] = set()
        """Readers whose lots this batch has marked."""
        self._stopped = False
        self._errors: list[Exception] = []

    def run(self, entries: Sequence[LogEntry]) -> BatchOutcome:
        done = 0
        try:
            while done < len(entries) and not self._is_over():
                some = entries[done : done + TOGETHER]
                finished = self._run_together(some)
                done += finished
                if finished < len(some):
                    break
        finally:
            self._errors += self._notices.send()
            self._start_drainers()
        return BatchOutcome(done, self._errors)

    def _run_together(self, entries: Sequence[LogEntry]) -> int:
        """Hands these records out. Returns how many are done, from the first on."""
        plans: list[list[ReaderDelivery]] = []
        for entry in entries:
            plan = self._plan(entry)
            if plan is None:
                break
            plans.append(plan)
        handouts = [handout for plan in plans for handout in plan]
        self._clear_the_way({each.reader_id for each in handouts if each.in_order})
        became: dict[int, _Became] = {}
        for step in levels(handouts):
            became |= zip(map(id, step), self._core.in_parallel(self._give, step), strict=True)
        given = [each for each in handouts if became[id(each)] == "given"]
        for handout in self._notices.add(given):
            became[id(handout)] = self._put_aside(handout)
        for number, plan in enumerate(plans):
            ends = {became[id(handout)] for handout in plan}
            if "undone" in ends:
                return number
            if "aside" not in ends:
                self._core.memory(FannedOut).add(entries[number].item["sk"]["S"].partition("#")[2])
        return len(plans)

    def _plan(self, entry: LogEntry) -> list[ReaderDelivery] | None:
        """Returns the handouts of a record, or None if the store cannot be read now.

        An unreadable record is put aside whole, else it would stop the shard forever.
        """
        failure: Exception | None = None
        for _ in range(TRIES):
            try:
                return handouts_of(self._core, entry)
            except Exception as error:
                failure = error
        assert failure is not None
        self._errors.append(failure)
        if isinstance(failure, Unavailable):
            self._stopped = True
            return None
        self._aside.add(entry.log_id)
        return [ReaderDelivery(reader_id=entry.log_id, entry=entry)]

    def _clear_the_way(self, readers: Set[str]) -> None:
        """Hands out parked shares of readers with an order first, for `CLEAR_MS` each at most."""
        fresh = sorted(readers - self._looked)
        self._looked |= readers
        marked = self._core.in_parallel(self._is_marked, fresh)
        for reader_id in [each for each, is_so in zip(fresh, marked, strict=True) if is_so]:
            until_ms = self._core.now_ms() + int(CLEAR_MS * self._core.clock.scale)
            deadline_ms = min(until_ms, self._deadline_ms)
            try:
                is_clear = clear_the_way(self._core, reader_id, deadline_ms, self._notices)
            except Exception as error:
                self._errors.append(error)
                is_clear = False
            if not is_clear:
                self._aside.add(reader_id)

    def _is_marked(self, reader_id: str) -> bool:
        try:
            return parking_lot.exists(self._core, reader_id)
        except Exception:
            return True

    def _give(self, handout: ReaderDelivery) -> _Became:
        failure: Exception | None = None
        for _ in range(TRIES):
            if self._is_over():
                return "undone"
            if handout.reader_id in self._aside:
                break
            try:
                handout.give(self._core)
            except Exception as error:
                failure = error
            else:
                return "given"
        if failure is not None:
            self._errors.append(failure)
        self._aside.add(handout.reader_id)
        return self._put_aside(handout)

    def _put_aside(self, handout: ReaderDelivery) -> _Became:
        try:
            if handout.reader_id not in self._marked:
                parking_lot.mark(self._core, handout.reader_id)
                self._marked.add(handout.reader_id)
            put_aside(self._core, handout)
        except Exception as error:
            self._errors.append(error)
            self._stopped = True
            return "undone"
        return "aside"

    def _start_drainers(self) -> None:
        for reader_id in sorted(self._marked):
            try:
                start_draining(self._core, reader_id)
            except Exception as error:  # the sweep does
                self._errors.append(error)

    def _is_over(self) -> bool:
        return self._stopped or self._core.now_ms() >= self._deadline_ms
