"""Published messages and undecided half messages in answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.topic import Protocol, Subscription
from cirrusmq.publishing.records import Published
from cirrusmq_lambda.answers.body import Body, Id, Problem, Time
from cirrusmq_lambda.answers.content import Bytes, fields_of

if TYPE_CHECKING:
    from cirrusmq.model.message import Message
    from cirrusmq.publishing.half_messages.checks import Check
    from cirrusmq.publishing.half_messages.half import Half
    from cirrusmq.publishing.matching import Trial

Handle = Annotated[
    str,
    Meta(
        description="names the half message to commit or roll back",
        examples=["Half-01M7XGA279E8FYRFWHK8M956SX"],
    ),
]


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
        """Returns the entry for a published message."""
        sent_at = format_time(published.sent_ms)
        return cls(id=published.id, matched=published.matched, sent_at=sent_at)


class MatchedSubscription(Body):
    """A subscription that gets a message."""

    name: str
    protocol: Protocol
    paused: Annotated[bool, Meta(description="whether the message would wait there")]


class MatchedMessage(Body, kw_only=True):
    """The subscriptions that would get a message; with `atomic: false` it may be an `error`.

    With `filter` whether it passes that one, instead of the subscriptions.
    """

    subscriptions: list[MatchedSubscription] | UnsetType = UNSET
    passes: Annotated[bool, Meta(description="whether the filter lets it pass")] | UnsetType = UNSET
    why_not: Annotated[str, Meta(description="the reason, if it does not")] | UnsetType = UNSET
    error: Problem | UnsetType = UNSET

    @classmethod
    def of(cls, subscriptions: Iterable[Subscription]) -> Self:
        """Returns the entry for a message that these subscriptions match."""
        return cls(
            subscriptions=[
                MatchedSubscription(name=each.name, protocol=each.protocol, paused=each.paused)
                for each in subscriptions
            ]
        )

    @classmethod
    def tried(cls, trial: Trial) -> Self:
        """Returns the entry for a message on which a filter was tried."""
        return cls(passes=trial.passes, why_not=trial.why_not or UNSET)


class MatchedMessages(Body):
    """One entry for each message, in the order given; none is published."""

    messages: list[MatchedMessage]


class Prepared(Body):
    """A publish that nobody sees before its commit."""

    handle: Handle
    check_at: Annotated[
        Time, Meta(description="from then on its producers are asked for the decision")
    ]
    expires_at: Annotated[Time, Meta(description="from then on it can only be rolled back")]

    @classmethod
    def of(cls, half: Half) -> Self:
        """Returns the answer for a half message."""
        return cls(
            handle=half.handle,
            check_at=format_time(half.due_ms),
            expires_at=format_time(half.until_ms),
        )


class PublishedMessages(Body):
    """One entry for each message, in the order published; none before a commit."""

    messages: list[PublishedMessage]
    transaction: Prepared | UnsetType = UNSET


class HalfMessage(Body, kw_only=True):
    """A message as it was given, which has no id before its commit."""

    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    attributes: dict[str, str | Bytes]
    tags: list[str]
    group: str | UnsetType = UNSET
    routing_key: str | UnsetType = UNSET

    @classmethod
    def of(cls, message: Message, routing_key: str) -> Self:
        """Returns the answer for a message; the routing key may be empty."""
        return cls(**fields_of(message), routing_key=routing_key or UNSET)


class UndecidedTransaction(Body, kw_only=True):
    """A publish that the caller is to commit or roll back."""

    handle: Handle
    messages: list[HalfMessage]
    checks: Annotated[int, Meta(description="how often it was handed out, this time included")]
    max_checks: int
    prepared_at: Time
    held_until: Annotated[Time, Meta(description="until then nobody else is asked")]
    expires_at: Annotated[Time, Meta(description="from then on it can only be rolled back")]

    @classmethod
    def of(cls, check: Check) -> Self:
        """Returns the entry for a check."""
        half = check.half
        return cls(
            handle=half.handle,
            messages=[
                HalfMessage.of(message, key)
                for message, key in zip(check.messages, half.terms.routing_keys, strict=True)
            ],
            checks=half.checks,
            max_checks=half.terms.max_checks,
            prepared_at=format_time(half.prepared_ms),
            held_until=format_time(check.held_until_ms),
            expires_at=format_time(half.until_ms),
        )


class UndecidedTransactions(Body):
    """Undecided half messages; empty if there are none."""

    transactions: list[UndecidedTransaction]
