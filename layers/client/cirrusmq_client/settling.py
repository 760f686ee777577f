"""Settles messages with the service: many in a call, while handlers work."""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from cirrusmq_client.client import BaseClient
from cirrusmq_client.concurrency import THREADS, Concurrency
from cirrusmq_client.errors import (
    CirrusMQError,
    Conflict,
    NoDeadLetterQueue,
    ReceiptExpired,
    ReplyTooLate,
)
from cirrusmq_client.leases import BATCH, Held, Leases
from cirrusmq_client.outcomes import Failed, Outcome
from cirrusmq_client.results import Ack, DeadLetter, Reply, Result, Retry, Untried
from cirrusmq_client.sources import Source
from cirrusmq_client.steps import Step, Steps, driven
from cirrusmq_client.upkeep import Upkeep

T = TypeVar("T")
logger = logging.getLogger("cirrusmq_client")
WORKERS = 2
PENDING = 1_024
"""Maximum number of waiting results; with more, handlers wait."""
CARRY_SECONDS = 0.05
"""Maximum time that a delete waits for a receive that carries it."""
HANDLE_SECONDS = 0.02
"""Maximum time that a receive waits for the handlers of the previous one."""
CARRIED = 64
"""Maximum number of waiting deletes; with more, some are made at once."""
_EXPIRED, _NO_QUEUE = ReceiptExpired.__name__, NoDeadLetterQueue.__name__


class Settler:
    """Deletes, gives back and dead-letters messages. Results that wait share the next call.

    A delete waits for a short time, so that the next receive can carry it:

        handler ──> put ──> carried by a receive that is about to be made
                       └──> 50 ms later, or when many wait: deleted by a separate call
    """

    def __init__(
        self,
        client: BaseClient,
        source: Source,
        leases: Leases,
        upkeep: Upkeep,
        kind: Concurrency = THREADS,
        died: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._client, self._source, self._leases = client, source, leases
        self._upkeep = upkeep
        self._kind, self._run, self._died = kind, kind.run, died
        self._deletes: deque[tuple[Held, float]] = deque()
        """Messages to delete, and the time until which they may wait for a receive."""
        self._others: deque[tuple[Held, Result]] = deque()
        self._changed = kind.condition()
        self._open = self._closed = False
        self._workers: list[Any] = []

    def start(self) -> None:
        """Starts the workers."""
        self._workers = [self._spawn(number) for number in range(WORKERS)]

    @driven
    def put(self, results: Iterable[tuple[Held, Result]]) -> Steps[None]:
        """Adds results to settle soon."""
        with self._changed:
            while len(self._deletes) + len(self._others) >= PENDING and not self._open:
                yield self._changed.wait
            until = time.monotonic() + CARRY_SECONDS
            for held, result in results:
                if isinstance(result, Ack):
                    self._deletes.append((held, until))
                else:
                    self._others.append((held, result))
            self._changed.notify_all()

    @driven
    def wait_for_deletes(self, count: int) -> Steps[None]:
        """Waits until `count` deletes wait to be carried, or `HANDLE_SECONDS` pass."""
        until = time.monotonic() + HANDLE_SECONDS
        with self._changed:
            while len(self._deletes) < min(count, BATCH) and not self._closed:
                left = until - time.monotonic()
                if left <= 0:
                    return
                yield partial(self._changed.wait, left)

    def take_deletes(self) -> list[Held]:
        """Takes the messages that the caller deletes by its next receive."""
        with self._changed:
            taken = [held for held, _ in _first(self._deletes)]
            self._changed.notify_all()
        self._leases.end(taken)
        return taken

    @driven
    def note_deletes(self, taken: Sequence[Held], outcome: Outcome) -> Steps[None]:
        """Notes the outcome of carried deletes; deletes failed ones now."""
        by_receipt = {held.message.receipt: held for held in taken}
        passing = {failed.receipt for failed in outcome.failed if failed.code != _EXPIRED}
        self._leases.drop([held for receipt, held in by_receipt.items() if receipt not in passing])
        self._warn(taken, [each for each in outcome.failed if each.receipt not in passing])
        yield partial(self.delete_after_all, [by_receipt[receipt] for receipt in passing])

    @driven
    def delete_after_all(self, taken: Sequence[Held]) -> Steps[None]:
        """Deletes messages in a separate call, since the receive with the deletes failed.

        The receive may have deleted them nevertheless: so an expired receipt is no failure here.
        """
        if not taken:
            return
        receipts = [held.message.receipt for held in taken]
        try:
            outcome: Outcome = yield partial(self._client.delete, self._source, receipts)
            self._warn(taken, [each for each in outcome.failed if each.code != _EXPIRED])
        except Exception as error:
            self._warn_all(taken, error)
        finally:
            self._leases.drop(taken)

    def open(self) -> None:
        """Accepts every result from now on, without a limit: at the end nobody waits for room."""
        with self._changed:
            self._open = True
            self._changed.notify_all()

    @driven
    def close(self, seconds: float) -> Steps[bool]:
        """Settles waiting results, then ends. Returns False if the time ends before; repeat it."""
        self.open()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        ended: bool = yield partial(self._kind.join, self._workers, seconds)
        if ended and (self._deletes or self._others):
            # A program that cancels every task of a loop has cancelled these, too.
            self._workers = [self._spawn(WORKERS)]
            ended = yield partial(self._kind.join, self._workers, seconds)
        return ended

    def give_up(self) -> None:
        """Settles nothing more: waiting messages come again when their leases expire."""
        with self._changed:
            waiting = [held for held, _ in (*self._deletes, *self._others)]
            self._deletes.clear()
            self._others.clear()
        self._kind.abandon(self._workers)
        ids = ", ".join(held.message.id for held in waiting) or "those of calls under way"
        line = "the service did not answer in time: messages of %s not settled come again: %s"
        logger.warning(line, self._source, ids)

    @driven
    def settle(self, results: Iterable[tuple[Held, Result]]) -> Steps[set[str]]:
        """Settles results now. Returns the receipts of settled messages."""
        results = list(results)
        if any(isinstance(result, Retry) and result.after is None for _, result in results):
            yield self._upkeep.read_again
        together: defaultdict[Result, list[Held]] = defaultdict(list)
        for held, result in results:
            together[self._upkeep.timed(result, held.message.receive_count)].append(held)
        done: set[str] = set()
        for result, group in together.items():
            for start in range(0, len(group), BATCH):
                done |= yield from self._settle(group[start : start + BATCH], result)
        return done

    def _spawn(self, number: int) -> Any:
        return self._kind.spawn(f"cirrusmq-settler-{number}", self._work, self._died)

    @driven
    def _work(self) -> Steps[None]:
        while taken := (yield from self._next()):
            yield partial(self.settle, taken)

    def _next(self) -> Steps[list[tuple[Held, Result]]]:
        """Waits for results to settle now. Returns none at the end."""
        with self._changed:
            while True:
                left: float | None = None
                if self._others:
                    taken = _first(self._others)
                    break
                if self._deletes:
                    left = self._deletes[0][1] - time.monotonic()
                    if left <= 0 or self._closed or len(self._deletes) >= CARRIED:
                        taken = [(held, Ack()) for held, _ in _first(self._deletes)]
                        break
                elif self._closed:
                    return []
                yield partial(self._changed.wait, left)
            self._changed.notify_all()
            return taken

    def _reply(self, group: Sequence[Held], result: Reply) -> Steps[Outcome]:
        """Replies to messages. A message with another reply, or that nobody waits for, is deleted.

        One that asks for no reply is a failure: it stays held until its lease expires.
        """
        outcome = Outcome({}, [])
        name = self._source.name
        for held in group:
            message = held.message
            try:
                yield partial(self._client.reply, name, message, result.body, result.attributes)
                outcome.done[message.receipt] = None
            except (Conflict, ReplyTooLate) as error:
                outcome.failed.append(Failed(message.receipt, error.code, error.detail))
                ended: Outcome = yield partial(self._client.delete, self._source, [message.receipt])
                outcome.done.update(ended.done)
            except CirrusMQError as error:
                outcome.failed.append(Failed(message.receipt, error.code, error.detail))
        return outcome

    def _settle(self, group: Sequence[Held], result: Result) -> Steps[set[str]]:
        homeless: list[Held] = []
        try:
            outcome: Outcome
            if isinstance(result, Reply):
                outcome = yield from self._reply(group, result)
            else:
                outcome = yield self._call([held.message.receipt for held in group], result)
            homeless = [held for held in group if _has_no_queue(held, outcome)]
            done = set(outcome.done)
            self._warn(group, [each for each in outcome.failed if not _passes(each, result)])
            if homeless and not isinstance(result, Reply):
                done |= yield from self._settle_homeless(homeless, result)
        except Exception as error:
            # They are delivered again when their leases expire.
            self._warn_all(group, error)
            return set()
        finally:
            self._leases.drop(group)
        return done

    def _settle_homeless(
        self, group: Sequence[Held], result: Ack | DeadLetter | Retry
    ) -> Steps[set[str]]:
        """Makes a missing dead-letter queue for dead letters, or gives them back."""
        done: set[str] = set()
        if (yield self._upkeep.make_dead_letter_queue):
            outcome: Outcome = yield self._call([held.message.receipt for held in group], result)
            done = set(outcome.done)
            self._warn(group, [each for each in outcome.failed if each.code != _NO_QUEUE])
            group = [held for held in group if _has_no_queue(held, outcome)]
        for held in group:
            line = "%s of %s has no dead-letter queue and comes again: %s"
            reason = result.reason if isinstance(result, DeadLetter) else None
            logger.warning(line, held.message.id, self._source, reason or "no reason was given")
        if group:
            yield partial(self.settle, [(held, Retry()) for held in group])
        return done

    def _warn(self, group: Sequence[Held], failures: Iterable[Failed]) -> None:
        ids = {held.message.receipt: held.message.id for held in group}
        for failed in failures:
            line = "%s of %s not settled: %s: %s"
            told = ids.get(failed.receipt, "a message")
            logger.warning(line, told, self._source, failed.code, failed.detail)

    def _warn_all(self, group: Sequence[Held], error: Exception) -> None:
        ids = ", ".join(held.message.id for held in group)
        line = "%d messages of %s not settled: %s: %s"
        trace = None if isinstance(error, CirrusMQError) else error
        logger.warning(line, len(group), self._source, error, ids, exc_info=trace)

    def _call(self, receipts: Sequence[str], result: Ack | DeadLetter | Retry) -> Step:
        client, source = self._client, self._source
        match result:
            case Ack():
                return partial(client.delete, source, receipts)
            case DeadLetter(reason):
                return partial(client.dead_letter, source, receipts, reason)
            case Untried():
                return partial(
                    client.give_back, source, receipts, result.delay_seconds, tried=False
                )
            case Retry():
                return partial(client.give_back, source, receipts, result.delay_seconds)


def _first(waiting: deque[T]) -> list[T]:
    """Takes as many as one call settles."""
    return [waiting.popleft() for _ in range(min(len(waiting), BATCH))]


def _passes(failed: Failed, result: Result) -> bool:
    """Returns True if a failure needs no warning: it is handled elsewhere, or does no harm."""
    if isinstance(result, Untried) and failed.code == _EXPIRED:
        return True
    return failed.code == _NO_QUEUE


def _has_no_queue(held: Held, outcome: Outcome) -> bool:
    """Returns True if the message is a dead letter without a dead-letter queue."""
    receipt = held.message.receipt
    return any(each.receipt == receipt and each.code == _NO_QUEUE for each in outcome.failed)
