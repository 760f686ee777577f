"""Operations in answers: long work on a queue, or on a topic's subscription."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.queues.operations import Kind, Operation, State
from cirrusmq_lambda.answers.body import Body, Cursor, Time


class OperationStarted(Body):
    """Work that continues after the answer."""

    operation: Annotated[str, Meta(description="opaque: ask GET /operations/{id} how far it is")]


class OperationState(Body):
    """How far an operation is."""

    id: str
    kind: Annotated[
        Kind, Meta(description="backfill: of a new receiver; replay: of what a topic's log has")
    ]
    state: State
    done: Annotated[int, Meta(description="messages so far")]
    started_at: Time
    finished_at: Time | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    queue: Annotated[str, Meta(description="the queue's name then")] | UnsetType = UNSET
    receiver: Annotated[str, Meta(description="of a backfill")] | UnsetType = UNSET
    topic: Annotated[str, Meta(description="of a replay")] | UnsetType = UNSET
    subscription: Annotated[str, Meta(description="of a replay")] | UnsetType = UNSET
    key_id: (
        Annotated[str, Meta(description="the access key that asked for it; absent if none did")]
        | UnsetType
    ) = UNSET

    @classmethod
    def of(cls, operation: Operation) -> Self:
        """Returns the answer for an operation."""
        finished_ms, detail = operation.finished_ms, operation.detail
        return cls(
            id=operation.id,
            kind=operation.kind,
            state=operation.state,
            done=operation.done,
            started_at=format_time(operation.started_ms),
            finished_at=UNSET if finished_ms is None else format_time(finished_ms),
            detail=UNSET if detail is None else detail,
            queue=operation.queue or UNSET,
            receiver=operation.details.get("receiver", UNSET),
            topic=operation.topic or UNSET,
            subscription=operation.details.get("subscription", UNSET),
            key_id=operation.by or UNSET,
        )


class OperationPage(Body):
    """A page of operations, the newest first; it may be short, and even empty, before the end."""

    operations: list[OperationState]
    cursor: Cursor | UnsetType = UNSET
