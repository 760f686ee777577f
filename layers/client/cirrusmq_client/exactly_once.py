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
"""The longest life of a message, so longer than every retry span."""


class AlreadyConsumed(Exception):
    """The record is there: the message had its effect, and nothing was written now."""


class Transactions(Protocol[T_co]):
    """The store of the records: the same one as for the consumer's own writes."""

    def run(self, key: str, group: str, work: Callable[[T_co], object]) -> object:
        """Do the work and write the record, both or neither; the work's result.

        Nothing is written where the result is `Retry` or `DeadLetter`, or the work raises.
        Raises AlreadyConsumed.
        """
        ...

    def run_together(
        self, keys: Sequence[str], group: str, work: Callable[[frozenset[str], T_co], object]
    ) -> object:
        """Do the work and write all records, or nothing; the work's result.

        The work gets the keys that have no record yet: it may be done again with fewer of them,
        when nothing was written. Nothing is written where the result has a `Retry` or
        `DeadLetter`, or the work raises. Raises AlreadyConsumed where every key has a record.
        """
        ...


@dataclass(frozen=True)
class ExactlyOnce(Generic[T]):
    """Makes handlers of (message, transaction) into handlers whose writes happen once.

        once = ExactlyOnce(SqlTransactions(engine), "billing")

        @once
        def handle(message, connection):
            connection.execute(...)

    `group` names the consumers that share the work; another group has its own effect, and so has
    another source. What is no repetition: a message with the same `deduplication_id` that was sent
    in other five minutes of the clock. A message that is dropped is logged, at INFO.

    With batches the handler gets (messages, transaction): one transaction for the batch, without
    the messages that had their effect before. Where it answers `Retry` or `DeadLetter` for one of
    them, nothing is written, and the others are delivered again at once. With `each` every message
    has a transaction of its own: the handler gets lists of one, and a failure is that one's alone.
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
        """The handler for a `Consumer`. Raises TypeError if the handler cannot work.

        A result that is none is a failure: nothing is written.
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
        """Handle one message; `Ack` where it had its effect before. Raises UnknownResult."""

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
        """Handle messages in one transaction; a result for each, `Ack` for those left out."""
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
        """Handle a message of a batch in its own transaction; its failure is no other's."""
        try:
            return self._handle_one(message, handler)
        except (Exception, SystemExit, GeneratorExit):
            logger.warning("%s comes again: its handler failed", message.id, exc_info=True)
            return Retry()


def _tell(message: Received) -> None:
    """A message that is dropped is told: the sender may not know of the one before it."""
    noted = message.deduplication_id
    told = message.id if noted is None else f"{message.id} (deduplication id {noted})"
    logger.info("%s of %s had its effect before", told, message.source or "an unknown source")


def _check_takes_lists(handler: Callable[..., object]) -> None:
    """Raise TypeError for a handler that, by its signature, takes single messages.

    By the annotation of its first parameter, else by the name that our examples have for it.
    """
    try:
        first = next(iter(inspect.signature(handler).parameters.values()))
    except (TypeError, ValueError, StopIteration):
        return  # it does not say
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
    """Whether a handler's result, or one of several, means that its writes must not happen."""
    if isinstance(result, list):
        return any(map(writes_nothing, result))
    return isinstance(result, Retry | DeadLetter)


def check_keep_seconds(seconds: int) -> int:
    """How long records are kept, checked: 3 days, or the longest retry span if that is more."""
    if seconds < KEEP_SECONDS_LEAST:
        raise ValueError(f"records are kept for {KEEP_SECONDS_LEAST:,} seconds at least")
    return seconds
