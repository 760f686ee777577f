"""Exactly-once effects: the record of a message is written together with the consumer's writes.

receive ─> begin ─> record (message, group) ─> the consumer's writes ─> commit ─> delete
                        │ is there already                                 │
                        └─> roll back, report success      a crash here: the message is
                                                           delivered again, and its record found
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from cirrusmq_client.messages import Received
from cirrusmq_client.results import Ack, DeadLetter, Retry

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


@dataclass(frozen=True)
class ExactlyOnce(Generic[T]):
    """Makes handlers of (message, transaction) into handlers whose writes happen once.

        once = ExactlyOnce(SqlTransactions(engine), "billing")

        @once
        def handle(message, connection):
            connection.execute(...)

    `group` names the consumers that share the work; another group has its own effect.
    """

    store: Transactions[T]
    group: str

    def __call__(self, handler: Callable[[Received, T], object]) -> Callable[[Received], object]:
        """The handler for a `Consumer`."""

        def handle(message: Received) -> object:
            return self.handle(message, handler)

        return handle

    def handle(self, message: Received, handler: Callable[[Received, T], object]) -> object:
        """Handle one message; `Ack` where it had its effect before."""
        key = message.deduplication_id or message.id
        try:
            return self.store.run(key, self.group, lambda tools: handler(message, tools))
        except AlreadyConsumed:
            return Ack()


def writes_nothing(result: object) -> bool:
    """Whether a handler's result means that its writes must not happen."""
    return isinstance(result, Retry | DeadLetter)


def check_keep_seconds(seconds: int) -> int:
    """How long records are kept, checked: 3 days, or the longest retry span if that is more."""
    if seconds < KEEP_SECONDS_LEAST:
        raise ValueError(f"records are kept for {KEEP_SECONDS_LEAST:,} seconds at least")
    return seconds
