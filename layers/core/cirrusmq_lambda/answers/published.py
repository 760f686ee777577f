"""The answer to a publish."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.publishing.publish import Published
from cirrusmq_lambda.answers.body import Body, Id, Problem, Time


class PublishedMessage(Body, kw_only=True):
    """A message that was published; with `atomic: false` an entry may be an `error` instead."""

    id: Id | UnsetType = UNSET
    matched: (
        Annotated[int, Meta(description="subscriptions that get it; 0: nothing is kept")]
        | UnsetType
    ) = UNSET
    sent_at: Time | UnsetType = UNSET
    error: Problem | UnsetType = UNSET

    @classmethod
    def of(cls, published: Published) -> Self:
        """The entry of a message that is published."""
        sent_at = format_time(published.sent_ms)
        return cls(id=published.id, matched=published.matched, sent_at=sent_at)


class PublishedMessages(Body):
    """One entry for each message, in the order published."""

    messages: list[PublishedMessage]
