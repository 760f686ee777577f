"""Clustering: the members of a group share the messages of a source.

receive ──> inbox ──> workers: handler ──> settler: delete, give back, dead-letter
   ↑          └── leases are extended from the receive until the settling ──┘
   └───────── deletes of messages handled since the last receive ───────────┘
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from cirrusmq_client.answers import Health
from cirrusmq_client.client import BaseClient
from cirrusmq_client.concurrency import THREADS, Concurrency, died_of
from cirrusmq_client.errors import CirrusMQError, NoAnswer, Throttled, Unavailable
from cirrusmq_client.handling import Handle
from cirrusmq_client.inbox import Inbox
from cirrusmq_client.leases import Held, Leases
from cirrusmq_client.messages import Received
from cirrusmq_client.options import Options
from cirrusmq_client.outcomes import Exchanged
from cirrusmq_client.results import Ack, Reply, Result, Retry, Untried
from cirrusmq_client.settling import Settler
from cirrusmq_client.sources import Source
from cirrusmq_client.steps import Steps, driven
from cirrusmq_client.tracing import detached
from cirrusmq_client.upkeep import MISSING, MISSING_SECONDS, Upkeep

logger = logging.getLogger("cirrusmq_client")
PAUSE_SECONDS = (0.5, 30.0)
PASSING = (NoAnswer, Throttled, Unavailable)
AT_ONCE = Retry(after=0)
SETTLE_SECONDS = 2.0
"""Time to settle handlers' results after the end of the grace time."""
STOP_SECONDS = 0.5
UNTRIED = Untried(after=0)


class Clustering:
    """The workers of one member: threads or tasks."""

    def __init__(
        self,
        client: BaseClient,
        source: Source,
        handle: Handle,
        options: Options,
        kind: Concurrency = THREADS,
    ) -> None:
        self._client, self._source, self._handle = client, source, handle
        self._options, self._kind, self._run = options, kind, kind.run
        self._inbox = Inbox(options.prefetch, kind, options.limit)
        self._upkeep = Upkeep(client, source, options, kind)
        self._leases = Leases(client, source, kind, self._die)
        self._settler = Settler(client, source, self._leases, self._upkeep, kind, self._die)
        self._unanswered: tuple[type[BaseException], ...] = (Exception, *kind.cancelled)
        self._error: CirrusMQError | None = None
        self._ends = math.inf
        """End of the grace time, by the monotonic clock."""
        self._abandoned = False
        self.stopping = kind.event()
        self._receivers: list[Any] = []
        self._workers: list[Any] = []

    @driven
    def start(self) -> Steps[None]:
        """Starts to receive and to handle."""
        with detached(self._client.spans):
            self._leases.start()
            self._settler.start()
            self._workers = [
                self._kind.spawn(f"cirrusmq-worker-{number}", self._work, self._die)
                for number in range(self._options.workers)
            ]
            self._receivers = [
                self._kind.spawn(f"cirrusmq-receiver-{number}", self._receive, self._die)
                for number in range(self._options.receivers)
            ]
        yield from ()

    @driven
    def finish(self) -> Steps[None]:
        """Ends the member after `stopping` is set.

        Gives unstarted messages back, lets handlers end within the grace time, and settles their
        results. Raises the error that made receiving impossible or ended a worker.

            stopping ── handlers end ──────┬── settled ──> over
                                           └── no answer ── grace time or 2 s ──> left, over
        """
        self._ends = time.monotonic() + self._options.grace_seconds
        self._settler.open()
        unstarted = self._inbox.close()
        yield partial(self._settler.put, [(held, UNTRIED) for held in unstarted])
        in_time = yield partial(self._kind.join, self._workers, self._left())
        yield partial(self._kind.join, self._receivers, self._left())
        if not in_time:
            logger.warning("the grace time is over: what still runs comes again later")
        yield partial(self._kind.join, self.abandon(), SETTLE_SECONDS)
        yield from self._settle_rest()
        yield partial(self._leases.stop, STOP_SECONDS)
        if self._error is not None:
            raise self._error

    def abandon(self) -> Sequence[Any]:
        """Ends handlers and receives now, as far as possible."""
        self._abandoned = True
        return self._kind.abandon((*self._workers, *self._receivers))

    def hurry(self) -> None:
        """Ends the grace time now."""
        self._ends = -math.inf
        self.abandon()

    def _left(self) -> float:
        """Returns the remaining seconds of the grace time."""
        return max(0.0, self._ends - time.monotonic())

    def _settle_rest(self) -> Steps[None]:
        """Settles waiting results, within the grace time and `SETTLE_SECONDS` after it."""
        least = time.monotonic() + SETTLE_SECONDS
        while (left := max(self._ends, least) - time.monotonic()) > 0:
            # In short waits, since `hurry` may be called.
            if (yield partial(self._settler.close, min(left, STOP_SECONDS))):
                return
        self._settler.give_up()

    def _die(self, error: BaseException) -> None:
        """Ends this member because of an exception in a worker: `finish` raises it.

        Leases that nobody settles are not extended beyond the grace time.
        """
        if self._abandoned:
            return  # it was ended, or nobody waits for it any more
        death = died_of(self._source, error)
        self._error = self._error or death
        self._leases.end_after(self._options.grace_seconds)
        self.stopping.set()

    @driven
    def _receive(self) -> Steps[None]:
        learned = False
        pause, longest = PAUSE_SECONDS
        while not self.stopping.is_set():
            try:
                if not learned:
                    yield from self._learn()
                    learned = True
                if (yield from self._receive_once()):
                    pause = PAUSE_SECONDS[0]
                else:
                    # The account's limit of waiting receives is reached: this one has not waited.
                    yield partial(self.stopping.wait, pause)
                    pause = min(2 * pause, self._options.wait_seconds, longest)
            except PASSING as error:
                line = "not received from %s, again in %.1f s: %s"
                logger.warning(line, self._source, pause, error)
                yield partial(self.stopping.wait, pause)
                pause = min(2 * pause, longest)
            except MISSING as error:
                learned = False
                pause = min(pause, MISSING_SECONDS)
                made: bool = yield partial(self._upkeep.make, error, pause)
                if not made:
                    yield partial(self.stopping.wait, pause)
                    pause *= 2
            except CirrusMQError as error:
                self._error = error
                self.stopping.set()

    def _learn(self) -> Steps[None]:
        """Reads the source's order and retry policy, and the service's time scale."""
        health: Health = yield self._client.health
        self._leases.scale = health["time_scale"]
        yield self._upkeep.read
        self._inbox.ordered, self._inbox.once = self._upkeep.ordered, self._upkeep.once

    def _receive_once(self) -> Steps[bool]:
        """Receives. Returns False if an empty answer came long before the end of the wait."""
        limit: int = yield self._inbox.wait_for_room
        if not limit:
            return True
        begun = time.monotonic()
        received = yield from self._exchange(limit)
        if not received:
            waited_seconds = (time.monotonic() - begun) * self._leases.scale
            return waited_seconds >= self._options.wait_seconds / 2
        held = self._leases.add(received)
        if held and (left := self._inbox.put(held)):
            yield from self._give_back_untried(left)
        if len(received) < limit and not self._inbox.ordered:
            # No other messages wait: fast handlers may end before the next receive.
            yield partial(self._settler.wait_for_deletes, len(received))
        return True

    def _exchange(self, limit: int) -> Steps[list[Received]]:
        """Receives; the same call deletes messages handled since the last one."""
        done = self._settler.take_deletes()
        wanted: dict[str, Any] = {
            "wait_seconds": self._options.wait_seconds,
            "visibility_timeout_seconds": self._options.visibility_timeout_seconds,
        }
        if not done:
            received: list[Received] = yield partial(
                self._client.receive, self._source, limit, **wanted
            )
            return received
        receipts = [held.message.receipt for held in done]
        exchange = partial(self._client.delete_and_receive, self._source, receipts, limit, **wanted)
        try:
            exchanged: Exchanged = yield exchange
        except self._unanswered:
            yield partial(self._settler.delete_after_all, done)
            raise
        yield partial(self._settler.note_deletes, done, exchanged.deleted)
        if exchanged.error is not None:
            raise exchanged.error
        return exchanged.messages

    @driven
    def _work(self) -> Steps[None]:
        limit, await_seconds = self._options.limit, self._options.await_seconds
        while True:
            taken: list[Held] = yield partial(self._inbox.take, limit, await_seconds)
            if not taken:
                return
            try:
                yield from self._work_on(taken)
            except self._kind.cancelled:
                raise
            except BaseException:
                self._leases.drop(taken)
                raise

    def _work_on(self, taken: Sequence[Held]) -> Steps[None]:
        started = [held for held in taken if not held.lost]
        if len(started) < len(taken):
            yield from self._lose([held for held in taken if held.lost])
        if not started:
            return
        # Before the handler starts: it may end the process.
        if beside := self._inbox.beside(started):
            yield from self._give_back_untried(beside)
        try:
            handled = yield from self._handle([held.message for held in started])
        except self._kind.cancelled:
            self._settler.open()
            yield partial(self._settler.put, [(held, AT_ONCE) for held in started])
            raise
        results = list(zip(started, handled, strict=True))
        try:
            if self._inbox.ordered:
                yield from self._settle_in_order(results)
            else:
                for held in started:
                    self._inbox.done(held)
                yield partial(self._settler.put, results)
        except self._kind.cancelled:
            # They were handled: to settle twice is better than to handle twice.
            self._settler.open()
            yield partial(self._settler.put, results)
            raise

    def _settle_in_order(self, results: Sequence[tuple[Held, Result]]) -> Steps[None]:
        """Settles results; a group's next message starts only after this one is deleted."""
        done: set[str] = yield partial(self._settler.settle, results)
        for held, result in results:
            if held.message.receipt not in done or not isinstance(result, Ack | Reply):
                yield from self._give_back_untried(self._inbox.fail(held))
            self._inbox.done(held)

    def _lose(self, lost: Sequence[Held]) -> Steps[None]:
        """Drops messages that another member may have received: they are not handled here.

        If none has, the service still takes them back, as messages that no handler started.
        """
        unstarted: list[Held] = []
        for held in lost:
            logger.warning("%s of %s was not started in time", held.message.id, self._source)
            unstarted += [held, *self._inbox.fail(held)]
        yield from self._give_back_untried(unstarted)
        for held in lost:
            self._inbox.done(held)

    def _give_back_untried(self, unstarted: Sequence[Held]) -> Steps[None]:
        """Gives messages back that no handler started: the receive does not count."""
        yield partial(self._settler.settle, [(each, UNTRIED) for each in unstarted])
