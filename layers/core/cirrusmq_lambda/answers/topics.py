"""Topics, their logs, and the traces of their messages in answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from cirrusmq.base.limits import COUNT_EXACT_MESSAGES, TOPIC_LIFE_SECONDS
from cirrusmq.base.timestamps import format_time
from cirrusmq.fanout.trace import Trace, TracedState
from cirrusmq.model.post_history import POSTS_KEPT, Post
from cirrusmq.model.sender import Onlooker, SenderDetail
from cirrusmq.model.topic import Topic, TopicKind
from cirrusmq.publishing.log_reader import Logged
from cirrusmq_lambda.answers.body import Body, Cursor, Id, Time
from cirrusmq_lambda.answers.content import Content


class TopicAttributes(Body):
    """A topic."""

    name: str
    id: str
    filter: TopicKind
    max_message_bytes: int
    message_retention_seconds: Annotated[int, Meta(description="fixed: a message's whole life")]
    partitions: int
    description: str | None
    labels: dict[str, str]
    sender: SenderDetail
    created_at: Time
    modified_at: Time

    @classmethod
    def of(cls, topic: Topic, **more: Any) -> Self:
        """Returns the answer for a topic. `more`: further fields of a subclass."""
        return cls(
            name=topic.name,
            id=topic.id,
            **asdict(topic.attributes),
            message_retention_seconds=TOPIC_LIFE_SECONDS,
            created_at=format_time(topic.created_ms),
            modified_at=format_time(topic.modified_ms),
            **more,
        )


class TopicCounts(Body):
    """Messages not yet taken by every subscription that gets them."""

    active: int
    approximate: Annotated[bool, Meta(description="true: there are more")] | UnsetType = UNSET

    @classmethod
    def of(cls, active: int) -> Self:
        """Returns the answer for a count; one above the limit is approximate."""
        return cls(active=active, approximate=active > COUNT_EXACT_MESSAGES or UNSET)


class TopicWithCounts(TopicAttributes):
    """A topic and how many messages are under way."""

    counts: TopicCounts
    region: str


class TopicPage(Body):
    """A page of topics, by name."""

    topics: list[TopicAttributes]
    cursor: Cursor | UnsetType = UNSET


class LoggedMessage(Content, kw_only=True):
    """A message of a topic's log."""

    routing_key: str | UnsetType = UNSET

    @classmethod
    def logged(cls, logged: Logged, seen_by: Onlooker) -> Self:
        """Returns the answer for a message of a log."""
        key = UNSET if logged.routing_key is None else logged.routing_key
        return cls.of(logged.message, logged.id, logged.sent_ms, seen_by, routing_key=key)


class LogPage(Body):
    """Messages in order; the cursor is always there, for later messages."""

    messages: list[LoggedMessage]
    cursor: Cursor


class DeliveryAttempt(Body, kw_only=True):
    """A post of a message to a URL; one without an `error` was taken."""

    number: Annotated[int, Meta(description="from 1 on")]
    at: Annotated[Time, Meta(description="when it began")]
    status: Annotated[int, Meta(description="of the answer; absent without one")] | UnsetType = (
        UNSET
    )
    error: (
        Annotated[
            str,
            Meta(description="`status <n>`, `redirect <n>`, or a word such as `timeout`, `tls`"),
        ]
        | UnsetType
    ) = UNSET

    @classmethod
    def of(cls, number: int, post: Post) -> Self:
        """Returns the entry for one post. `number`: its number in the history."""
        return cls(
            number=number,
            at=format_time(post.at_ms),
            status=UNSET if post.status is None else post.status,
            error=UNSET if post.error is None else post.error,
        )


class DeliveryState(Body):
    """The outcome of a message at one subscription."""

    subscription: str
    state: Literal["pending", "delivered", "retrying", "discarded", "dead"]
    attempts: int
    next_attempt_at: Time | UnsetType = UNSET
    last_error: str | UnsetType = UNSET
    dead_letter_queue: (
        Annotated[str, Meta(description="where one went that is dead")] | UnsetType
    ) = UNSET
    history: (
        Annotated[
            list[DeliveryAttempt],
            Meta(description=f"of a URL: the latest attempts, {POSTS_KEPT} at most, oldest first"),
        ]
        | UnsetType
    ) = UNSET

    @classmethod
    def of(cls, subscription: str, traced: TracedState) -> Self:
        """Returns the entry for a subscription."""
        next_ms, error = traced.next_attempt_ms, traced.last_error
        went = traced.dead_letter_queue
        numbered = enumerate(traced.posts, traced.attempts - len(traced.posts) + 1)
        return cls(
            subscription=subscription,
            state=traced.state,
            attempts=traced.attempts,
            next_attempt_at=UNSET if next_ms is None else format_time(next_ms),
            last_error=UNSET if error is None else error,
            dead_letter_queue=UNSET if went is None else went,
            history=[DeliveryAttempt.of(*entry) for entry in numbered] or UNSET,
        )


class MessageTrace(Body):
    """The outcomes of a message, subscription by subscription."""

    id: Id
    sent_at: Time
    deliveries: list[DeliveryState]
    trace_id: Annotated[str, Meta(description="of its traceparent")] | UnsetType = UNSET
    message: (
        Annotated[LoggedMessage, Meta(description="with `body=true`: as it was published")]
        | UnsetType
    ) = UNSET

    @classmethod
    def of(cls, traced: Trace, seen_by: Onlooker) -> Self:
        """Returns the answer for a trace, with subscriptions by name."""
        return cls(
            id=traced.id,
            sent_at=format_time(traced.sent_ms),
            deliveries=[DeliveryState.of(*entry) for entry in sorted(traced.states.items())],
            trace_id=traced.trace_id or UNSET,
            message=UNSET
            if traced.message is None
            else LoggedMessage.logged(traced.message, seen_by),
        )
