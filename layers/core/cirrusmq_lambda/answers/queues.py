"""Queues in answers."""

from __future__ import annotations

from typing import Any, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.queue import DeadLetter, Queue
from cirrusmq.model.sender import SenderDetail
from cirrusmq_lambda.answers.body import Body, Cursor, Time
from cirrusmq_lambda.answers.counts import Counts
from cirrusmq_lambda.answers.invoking import BreakerError, BreakerState, Invoke


class QueueAttributes(Body):
    """A queue."""

    name: str
    id: str
    message_retention_seconds: int
    visibility_timeout_seconds: int
    receive_wait_seconds: float
    delay_seconds: int
    max_message_bytes: int
    max_messages: int
    rewind_seconds: int
    dead_letter: DeadLetter | None
    retry: dict[str, Any] | None
    ordered: bool
    fair: bool
    max_in_flight: int | None
    rate: int | None
    priorities: int | None
    ageing_seconds: int | None
    send_rate: int | None
    receive_rate: int | None
    partitions: int
    invoke: Invoke | None
    description: str | None
    labels: dict[str, str]
    paused: bool
    sender: SenderDetail
    created_at: Time
    modified_at: Time

    @classmethod
    def of(cls, queue: Queue, **more: Any) -> Self:
        """Returns the answer for a queue. `more`: further fields of a subclass."""
        return cls(
            name=queue.name,
            id=queue.id,
            **asdict(queue.attributes),
            created_at=format_time(queue.created_ms),
            modified_at=format_time(queue.modified_ms),
            **more,
        )


class QueueWithCounts(QueueAttributes):
    """A queue, its counts of messages, and the state of its function's breaker."""

    counts: Counts
    region: str
    breaker_state: BreakerState | UnsetType = UNSET
    breaker_open_since: Time | UnsetType = UNSET
    breaker_error: BreakerError | UnsetType = UNSET


class QueuePage(Body):
    """A page of queues, by name."""

    queues: list[QueueAttributes]
    cursor: Cursor | UnsetType = UNSET
