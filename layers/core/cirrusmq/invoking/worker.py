"""A worker: hands batches over while there are messages, then arranges for the next worker.

    fan_out ── wakes ── takes a slot ── batch ── batch ── nothing ── releases ── asked? next due?
                                          └── wakes two more, at its first full batch

Nothing that is ready waits for the sweep, unless a worker or a wake-up is lost:

    put after the scan   its waker found no free slot and asked: the worker scans once more
    delayed, or failed   the worker waits for it if that is soon, else an execution wakes one
    an open breaker      the same, until the next message is tried; others leave
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Literal, NamedTuple, TypeAlias

from cirrusmq.access import shares
from cirrusmq.access.shares import PoolShare
from cirrusmq.base.errors import Unavailable
from cirrusmq.invoking import slots
from cirrusmq.invoking.function_batch import (
    claim_batch,
    hand_over,
    lease_exceeds_timeout,
    return_all,
)
from cirrusmq.invoking.function_breaker import FunctionBreaker
from cirrusmq.invoking.parting import is_again, next_part
from cirrusmq.invoking.probing import TRIED_FROM, choose_one, try_one
from cirrusmq.invoking.slots import Slot
from cirrusmq.invoking.waking import wake
from cirrusmq.lifecycle import chores
from cirrusmq.lifecycle.chore_memory import ChoreMemory
from cirrusmq.model.invoke import Invoke
from cirrusmq.model.source import Source
from cirrusmq.receiving import rounds
from cirrusmq.receiving.receive_request import Received
from cirrusmq.receiving.rounds import DueAt, NotAllSeen, Nothing, SourceLook
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.sources import present_source

HOPS = 64
"""Invocations in a row of which each starts the next; after them the sweep starts one."""
SETTLE_SECONDS = 20
"""Real seconds kept free after a call: for its settling, and for the worker's end."""
NAP_SECONDS = 20
"""Longest wait that is slept out, which costs less than an execution."""
SEEN_MS = 1_000
"""A scan sees a message if it begins this time after the put, or later."""
PAUSE_MS = (1_000, 60_000)
"""Pause before a scan of messages that are ready and could not be claimed, doubling."""
_DUES = 16
_Ending: TypeAlias = Literal["empty", "late", "refused", "gone", "open"]
_logger = logging.getLogger(__name__)


class _Target(NamedTuple):
    source: Source
    invoke: Invoke
    arn: str


def work(core: Core, event: dict[str, Any], max_ms: float) -> None:
    """Calls a source's function with its messages, for about `max_ms` real milliseconds."""
    deadline_ms = core.now_ms() + int(max_ms * core.clock.scale)
    source = present_source(core, event["source"])
    if source is None:
        return
    with shares.calling(core, source.account, max_ms) as share:
        if not share.admitted:
            return  # the sweep comes back
        worker = _Worker(core, source.owner_id, event.get("hops", 0), deadline_ms, share)
        worker.run()
    # Behind the count: the successor must not be one above the account's share.
    if worker.leaves_some:
        worker.wake_another()


class _Worker:
    def __init__(
        self, core: Core, owner_id: str, hops: int, deadline_ms: int, share: PoolShare
    ) -> None:
        self._core = core
        self._share = share
        self._owner_id = owner_id
        self._hops = hops
        self._deadline_ms = deadline_ms
        self._alone = False
        """True if the next message is claimed alone: some of the last batch had to wait for it."""
        self._handed = False
        """True if it handed anything over."""
        self.leaves_some = False
        """True if another worker is to go on."""
        self._dues_ms: list[int] = []
        """When messages that failed here are ready again."""
        self._pause_ms = PAUSE_MS[0]
        self._seen: SourceLook | None = None
        """The result of the scan behind an empty claim."""
        self._since_ms = core.now_ms()
        """When the worker last learned that there may be messages."""
        self._breaker = FunctionBreaker(core, slots.wake_key(owner_id))

    def run(self) -> None:
        """Works until nothing is ready, or time is up."""
        slot = self._take()
        while slot is not None:
            try:
                ending = self._hand_out(slot)
            finally:
                self._breaker.add(slot.invoke.breaker)
                with contextlib.suppress(Unavailable):  # it ends by its time
                    slots.release(self._core, slot)
            slot = self._next(ending)
        if ChoreMemory in self._core.memories and (target := self._target()) is not None:
            for source in target.source.all:
                chores.tell_rest(self._core, source)

    def _target(self) -> _Target | None:
        """Returns the source and its function now.

        Returns None if it is gone or paused, or names no function that is listed.
        """
        source = present_source(self._core, self._owner_id)
        if source is None or source.invoke is None or source.paused:
            return None
        arn = self._core.settings.invoke_functions.get(source.invoke.function)
        if arn is None:
            _logger.error(
                "InvokeFunctions does not list %s, which source %s names",
                *(source.invoke.function, source.id),
            )
            return None
        return _Target(source, source.invoke, arn)

    def _take(self) -> Slot | None:
        """Takes a slot, as soon as an open breaker tries a message if that is this worker's task.

        Returns None if there is no slot, no time is left, or another worker comes back in time.
        """
        while (target := self._target()) is not None:
            if not self._has_time(target.invoke.timeout_seconds):
                self.leaves_some |= self._handed and self._breaker.is_open(target.invoke)
                return None
            slot = slots.take(self._core, self._owner_id, target.invoke, self._breaker)
            if slot is not None or not self._breaker.waits(target.invoke):
                return slot
            if self._breaker.is_tried or not self._wait_until(self._breaker.circuit.probe_ms):
                return None
        return None

    def _hand_out(self, slot: Slot) -> _Ending:
        """Hands over batch after batch, under a hold of the slot that outlives each call."""
        core, first, held = self._core, True, slot
        while True:
            target = self._target()
            if target is None:
                return "gone"
            source, invoke, _ = target
            if not self._has_time(invoke.timeout_seconds) or not self._share.may_go_on():
                return "late"
            renewed = slots.renew(core, held, invoke)
            if renewed is None:
                return "gone"
            held = renewed
            trying = self._breaker.is_open(invoke)
            batch = self._claim_one(source, invoke) if trying else self._claim(source, invoke)
            if not batch:
                return "empty"
            renewed = slots.renew(core, held, invoke)
            if renewed is None:
                return_all(core, source, batch)
                self.leaves_some = True
                return "gone"
            held = renewed
            # Claiming may have taken long, if the store is slow: slot and leases are for calls.
            if not _outlives_call(core, held, invoke, batch):
                return_all(core, source, batch)
                continue
            if trying:
                self._handed = True
                if not try_one(core, self._breaker, *target, batch):
                    return "open"
                continue
            if first and len(batch) == invoke.batch:
                self._wake_others(slot)
            first, self._handed, self._pause_ms = False, True, PAUSE_MS[0]
            if self._hand_parts(target, held, batch):
                return "refused"
            if self._breaker.is_open(invoke):
                return "open"

    def _hand_parts(self, target: _Target, slot: Slot, batch: list[Received]) -> bool:
        """Hands a batch over in parts, and gives the rest back when no further call may begin.

        Returns True if the function did not run. In an ordered source nothing is handed over behind
        a message of its group that is left.
        """
        core, (source, invoke, arn) = self._core, target
        waiting, passed = batch, list[Received]()
        refused = False
        while waiting and not refused and not self._breaker.is_open(invoke):
            part = next_part(waiting)
            if part and waiting is not batch and not self._may_go_on(slot, invoke, waiting):
                break
            handed = hand_over(core, source, invoke, arn, part)
            if invoke.breaker is not None and (handed.succeeded or handed.failed):
                self._breaker.count(
                    invoke.breaker, handed.succeeded, handed.failed, handed.error or ""
                )
            if handed.due_ms is not None:
                self._dues_ms = sorted([*self._dues_ms, handed.due_ms])[:_DUES]
            refused = handed.refused
            stopped = {each.message.group for each in part if each.receipt in handed.left}
            begun = {each.receipt for each in part}
            waiting = [each for each in waiting if each.receipt not in begun]
            if source.ordered:
                passed += [each for each in waiting if each.message.group in stopped]
                waiting = [each for each in waiting if each.message.group not in stopped]
        self._alone = self._alone or bool(waiting)
        if left := [*passed, *waiting]:
            return_all(core, source, left)
        return refused

    def _may_go_on(self, slot: Slot, invoke: Invoke, waiting: list[Received]) -> bool:
        """Returns True if one more call with held messages would be over in time."""
        core = self._core
        if not self._has_time(invoke.timeout_seconds) or not self._share.may_go_on():
            return False
        held = slots.renew(core, slot, invoke)
        return held is not None and _outlives_call(core, held, invoke, waiting)

    def _claim_one(self, source: Source, invoke: Invoke) -> list[Received]:
        """Claims the message that an open breaker tries: by chance if others may hide it."""
        batch = self._claim(source, invoke, TRIED_FROM if source.grouped else 1)
        return choose_one(self._core, source, batch) if batch else batch

    def _claim(
        self, source: Source, invoke: Invoke, max_messages: int | None = None
    ) -> list[Received]:
        """Claims a batch; in a source with groups, of which a claim sees a few, also after a scan.

        claim   8 units: the groups a to f wait ── nothing
        scan   64 units: o is ready, u to z are not seen ── claims at o ── its alarm: scans on
        """
        core, self._seen = self._core, None
        batch = claim_batch(
            core, source, invoke, max_messages or (1 if self._alone else invoke.batch)
        )
        self._alone = self._alone and any(map(is_again, batch))
        if batch or not source.grouped:
            return batch
        self._seen = rounds.look(core, source.all, self._since_ms)
        if not self._seen.ready:
            return batch
        rounds.begin_there(core, self._seen)
        batch = claim_batch(core, source, invoke, max_messages or invoke.batch)
        self._seen = None if batch else self._seen
        return batch

    def _next(self, ending: _Ending) -> Slot | None:
        """Takes a slot once more after a release, if a message is ready, or soon will be."""
        core = self._core
        if ending == "late" and self._handed:
            self.leaves_some = True
        if ending in ("late", "gone"):
            return None
        if ending == "open":
            return self._take()
        now = slots.read(core, self._owner_id)
        if now.asked_ms:
            if not self._has_time(SETTLE_SECONDS):
                self.leaves_some = True
                return None
            core.wait_until(now.asked_ms + SEEN_MS)
            if slots.answer_asked(core, self._owner_id, now.asked_ms):
                self._since_ms = now.asked_ms
                return self._take()
        due_ms = self._next_due_ms()
        return self._take() if due_ms is not None and self._wait_until(due_ms) else None

    def _wait_until(self, due_ms: int) -> bool:
        """Waits until a time, if that is soon and nobody else does.

        Returns False if another worker comes then, or sooner: an execution wakes it if need be.
        """
        core = self._core
        if not slots.set_alarm(core, self._owner_id, due_ms):
            return False
        if self._has_time((due_ms - core.now_ms()) / 1000 / core.clock.scale, NAP_SECONDS):
            core.wait_until(due_ms)
            return True
        self._start_waiting(due_ms)
        return False

    def _next_due_ms(self) -> int | None:
        target = self._target()
        if target is None:
            return None
        seen, self._seen = self._seen, None
        if seen is None:
            seen = rounds.look(self._core, target.source.all, self._since_ms)
        now_ms = self._core.now_ms()
        self._dues_ms = [due_ms for due_ms in self._dues_ms if due_ms > now_ms]
        known = [*self._dues_ms, *_times(seen)]
        later = [moment_ms for moment_ms in known if moment_ms > now_ms]
        if len(later) < len(known):
            later.append(now_ms + self._pause_ms)
            self._pause_ms = min(2 * self._pause_ms, PAUSE_MS[1])
        return min(later, default=None)

    def _has_time(self, seconds: float, limit: float = float("inf")) -> bool:
        """Returns True if these real seconds are left before the end, and are at most `limit`."""
        needed_ms = (seconds + SETTLE_SECONDS) * 1000 * self._core.clock.scale
        return seconds <= limit and self._core.now_ms() + needed_ms <= self._deadline_ms

    def _wake_others(self, slot: Slot) -> None:
        """Wakes two others, each of which wakes two: there is more than one batch."""
        for _ in range(min(slot.spare, 2)):
            self.wake_another()

    def wake_another(self) -> None:
        """Starts another worker, unless too many in a row have led to this one."""
        if self._hops >= HOPS:
            return
        try:
            wake(self._core, self._owner_id, self._hops + 1)
        except Exception:
            _logger.exception("no further worker of %s could be started", self._owner_id)

    def _start_waiting(self, due_ms: int) -> None:
        """Starts an execution that wakes a worker when a message is due."""
        now_ms = self._core.now_ms()
        seconds = -(-(due_ms - now_ms) // 1000)
        given = {"action": "wait", "wait_seconds": max(0, seconds), "wake": self._owner_id}
        self._core.start_execution(f"{self._owner_id}-{due_ms}-{now_ms}", given)


def _outlives_call(core: Core, slot: Slot, invoke: Invoke, batch: list[Received]) -> bool:
    """Returns True if a slot and a batch's leases last until a call that begins now is over."""
    if not slots.lease_exceeds_timeout(core, slot):
        return False
    return lease_exceeds_timeout(core, invoke, batch)


def _times(seen: SourceLook) -> list[int]:
    """Returns when to come back after a scan: at the next due time, or to see the rest."""
    match seen.answer:
        case DueAt(at_ms):
            return [at_ms]
        case NotAllSeen(again_ms, due_ms):
            return [again_ms] if due_ms is None else [again_ms, due_ms]
        case Nothing():
            return []
