"""Sent messages in answers."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.sending.deduplication import Stored
from cirrusmq_lambda.answers.body import Body, Id, Problem, Time


class SentMessage(Body, kw_only=True):
    """A message that is stored; with `atomic: false` an entry may be an `error` instead."""

    id: Id | UnsetType = UNSET
    body_md5: Annotated[str, Meta(description="of the body's bytes, in hex")] | UnsetType = UNSET
    sent_at: Time | UnsetType = UNSET
    replaced: (
        Annotated[
            Id | None,
            Meta(description="of a message with `replace`: the one whose place it took, or null"),
        ]
        | UnsetType
    ) = UNSET
    reply_by: (
        Annotated[Time, Meta(description="of a message with `reply`: its deadline")] | UnsetType
    ) = UNSET
    error: Problem | UnsetType = UNSET

    @classmethod
    def of(cls, sent: Stored) -> Self:
        """Returns the entry for a stored message."""
        due_ms = sent.reply_by_ms
        return cls(
            id=sent.id,
            body_md5=sent.body_md5,
            sent_at=format_time(sent.sent_ms),
            replaced=sent.replaced,
            reply_by=UNSET if due_ms is None else format_time(due_ms),
        )


class SentMessages(Body):
    """One entry for each message, in the order sent."""

    messages: list[SentMessage]
