"""Consumers of a queue, a receiver or a group in answers."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.access.consumers import Consumer
from cirrusmq.base.timestamps import format_time
from cirrusmq_lambda.answers.body import Body, Cursor, Time


class ConsumerState(Body, kw_only=True):
    """An access key that received within the last seven days, whether or not a message came."""

    access_key_id: (
        Annotated[str, Meta(description="shown to the key's own account alone")] | UnsetType
    ) = UNSET
    account: str
    last_received_at: Annotated[
        Time, Meta(description="noted once in five minutes: the key may have received since")
    ]

    @classmethod
    def of(cls, consumer: Consumer, reader: str) -> Self:
        """Returns the answer for a consumer. `reader`: the caller's account."""
        return cls(
            access_key_id=consumer.key_id if consumer.account == reader else UNSET,
            account=consumer.account,
            last_received_at=format_time(consumer.received_ms),
        )


class ConsumerPage(Body):
    """A page of the access keys that received, in no order."""

    consumers: list[ConsumerState]
    cursor: Cursor | UnsetType = UNSET
