"""Receivers of a queue in answers."""

from __future__ import annotations

from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.queues.receivers import Receiver
from cirrusmq_lambda.answers.body import Body, Cursor, Time
from cirrusmq_lambda.answers.counts import Counts


class ReceiverAttributes(Body, kw_only=True):
    """An independent receiver of a queue."""

    name: str
    id: str
    start: str
    starts_at: Time
    filter: dict[str, Any] | None
    paused: bool
    receive_rate: int | None
    labels: dict[str, str]
    created_at: Time
    modified_at: Time
    operation: (
        Annotated[
            str,
            Meta(description="is copying older messages to it; it gets no other messages yet"),
        ]
        | UnsetType
    ) = UNSET

    @classmethod
    def of(cls, receiver: Receiver, **more: Any) -> Self:
        """Returns the answer for a receiver. `more`: further fields of a subclass."""
        return cls(
            name=receiver.name,
            id=receiver.id,
            start=receiver.start,
            starts_at=format_time(receiver.start_ms),
            filter=receiver.filter,
            paused=receiver.paused,
            receive_rate=receiver.receive_rate,
            labels=receiver.labels,
            created_at=format_time(receiver.created_ms),
            modified_at=format_time(receiver.modified_ms or receiver.created_ms),
            operation=(receiver.backfill or UNSET) if receiver.filling else UNSET,
            **more,
        )


class ReceiverWithCounts(ReceiverAttributes, kw_only=True):
    """A receiver and how many messages wait for it."""

    counts: Counts


class ReceiverPage(Body):
    """A page of a queue's receivers, by name."""

    receivers: list[ReceiverAttributes]
    cursor: Cursor | UnsetType = UNSET
