"""The answer to a publish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.topic import Protocol, Subscription
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


class MatchedSubscription(Body):
    """A subscription that gets a message."""

    name: str
    protocol: Protocol
    paused: Annotated[bool, Meta(description="whether the message would wait there")]


class MatchedMessage(Body, kw_only=True):
    """The subscriptions that would get a message; with `atomic: false` it may be an `error`."""

    subscriptions: list[MatchedSubscription] | UnsetType = UNSET
    error: Problem | UnsetType = UNSET

    @classmethod
    def of(cls, subscriptions: Iterable[Subscription]) -> Self:
        """The entry of a message that these match."""
        return cls(
            subscriptions=[
                MatchedSubscription(name=each.name, protocol=each.protocol, paused=each.paused)
                for each in subscriptions
            ]
        )


class MatchedMessages(Body):
    """One entry for each message, in the order given; none is published."""

    messages: list[MatchedMessage]


class PublishedMessages(Body):
    """One entry for each message, in the order published."""

    messages: list[PublishedMessage]
