"""Sends that linger: messages that come within a short time share a call.

    send_soon ──> lane ──> batch ──> one of some workers: send ──> a future for each message
                   └── (queue, delay), or (queue, group or replace key): one batch in flight

Topics work as queues do. The workers are threads, or tasks of an event loop.

A batch is sent when it is full, or when its first message has waited for `linger`. In a group's
lane the next batch waits for the previous one's answer, so that the order is kept; by then it has
more messages.

Producers of one client share their waiting messages: a batch of sends that is not full takes along
messages of the same queue and delay from the others. Each producer still answers for its own.
"""

from __future__ import annotations

import concurrent.futures
import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from cirrusmq_client.batches import Size, size_of
from cirrusmq_client.concurrency import THREADS, Concurrency
from cirrusmq_client.errors import CirrusMQError, NoAnswer
from cirrusmq_client.forking import renew_in_children
from cirrusmq_client.messages import Message
from cirrusmq_client.soon import Failures, Soon
from cirrusmq_client.steps import Steps, driven
from cirrusmq_client.tracing import Spans, detached

logger = logging.getLogger("cirrusmq_client")
WAITING_MESSAGES = 10_000
WAITING_BYTES = 16_777_216
"""Maximum bytes of messages without an answer; with more, `put` waits."""
_REFUSED = (400, 413)

Call: TypeAlias = Callable[[str, Sequence[Message]], Any]
"""A step: a client's `send_each` or `publish`."""


class NotSent(CirrusMQError):
    """The producer was closed before the message was sent."""


@dataclass(slots=True, eq=False)
class _Entry:
    message: Message
    size: Size
    future: Future[Any]
    came: float
    """Time of `put`, by the monotonic clock."""
    due: float
    """Time at which its batch is sent, full or not, if a worker is free."""


@dataclass(slots=True, eq=False)
class _Lane:
    """Messages that may be sent together."""

    key: tuple[object, ...]
    call: Call
    name: str
    """Name of the queue or topic."""
    in_order: bool
    shared: bool
    """True if other producers of the client may send its messages along with theirs."""
    entries: deque[_Entry] = field(default_factory=deque)
    size: Size = field(default_factory=Size)
    busy: bool = False
    """True if a batch is in flight for which the next one waits."""
    planned: float | None = None
    """Time at which its next batch is due, or None if no worker is to take one."""

    def take(self, held: Size | None = None) -> list[_Entry]:
        """Takes the first messages for one call, with one delay, and at least one message.

        held: size of a batch beside which the messages must fit; then there may be none.
        """
        batch: list[_Entry] = []
        beside, held = held, Size() if held is None else held
        begun = held
        while self.entries:
            entry = self.entries[0]
            delays = {each.message.delay_seconds for each in (*batch[:1], entry)}
            joins = beside is not None or batch
            if joins and (len(delays) > 1 or not held.plus(entry.size).fits):
                break
            if batch and (entry.message.is_alone or batch[-1].message.is_alone):
                break
            batch.append(self.entries.popleft())
            held = held.plus(entry.size)
        self.size = self.size.minus(held.minus(begun))
        return batch


class Lingering:
    """The waiting messages of one producer, and the workers that send them."""

    def __init__(
        self, linger_seconds: float, sends: int, client: Any, kind: Concurrency = THREADS
    ) -> None:
        """client: producers of the same one send each other's messages along."""
        self._linger_seconds, self._kind, self._run = linger_seconds, kind, kind.run
        self._sends = sends
        self._closed = False
        self._spans: Spans | None = getattr(client, "spans", None)
        self._place: object = None
        self.renew()
        self._peers = _peers.setdefault(client, WeakSet())
        self._peers.add(self)
        renew_in_children(self)

    def renew(self) -> None:
        """Clears everything in a forked child.

        Only the parent sends the messages that waited, and answers their futures.
        """
        self._lanes: dict[tuple[object, ...], _Lane] = {}
        self._due: list[tuple[float, int, _Lane]] = []
        self._numbers = itertools.count()
        self._unanswered: set[Future[Any]] = set()
        self._held = Size()
        self._failures = Failures()
        lock = threading.Lock()
        self._work, self._room = self._kind.condition(lock), self._kind.condition(lock)
        self._workers: list[Any] = []
        """Empty before the first message."""

    @driven
    def put(
        self, call: Call, name: str, message: Message, *, shared: bool = False
    ) -> Steps[Future[Any]]:
        """Adds a message to send soon. Returns its future. Raises NotSent if closed.

        Waits while too many messages have no answer, except in a callback of a future, which
        runs in a worker's thread.

        shared: True if another producer of the client may send it along.
        """
        if self._spans is not None:  # by the caller's context, not by a worker's
            message = self._spans.created(name, message)
        size, future = size_of(message), Soon[Any](self._failures)
        waits = not self._kind.is_one_of(self._workers)
        with self._work:
            while waits and not self._closed and not self._has_room(size):
                yield self._room.wait
            if self._closed:
                raise NotSent
            self._start()
            now = time.monotonic()
            entry = _Entry(message, size, future, now, now + self._linger_seconds)
            self._unanswered.add(future)
            self._held = self._held.plus(size)
            lane = self._lane(call, name, message, shared)
            lane.entries.append(entry)
            lane.size = lane.size.plus(size)
            self._plan(lane)
        return future

    @driven
    def flush(self, timeout_seconds: float | None) -> Steps[bool]:
        """Sends all waiting messages now. Returns False if the time ends before their answers."""
        with self._work:
            self._hurry()
            unanswered = list(self._unanswered)
        return bool((yield partial(self._kind.wait, unanswered, timeout_seconds)))

    @driven
    def close(self, grace_seconds: float) -> Steps[None]:
        """Refuses new messages, and sends the waiting ones.

        A message without an answer in time gets NotSent.
        """
        yield from self._close(grace_seconds)
        count, error = self._failures.take()
        if count:
            logger.warning("%d messages were not sent; their futures say why: %s", count, error)

    def _close(self, grace_seconds: float) -> Steps[None]:
        with self._work:
            self._closed = True
            self._hurry()
            self._work.notify_all()
            self._room.notify_all()
            unanswered = list(self._unanswered)
        in_time = False
        try:
            in_time = yield partial(self._kind.wait, unanswered, grace_seconds)
        finally:
            self._give_up()
            ending = self._workers if in_time else self._kind.abandon(self._workers)
        self._kind.not_at_exit(self._at_exit)
        yield partial(self._kind.join, ending)

    def _give_up(self) -> None:
        """Fails all messages without an answer with NotSent."""
        with self._work:
            self._closed = True
            waiting = [entry.future for lane in self._lanes.values() for entry in lane.entries]
            for lane in self._lanes.values():
                lane.entries.clear()
            in_flight = self._unanswered.difference(waiting)
            self._work.notify_all()
            self._room.notify_all()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                _settle(future, NotSent())
        for future in in_flight:
            error = NotSent("the producer was closed before the send was answered")
            error.uncertain = True
            _settle(future, error)

    def _at_exit(self, seconds: float) -> tuple[int, BaseException | None]:
        self._kind.run(self._close(seconds))
        return self._failures.take()

    def _start(self) -> None:
        if self._workers:
            return
        self._kind.at_exit(self._at_exit)
        self._place = self._kind.place()
        with detached(self._spans):
            self._workers = [
                self._kind.spawn(f"cirrusmq-sender-{number}", self._work_on, self._die)
                for number in range(self._sends)
            ]

    def _die(self, error: BaseException) -> None:
        """Fails waiting messages with NotSent, because an exception ended a worker."""
        if not self._closed:
            logger.error("the producer ends: %r", error, exc_info=error)
        self._give_up()

    def _has_room(self, size: Size) -> bool:
        held = self._held.plus(size)
        return not self._unanswered or (
            held.messages <= WAITING_MESSAGES and held.bytes <= WAITING_BYTES
        )

    def _lane(self, call: Call, name: str, message: Message, shared: bool) -> _Lane:
        key: tuple[object, ...]
        if message.replace is not None:
            # Alone in its call, and behind the message before it: the last one is to wait.
            in_order, key = True, (call, name, "replace", message.replace)
        else:
            in_order = message.group is not None
            key = (call, name, in_order, message.group if in_order else message.delay_seconds)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key, call, name, in_order, shared and not in_order)
        return lane

    def _hurry(self) -> None:
        """Makes all waiting messages due now."""
        for lane in self._lanes.values():
            for entry in lane.entries:
                entry.due = entry.came
            self._plan(lane)

    def _plan(self, lane: _Lane) -> None:
        """Plans the lane's next batch for a worker at its due time.

        Due batches are taken in the order in which their messages came, so that no lane waits
        forever behind a busier one.
        """
        if not lane.entries or lane.busy:
            return
        first = lane.entries[0]
        due = first.came if lane.size.full else first.due
        if lane.planned is None or due < lane.planned:
            lane.planned = due
            heapq.heappush(self._due, (due, next(self._numbers), lane))
            self._work.notify()

    @driven
    def _work_on(self) -> Steps[None]:
        try:
            while (taken := (yield from self._next())) is not None:
                lane, batch = taken
                borrowed = self._borrow(lane, batch)
                try:
                    yield from self._send_all(lane, [*batch, *(each for each, _ in borrowed)])
                finally:
                    _give_back(borrowed)
                with self._work:
                    self._forget(batch)
                    lane.busy = False
                    self._plan_rest(lane)
        except self._kind.cancelled:
            self._give_up()
            raise

    def _send_all(self, lane: _Lane, batch: Sequence[_Entry]) -> Steps[None]:
        """Sends a batch, and sets the results of its futures."""
        results = yield from self._send(lane.call, lane.name, [each.message for each in batch])
        for entry, result in zip(batch, results, strict=True):
            _settle(entry.future, result)

    def _borrow(self, lane: _Lane, batch: Sequence[_Entry]) -> list[tuple[_Entry, Lingering]]:
        """Messages of other producers that a batch takes along, each with its producer."""
        borrowed: list[tuple[_Entry, Lingering]] = []
        if not lane.shared:
            return borrowed
        held = Size()
        for entry in batch:
            held = held.plus(entry.size)
        for peer in list(self._peers):
            if held.full:
                break
            if peer is self or peer._place is not self._place:
                continue
            for entry in peer._lend(lane.key, held):
                held = held.plus(entry.size)
                borrowed.append((entry, peer))
        return borrowed

    def _lend(self, key: tuple[object, ...], held: Size) -> list[_Entry]:
        """Messages of a lane for the batch of another producer, which has that size already."""
        with self._work:
            lane = self._lanes.get(key)
            if lane is None or not lane.shared:
                return []
            return self._started(lane, lane.take(held))

    def _next(self) -> Steps[tuple[_Lane, list[_Entry]] | None]:
        """Waits for the next due batch. Returns None if closed and empty."""
        with self._work:
            while True:
                left = self._left_seconds()
                if left is not None and left <= 0:
                    lane = heapq.heappop(self._due)[2]
                    lane.planned = None
                    if batch := self._take(lane):
                        return lane, batch
                    continue
                if left is None and self._closed and not self._waits:
                    self._work.notify_all()
                    return None
                yield partial(self._work.wait, left)

    @property
    def _waits(self) -> bool:
        return any(lane.entries for lane in self._lanes.values())

    def _left_seconds(self) -> float | None:
        """Returns the seconds until the next batch is due, or None if none is planned."""
        while self._due and self._due[0][2].planned != self._due[0][0]:
            heapq.heappop(self._due)  # planned again since, for an earlier time
        return self._due[0][0] - time.monotonic() if self._due else None

    def _take(self, lane: _Lane) -> list[_Entry]:
        """Takes a batch of the lane, without messages whose futures were cancelled."""
        batch = self._started(lane, lane.take())
        if self._due:
            self._work.notify()  # another worker takes the next one
        return batch

    def _started(self, lane: _Lane, taken: Sequence[_Entry]) -> list[_Entry]:
        """Returns the taken messages without cancelled ones."""
        batch = [entry for entry in taken if entry.future.set_running_or_notify_cancel()]
        self._forget([entry for entry in taken if entry.future.cancelled()])
        lane.busy = lane.in_order and bool(batch)
        self._plan_rest(lane)
        return batch

    def _plan_rest(self, lane: _Lane) -> None:
        self._plan(lane)
        if not lane.entries and not lane.busy and self._lanes.get(lane.key) is lane:
            del self._lanes[lane.key]

    def _forget(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            self._unanswered.discard(entry.future)
            self._held = self._held.minus(entry.size)
        self._room.notify_all()

    def _send(self, call: Call, name: str, messages: Sequence[Message]) -> Steps[Sequence[Any]]:
        """Returns the result for each message, which may be an exception.

        If a call is refused for one of its messages, its halves are sent separately.
        """
        try:
            results: Sequence[Any] = yield partial(call, name, messages)
            if len(results) == len(messages):
                return results
            raise NoAnswer(f"the service answered for {len(results)} of {len(messages)} messages")
        except CirrusMQError as error:
            if len(messages) == 1 or not _of_one_message(error):
                return [error] * len(messages)
        except Exception as error:
            return [error] * len(messages)
        half = len(messages) // 2
        first = yield from self._send(call, name, messages[:half])
        return [*first, *(yield from self._send(call, name, messages[half:]))]


_peers: WeakKeyDictionary[Any, WeakSet[Lingering]] = WeakKeyDictionary()
"""The producers of each client."""


def _give_back(borrowed: Sequence[tuple[_Entry, Lingering]]) -> None:
    """Messages that were sent along are answered: by the call, else their worker has ended."""
    for entry, owner in borrowed:
        if not entry.future.done():
            error = NotSent("the producer that sent it along ended before the send was answered")
            error.uncertain = True
            _settle(entry.future, error)
        with owner._work:
            owner._forget([entry])


def _of_one_message(error: CirrusMQError) -> bool:
    """Returns True if an error may be for one of several messages; then nothing was stored."""
    if error.uncertain:
        return False
    if error.status is None:
        return type(error) is CirrusMQError  # it cannot be sent as JSON
    named = error.parameter is None or error.parameter.startswith("messages")
    return error.status in _REFUSED and named


def _settle(future: Future[Any], result: Any) -> None:
    """Sets a result if the future has none yet. Logs exceptions of its callbacks."""
    try:
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
    except concurrent.futures.InvalidStateError:
        pass
    except BaseException:
        logger.exception("a callback of a send failed")
