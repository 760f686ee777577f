"""`invoke`: the function that a queue's or group's messages are handed to, as values."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.shapes import integer
from cirrusmq.model.breaker import Breaker, BreakerInput
from cirrusmq.model.described import chosen_values

EventSource: TypeAlias = Literal["cirrusmq", "aws:sqs"]


class Invoke(msgspec.Struct, frozen=True, kw_only=True):
    """A function that is called with batches of messages, and within which bounds."""

    function: str
    max_concurrency: int = limits.INVOKE_CONCURRENCY_DEFAULT
    """Largest number of its calls that run at the same time."""
    batch: int = limits.INVOKE_BATCH_DEFAULT
    """Largest number of messages in a call."""
    timeout_seconds: int = limits.INVOKE_SECONDS_DEFAULT
    """The function's own timeout, or longer: an answer that takes longer counts as lost."""
    event_source: EventSource = "cirrusmq"
    """`eventSource` of its records: `aws:sqs` for handlers that take only SQS's."""
    breaker: Breaker | None = None
    """When calls stop because most messages fail; None: never."""


class InvokeInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An `invoke` as a caller gives it; members that are not given are UNSET."""

    function: Annotated[
        str, Meta(min_length=1, max_length=256, description="a text of 1 to 256 characters")
    ]
    max_concurrency: Annotated[int, integer(limits.INVOKE_CONCURRENCY)] | UnsetType = UNSET
    batch: Annotated[int, integer((1, limits.BATCH_MESSAGES))] | UnsetType = UNSET
    timeout_seconds: Annotated[int, integer(limits.INVOKE_SECONDS, " seconds")] | UnsetType = UNSET
    event_source: EventSource | UnsetType = UNSET
    breaker: BreakerInput | UnsetType | None = UNSET

    def chosen(self) -> Invoke:
        """Returns the given values over the defaults."""
        return Invoke(**chosen_values(self))
