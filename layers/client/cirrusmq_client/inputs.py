"""Attributes as requests have them, as `make openapi` reads them from the service's structs.

An absent field does not change, or has its default in a create; None removes a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict


class RetryInput(TypedDict):
    """How deliveries are retried; the manual has which members each takes."""

    policy: Literal[
        "exponential_decay",
        "backoff",
        "unordered",
        "ordered",
        "http_ordered",
        "http_unordered",
        "custom",
    ]
    max_retries: NotRequired[int]
    interval_seconds: NotRequired[float]
    jitter: NotRequired[float]
    waits: NotRequired[Sequence[float]]


class FilterInput(TypedDict):
    """Which messages pass: one of the members, or `sql` beside one."""

    tags: NotRequired[Sequence[str]]
    tag_expression: NotRequired[str]
    binding_keys: NotRequired[Sequence[str]]
    policy: NotRequired[dict[str, Any]]
    body_policy: NotRequired[dict[str, Any]]
    sql: NotRequired[str]


class DeadLetterInput(TypedDict):
    """A `dead_letter` as a caller gives it."""

    queue: str
    max_receives: NotRequired[int]
    """an integer from 1 to 1,000"""
    max_age_seconds: NotRequired[int]
    """an integer from 300 to 43,200 seconds"""


class BreakerInput(TypedDict):
    """A `breaker` as a caller gives it."""

    share: NotRequired[float]
    """a number from 0.1 to 1"""


class InvokeInput(TypedDict):
    """An `invoke` as a caller gives it."""

    function: str
    """a text of 1 to 256 characters"""
    max_concurrency: NotRequired[int]
    """an integer from 1 to 1,000"""
    batch: NotRequired[int]
    """an integer from 1 to 16"""
    timeout_seconds: NotRequired[int]
    """an integer from 1 to 840 seconds"""
    event_source: NotRequired[Literal["cirrusmq", "aws:sqs"]]
    breaker: NotRequired[BreakerInput | None]


class QueueInput(TypedDict):
    """Attributes as a caller gives them; missing ones are UNSET."""

    message_retention_seconds: NotRequired[int]
    """an integer from 60 to 1,296,000 seconds"""
    visibility_timeout_seconds: NotRequired[int]
    """an integer from 1 to 43,200 seconds"""
    receive_wait_seconds: NotRequired[float]
    """a number from 0 to 30 seconds"""
    delay_seconds: NotRequired[int]
    """an integer from 0 to 1,296,000 seconds"""
    max_message_bytes: NotRequired[int]
    """an integer from 1,024 to 4,194,304"""
    max_messages: NotRequired[int]
    """an integer from 1,000,000 to 1,000,000,000"""
    rewind_seconds: NotRequired[int]
    """an integer from 0 to 1,296,000 seconds"""
    dead_letter: NotRequired[DeadLetterInput | None]
    retry: NotRequired[RetryInput | None]
    ordered: NotRequired[bool]
    fair: NotRequired[bool]
    max_in_flight: NotRequired[int | None]
    """an integer from 1 to 256"""
    rate: NotRequired[int | None]
    """an integer from 1 to 10,000 messages a second"""
    priorities: NotRequired[int | None]
    """an integer from 2 to 32"""
    ageing_seconds: NotRequired[int | None]
    """an integer from 10 to 43,200 seconds"""
    send_rate: NotRequired[int | None]
    """an integer from 1 to 10,000 messages a second"""
    receive_rate: NotRequired[int | None]
    """an integer from 1 to 10,000 messages a second"""
    partitions: NotRequired[int]
    """an integer from 1 to 255"""
    invoke: NotRequired[InvokeInput | None]
    description: NotRequired[str | None]
    """a text of at most 256 characters"""
    labels: NotRequired[dict[str, str]]
    """a text of at most 256 characters"""
    """a text of at most 256 characters"""
    """at most 50 pairs of texts, of 4,096 bytes together"""
    paused: NotRequired[bool]
    sender: NotRequired[Literal["account", "key"]]


class Base64(TypedDict):
    """Bytes in JSON."""

    base64: str


class MessageInput(TypedDict):
    """A message in a request; each call decides which of its fields it takes."""

    body: NotRequired[str]
    body_base64: NotRequired[str]
    attributes: NotRequired[dict[str, str | Base64]]
    tags: NotRequired[list[str]]


class ScheduledMessage(MessageInput):
    """The message of a schedule."""

    group: NotRequired[str]
    """a text of 1 to 128 characters"""
    priority: NotRequired[int]
    """an integer from 1 to 32"""
    routing_key: NotRequired[str]


class ScheduleInput(TypedDict):
    """The body of `PUT /schedules/{schedule}`."""

    message: ScheduledMessage
    queue: NotRequired[str]
    """a queue of the account, not an ordered one"""
    topic: NotRequired[str]
    """or a topic of the account"""
    cron: NotRequired[str]
    """minute, hour, day of month, month and day of week, such as 0 8 * * 1-5"""
    time_zone: NotRequired[str]
    """a time zone of IANA, such as Europe/Berlin"""
    every_seconds: NotRequired[int]
    """an integer from 60 to 31,536,000 seconds, a multiple of 60"""
    missed: NotRequired[Literal["one", "all", "none"]]


class ReceiverInput(TypedDict):
    """The body of `PUT …/receivers/{receiver}`."""

    start: NotRequired[str]
    """latest: messages sent after the answer; earliest: also all messages in the queue then, and
    what its log has; or a time since which the log has everything"""
    filter: NotRequired[FilterInput | None]


class ReceiverChangeInput(TypedDict):
    """The body of `PATCH …/receivers/{receiver}`."""

    paused: NotRequired[bool]
    receive_rate: NotRequired[int | None]
    """an integer from 1 to 10,000 messages a second"""
    labels: NotRequired[dict[str, str]]
    """a text of at most 256 characters"""
    """a text of at most 256 characters"""
    """at most 50 pairs of texts, of 4,096 bytes together"""


class TopicInput(TypedDict):
    """Attributes as a caller gives them; missing ones are UNSET."""

    filter: NotRequired[Literal["tags", "routing_key"]]
    max_message_bytes: NotRequired[int]
    """an integer from 1,024 to 4,194,304"""
    partitions: NotRequired[int]
    """an integer from 1 to 255"""
    description: NotRequired[str | None]
    """a text of at most 256 characters"""
    labels: NotRequired[dict[str, str]]
    """a text of at most 256 characters"""
    """a text of at most 256 characters"""
    """at most 50 pairs of texts, of 4,096 bytes together"""
    sender: NotRequired[Literal["account", "key"]]


class SubscriptionInput(TypedDict):
    """A subscription as a caller gives it."""

    protocol: NotRequired[Literal["queue", "http", "pull"]]
    endpoint: NotRequired[str]
    filter: NotRequired[FilterInput | None]
    retry: NotRequired[RetryInput | None]
    content_format: NotRequired[Literal["json", "simplified"]]
    dead_letter_queue: NotRequired[str | None]
    max_in_flight: NotRequired[int]
    """an integer from 1 to 256"""
    rate: NotRequired[int | None]
    """an integer from 1 to 1,000 messages a second"""
    keep_answers: NotRequired[bool]
    breaker: NotRequired[BreakerInput | None]
    mode: NotRequired[Literal["clustering", "broadcasting"]]
    ordered: NotRequired[bool]
    start: NotRequired[str]
    """latest, earliest or a time within the last 24 hours"""
    invoke: NotRequired[InvokeInput | None]
    labels: NotRequired[dict[str, str]]
    """a text of at most 256 characters"""
    """a text of at most 256 characters"""
    """at most 50 pairs of texts, of 4,096 bytes together"""
