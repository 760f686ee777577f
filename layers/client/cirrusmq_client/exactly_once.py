"""Exactly-once effects: the record of a message is written together with the consumer's writes.

receive ─> begin ─> record (message, group) ─> the consumer's writes ─> commit ─> delete
                        │ is there already                                 │
                        └─> roll back, report success      a crash here: the message is
                                                           delivered again, and its record found
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, overload

from cirrusmq_client.effect_keys import key_of
from cirrusmq_client.handling import BatchHandler, Handler, check_handler
from cirrusmq_client.messages import Received
from cirrusmq_client.results import (
    Ack,
    BatchResult,
    DeadLetter,
    HandlerResult,
    Retry,
    check_result,
    check_results,
    for_each,
)

logger = logging.getLogger("cirrusmq_client")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

KEEP_SECONDS_LEAST = 259_200
KEEP_SECONDS = 1_296_000
"""The longest life of a message, and so longer than all retries."""


class AlreadyConsumed(Exception):
    """The record exists: the message has had its effect, and nothing was written now."""


class Transactions(Protocol[T_co]):
    """The store of the records, which is also the store of the consumer's writes."""

    def run(self, key: str, group: str, work: Callable[[T_co], object]) -> object:
        """Does the work and writes the record, both or neither. Returns the work's result.

        Nothing is written if the result is `Retry` or `DeadLetter`, or if the work raises. Raises
        AlreadyConsumed if the record exists.
        """
        ...

    def run_together(
        self, keys: Sequence[str], group: str, work: Callable[[frozenset[str], T_co], object]
    ) -> object:
        """Does the work and writes all records, or nothing. Returns the work's result.

        The work gets the keys without a record. It may be called again with fewer keys, after
        its first writes were rolled back. Nothing is written if the result has a `Retry` or
        `DeadLetter`, or if the work raises. Raises AlreadyConsumed if every key has a record.
        """
        ...


@dataclass(frozen=True)
class ExactlyOnce(Generic[T]):
    """Turns handlers of (message, transaction) into handlers whose writes happen once.

        once = ExactlyOnce(SqlTransactions(engine), "billing")

        @once
        def handle(message, connection):
            connection.execute(...)

    `group` names the consumers that share the work. Another group has its own effect, and so has
    another source. A message with the same `deduplication_id` that was sent in another five
    minutes of the clock is not a repetition. A dropped message is logged at INFO.

    With batches the handler gets (messages, transaction): one transaction for the batch, without
    messages that have had their effect. If it returns `Retry` or `DeadLetter` for one of them,
    nothing is written, and the others are delivered again at once. With `each`, every message has
    a separate transaction: the handler gets lists of one, and a failure does not affect others.
    A handler of single messages needs neither batches nor `each`.
    """

    store: Transactions[T]
    group: str
    each: bool = False

    @overload
    def __call__(self, handler: Callable[[Received, T], HandlerResult]) -> Handler: ...

    @overload
    def __call__(self, handler: Callable[[list[Received], T], BatchResult]) -> BatchHandler: ...

    def __call__(self, handler: Callable[[Any, T], Any]) -> Callable[[Any], Any]:
        """Returns the handler for a `Consumer`. Raises TypeError if the handler cannot be called.

        An invalid result of the handler is a failure: nothing is written.
        """
        check_handler(handler, 2)
        if self.each:
            _check_takes_lists(handler)

        def handle(given: Received | list[Received]) -> BatchResult:
            if isinstance(given, Received):
                return (
                    self._handle_one(given, handler) if self.each else self.handle(given, handler)
                )
            if self.each:
                return [self._handle_alone(message, handler) for message in given]
            return self.handle_together(given, handler)

        return handle

    def handle(
        self, message: Received, handler: Callable[[Received, T], HandlerResult]
    ) -> HandlerResult:
        """Handles one message. Returns the result, or `Ack` if the message has had its effect.

        Raises UnknownResult if the handler returns no result.
        """

        def work(tools: T) -> HandlerResult:
            return check_result(handler(message, tools))

        try:
            return check_result(self.store.run(key_of(message, self.group), self.group, work))
        except AlreadyConsumed:
            _tell(message)
            return Ack()

    def handle_together(
        self, messages: Sequence[Received], handler: Callable[[list[Received], T], BatchResult]
    ) -> list[HandlerResult]:
        """Handles messages in one transaction.

        Returns a result for each, `Ack` for a message that has had its effect.
        """
        keys = [key_of(message, self.group) for message in messages]
        first: dict[str, Received] = {}
        for key, message in zip(keys, messages, strict=True):
            first.setdefault(key, message)
        results: dict[str, HandlerResult] = {}

        def work(new: frozenset[str], tools: T) -> object:
            results.clear()
            wanted = [key for key in first if key in new]
            value = handler([first[key] for key in wanted], tools)
            given = check_results(for_each(value, len(wanted)))
            results.update(zip(wanted, given, strict=True))
            return given

        try:
            self.store.run_together(tuple(first), self.group, work)
        except AlreadyConsumed:
            results.clear()
        refused = writes_nothing(list(results.values()))
        for key, message in zip(keys, messages, strict=True):
            if key not in results or (first[key] is not message and not refused):
                _tell(message)
        if refused:
            results = {
                key: result if writes_nothing(result) else Retry(after=0)
                for key, result in results.items()
            }
        return [results.get(key, Ack()) for key in keys]

    def _handle_one(
        self, message: Received, handler: Callable[[list[Received], T], BatchResult]
    ) -> HandlerResult:
        return self.handle(message, lambda one, tools: _only(handler([one], tools)))

    def _handle_alone(
        self, message: Received, handler: Callable[[list[Received], T], BatchResult]
    ) -> HandlerResult:
        """Handles a message of a batch in its own transaction; its failure affects no other."""
        try:
            return self._handle_one(message, handler)
        except (Exception, SystemExit, GeneratorExit):
            logger.warning("%s comes again: its handler failed", message.id, exc_info=True)
            return Retry()


def _tell(message: Received) -> None:
    """Logs a dropped message: its sender may not know of the earlier one."""
    noted = message.deduplication_id
    told = message.id if noted is None else f"{message.id} (deduplication id {noted})"
    logger.info("%s of %s had its effect before", told, message.source or "an unknown source")


def _check_takes_lists(handler: Callable[..., object]) -> None:
    """Raises TypeError for a handler that, by its signature, takes single messages.

    Decides by the annotation of its first parameter, or else by that parameter's name.
    """
    try:
        first = next(iter(inspect.signature(handler).parameters.values()))
    except (TypeError, ValueError, StopIteration):
        return  # it has no signature
    given = first.annotation
    if given is inspect.Parameter.empty:
        single = first.name == "message"
    elif isinstance(given, type):
        single = issubclass(given, Received)
    else:
        single = str(given).rpartition(".")[2].strip("'\"") == Received.__name__
    if single:
        raise TypeError(
            f"each=True gives the handler lists of one message: {first} takes a single one. Take"
            " messages: list[Received], or leave batches and each out"
        )


def _only(value: object) -> HandlerResult:
    return check_result(for_each(value, 1)[0])


def writes_nothing(result: object) -> bool:
    """Returns True if a handler's result, or one of several, forbids its writes."""
    if isinstance(result, list):
        return any(map(writes_nothing, result))
    return isinstance(result, Retry | DeadLetter)


def check_keep_seconds(seconds: int) -> int:
    """Returns the time for which records are kept. Raises ValueError below 3 days."""
    if seconds < KEEP_SECONDS_LEAST:
        raise ValueError(f"records are kept for {KEEP_SECONDS_LEAST:,} seconds at least")
    return seconds
