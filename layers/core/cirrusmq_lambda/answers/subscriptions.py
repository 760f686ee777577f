"""Subscriptions of a topic in answers."""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.retry import RetryPolicy
from cirrusmq.model.topic import ContentFormat, Mode, Protocol, Subscription
from cirrusmq.queues.counts import Counts
from cirrusmq.subscriptions import failed_answers
from cirrusmq.subscriptions.state import SubscriptionState
from cirrusmq_lambda.answers.body import Body, Cursor, Time
from cirrusmq_lambda.answers.content import to_base64
from cirrusmq_lambda.answers.counts import Approximate
from cirrusmq_lambda.answers.invoking import (
    Breaker,
    BreakerError,
    BreakerState,
    Invoke,
    breaker_fields,
)


class RetryInForce(Body):
    """The retry policy in force, the default if `retry` is null; absent if nothing is retried."""

    policy: str
    waits: Annotated[list[float], Meta(description="in seconds; the last one repeats")]
    jitter: Annotated[float, Meta(description="the share of each wait that is drawn")]
    max_retries: Annotated[int | None, Meta(description="null: no end")]

    @classmethod
    def of(cls, policy: RetryPolicy) -> Self:
        """Returns the answer for a policy."""
        waits = [wait_ms / 1000 for wait_ms in policy.waits_ms]
        return cls(policy.policy, waits, policy.jitter, policy.max_retries)


class SubscriptionAttributes(Body, kw_only=True):
    """A subscription; `made_by`: the account that made it, if it is not the topic's own."""

    name: str
    topic: str
    id: str
    protocol: Protocol
    endpoint: str | UnsetType = UNSET
    filter: dict[str, Any] | None
    retry: dict[str, Any] | None
    retry_in_force: RetryInForce | UnsetType = UNSET
    content_format: ContentFormat
    dead_letter_queue: str | None
    dead_letter_error: (
        Annotated[str, Meta(description="why its own dead-letter queue could not be made")]
        | UnsetType
    ) = UNSET
    labels: dict[str, str]
    max_in_flight: int | UnsetType = UNSET
    rate: (
        Annotated[
            int | None, Meta(description="messages a second at most; null: as many as there are")
        ]
        | UnsetType
    ) = UNSET
    keep_answers: (
        Annotated[
            bool,
            Meta(description="whether what the URL answers to posts that fail is kept for a day"),
        ]
        | UnsetType
    ) = UNSET
    breaker: Annotated[Breaker | None, Meta(description="null: posts never stop")] | UnsetType = (
        UNSET
    )
    mode: Mode | UnsetType = UNSET
    ordered: bool | UnsetType = UNSET
    start: str | UnsetType = UNSET
    invoke: Invoke | UnsetType | None = UNSET
    paused: (
        Annotated[bool, Meta(description="whether its messages wait until it is resumed")]
        | UnsetType
    ) = UNSET
    gone: (
        Annotated[bool, Meta(description="true: paused because its URL answered 410")] | UnsetType
    ) = UNSET
    made_by: str | UnsetType = UNSET
    created_at: Time
    modified_at: Time

    @classmethod
    def of(cls, subscription: Subscription, **more: Any) -> Self:
        """Returns the answer for a subscription. `more`: further fields of a subclass."""
        return cls(
            name=subscription.name,
            topic=subscription.topic,
            id=subscription.id,
            **_shown(subscription),
            paused=subscription.paused if subscription.pausable else UNSET,
            gone=subscription.gone or UNSET,
            dead_letter_error=subscription.dead_letter_error or UNSET,
            retry_in_force=_policy(subscription),
            made_by=subscription.made_by or UNSET,
            created_at=format_time(subscription.created_ms),
            modified_at=format_time(subscription.modified_ms),
            **more,
        )


def _shown(subscription: Subscription) -> dict[str, Any]:
    shown = subscription.attributes()
    if shown.get("breaker") is not None:
        shown["breaker"] = Breaker(shown["breaker"].share)
    return shown


def _policy(subscription: Subscription) -> RetryInForce | UnsetType:
    return UNSET if subscription.policy is None else RetryInForce.of(subscription.policy)


class NewSubscription(SubscriptionAttributes, kw_only=True):
    """A new subscription, with the secret that signs what a URL gets."""

    secret: str | UnsetType = UNSET


class SigningSecret(Body):
    """The secret that signs what a URL gets."""

    secret: Annotated[str, Meta(description="`whsec_` and base64 of 24 bytes")]


class SubscriptionCounts(Body):
    """Messages by state."""

    active: int
    inactive: int
    delayed: int
    approximate: Approximate = UNSET

    @classmethod
    def of(cls, counted: Counts) -> Self:
        """Returns the answer for these counts."""
        approximate = counted.approximate or UNSET
        return cls(counted.active, counted.inactive, counted.delayed, approximate)


class AnsweredHeader(Body):
    """A header of an answer."""

    name: str
    value: str


class FailedAnswer(Body, kw_only=True):
    """The newest answer of a URL that did not take a message, of one status."""

    error: Annotated[str, Meta(description="as in a message's `history`: `status 503`")]
    at: Annotated[Time, Meta(description="when its post began")]
    duration_ms: int
    message_id: str
    headers: Annotated[
        list[AnsweredHeader],
        Meta(description="1 KB of them together; none that may hold a secret"),
    ]
    body: Annotated[str, Meta(description="its first kilobyte")]
    body_encoding: Annotated[Literal["base64"], Meta(description="absent: text")] | UnsetType = (
        UNSET
    )
    body_cut: Annotated[bool, Meta(description="whether it was longer")]

    @classmethod
    def of(cls, kept: failed_answers.FailedAnswer) -> Self:
        """Returns the answer for a kept one."""
        body = kept.sample.body
        encoding: Literal["base64"] | UnsetType = UNSET
        try:
            # A character that the cut has split is left out.
            text = getincrementaldecoder("utf-8")().decode(body, final=not kept.sample.cut)
        except UnicodeDecodeError:
            text, encoding = to_base64(body), "base64"
        return cls(
            error=kept.error,
            at=format_time(kept.at_ms),
            duration_ms=kept.took_ms,
            message_id=kept.message_id,
            headers=[AnsweredHeader(name, value) for name, value in kept.sample.headers],
            body=text,
            body_encoding=encoding,
            body_cut=kept.sample.cut,
        )


class SubscriptionWithState(SubscriptionAttributes, kw_only=True):
    """A subscription, its counts, and the state of its deliveries."""

    state: Literal["unconfirmed", "paused", "delivering", "retrying"]
    counts: SubscriptionCounts | UnsetType = UNSET
    oldest_active_age_seconds: (
        Annotated[int, Meta(description="with `counts`; 0 if no message is active")] | UnsetType
    ) = UNSET
    next_attempt_at: Time | UnsetType = UNSET
    last_error: str | UnsetType | None = UNSET
    breaker_state: BreakerState | UnsetType = UNSET
    breaker_open_since: Time | UnsetType = UNSET
    breaker_error: BreakerError | UnsetType = UNSET
    failed_answers: (
        Annotated[
            list[FailedAnswer],
            Meta(description="with `keep_answers`: the newest of each status, of 20 statuses"),
        ]
        | UnsetType
    ) = UNSET

    @classmethod
    def at(cls, subscription: Subscription, read: SubscriptionState, now_ms: int) -> Self:
        """Returns the answer for a subscription and its state.

        `last_error` is null if the subscription retries and no error is known.
        """
        next_ms, age_seconds = read.next_attempt_ms, UNSET if read.counts is None else 0
        if read.counts is not None and read.counts.oldest_ms is not None:
            age_seconds = max(0, now_ms - read.counts.oldest_ms) // 1000
        return cls.of(
            subscription,
            state=read.state,
            counts=UNSET if read.counts is None else SubscriptionCounts.of(read.counts),
            oldest_active_age_seconds=age_seconds,
            next_attempt_at=UNSET if next_ms is None else format_time(next_ms),
            last_error=UNSET if next_ms is None else read.last_error,
            **breaker_fields(read.circuit),
            failed_answers=[FailedAnswer.of(each) for each in read.failed_answers]
            if subscription.keep_answers
            else UNSET,
        )


class SubscriptionPage(Body):
    """A page of a topic's subscriptions, by name."""

    subscriptions: list[SubscriptionAttributes]
    cursor: Cursor | UnsetType = UNSET
