"""What answers look like: one struct for each JSON object that a call answers with.

A test reads the service's real answers by these, so a field that is missing here is found.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.access.permissions import Permission
from cirrusmq.model.queue import DeadLetter
from cirrusmq.model.topic import ContentFormat, Mode, Protocol, TopicKind

Time = Annotated[
    str,
    Meta(
        description="RFC 3339 in UTC with milliseconds",
        examples=["2026-11-20T08:00:00.123Z"],
        extra_json_schema={"format": "date-time"},
    ),
]
Id = Annotated[str, Meta(examples=["Msg-01M7XGA279E8FYRFWHK8M956SX0"])]
Cursor = Annotated[
    str, Meta(description="opaque: give it back to go on; absent at the end of a listing")
]


class Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Any answer."""


class Counts(Answer):
    """Messages by state; exact up to 10,000."""

    active: int
    inactive: int
    delayed: int
    rewindable: int
    oldest_active_age_seconds: int


class QueueAttributes(Answer):
    """A queue."""

    name: str
    id: str
    message_retention_seconds: int
    visibility_timeout_seconds: int
    receive_wait_seconds: float
    delay_seconds: int
    max_message_bytes: int
    max_messages: int
    rewind_seconds: int
    dead_letter: DeadLetter | None
    retry: dict[str, Any] | None
    ordered: bool
    partitions: int
    description: str | None
    labels: dict[str, str]
    created_at: Time
    modified_at: Time


class QueueWithCounts(QueueAttributes):
    """A queue and how many messages stand in it."""

    counts: Counts


class QueuePage(Answer):
    """A page of queues, by name."""

    queues: list[QueueAttributes]
    cursor: Cursor | UnsetType = UNSET


class OperationStarted(Answer):
    """Work that goes on after the answer."""

    operation: Annotated[str, Meta(description="opaque: ask GET /operations/{id} how far it is")]


class OperationState(Answer):
    """How far an operation is."""

    id: str
    kind: str
    state: Literal["running", "succeeded", "failed"]
    done: Annotated[int, Meta(description="messages so far")]
    started_at: Time
    finished_at: Time | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class ReceiverAttributes(Answer):
    """An independent receiver of a queue."""

    name: str
    id: str
    start: str
    starts_at: Time
    filter: dict[str, Any] | None
    created_at: Time
    modified_at: Time


class ReceiverWithCounts(ReceiverAttributes):
    """A receiver and how many messages wait for it."""

    counts: Counts


class ReceiverPage(Answer):
    """A page of a queue's receivers, by name."""

    receivers: list[ReceiverAttributes]
    cursor: Cursor | UnsetType = UNSET


class GrantState(Answer):
    """What another account may do with a queue."""

    account: str
    permission: Permission


class GrantPage(Answer):
    """A page of the grants on a queue, by account."""

    grants: list[GrantState]
    cursor: Cursor | UnsetType = UNSET


class SharedQueue(Answer):
    """A queue that another account shares with the caller's."""

    queue: Annotated[str, Meta(description="as calls address it", examples=["bob:orders"])]
    account: str
    permission: Permission


class SharedPage(Answer):
    """A page of what other accounts share with the caller's."""

    grants: list[SharedQueue]
    cursor: Cursor | UnsetType = UNSET


class KeyState(Answer):
    """An access key, without its secret."""

    access_key_id: str
    account: str
    admin: bool
    description: str | None
    created_at: Time


class NewKey(KeyState):
    """A new access key; its secret is shown here alone."""

    secret: str


class KeyPage(Answer):
    """A page of an account's keys."""

    keys: list[KeyState]
    cursor: Cursor | UnsetType = UNSET


class Problem(Answer):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: Annotated[str, Meta(description="stable; what programs decide by")]
    request_id: str
    parameter: Annotated[str, Meta(description="the value that is refused")] | UnsetType = UNSET


class SentMessage(Answer, kw_only=True):
    """A message that is stored; with `atomic: false` an entry may be an `error` instead."""

    id: Id | UnsetType = UNSET
    body_md5: Annotated[str, Meta(description="of the body's bytes, in hex")] | UnsetType = UNSET
    sent_at: Time | UnsetType = UNSET
    error: Problem | UnsetType = UNSET


class SentMessages(Answer):
    """One entry for each message, in the order sent."""

    messages: list[SentMessage]


class PublishedMessage(Answer, kw_only=True):
    """A message that was published; with `atomic: false` an entry may be an `error` instead."""

    id: Id | UnsetType = UNSET
    matched: (
        Annotated[int, Meta(description="subscriptions that get it; 0: nothing is kept")]
        | UnsetType
    ) = UNSET
    sent_at: Time | UnsetType = UNSET
    error: Problem | UnsetType = UNSET


class PublishedMessages(Answer):
    """One entry for each message, in the order published."""

    messages: list[PublishedMessage]


class Bytes(Answer):
    """Bytes, where a text would not do."""

    base64: str


class Content(Answer, kw_only=True):
    """A message as it was sent: `body` as `body`, `body_base64` as `body_base64`."""

    id: Id
    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    attributes: dict[str, str | Bytes]
    tags: list[str]
    group: str | UnsetType = UNSET
    sent_at: Time


class DeadLetterNote(Answer):
    """Why a message lies in a dead-letter queue."""

    source_queue: str
    receive_count: int
    dead_at: Time
    reason: str
    receiver: str | UnsetType = UNSET
    subscription: str | UnsetType = UNSET


class PeekedMessage(Content, kw_only=True):
    """An active message, not claimed."""

    receive_count: int
    visible_at: Time
    expires_at: Time
    first_received_at: Time | UnsetType = UNSET
    dead_letter: DeadLetterNote | UnsetType = UNSET


class PeekedMessages(Answer):
    """Active messages; none of them is claimed."""

    messages: list[PeekedMessage]


class ReceivedMessage(PeekedMessage, kw_only=True):
    """A message that the caller holds until `visible_at`."""

    receipt: Annotated[str, Meta(description="opaque: what deletes the message")]


class ReceivedMessages(Answer):
    """Messages that the caller holds now; none where none came in time."""

    messages: list[ReceivedMessage]


class Failure(Answer):
    """A receipt that could not be used."""

    receipt: str
    code: str
    detail: str


class DeletedReceipts(Answer):
    """Which messages are gone."""

    deleted: list[str]
    failed: list[Failure]


class HeldReceipt(Answer):
    """When a message is visible again."""

    receipt: str
    visible_at: Time


class ChangedReceipts(Answer):
    """Which leases were changed."""

    changed: list[HeldReceipt]
    failed: list[Failure]


class GivenBackReceipts(Answer):
    """Which messages were given back."""

    given_back: list[HeldReceipt]
    failed: list[Failure]


class TopicAttributes(Answer):
    """A topic."""

    name: str
    id: str
    filter: TopicKind
    max_message_bytes: int
    partitions: int
    description: str | None
    created_at: Time
    modified_at: Time


class TopicCounts(Answer):
    """Messages not yet taken by every subscription that gets them."""

    active: int


class TopicWithCounts(TopicAttributes):
    """A topic and how many messages are under way."""

    counts: TopicCounts
    region: str


class TopicPage(Answer):
    """A page of topics, by name."""

    topics: list[TopicAttributes]
    cursor: Cursor | UnsetType = UNSET


class LoggedMessage(Content, kw_only=True):
    """A message of a topic's log."""

    routing_key: str | UnsetType = UNSET


class LogPage(Answer):
    """Messages in order; the cursor is always there, for what is still to come."""

    messages: list[LoggedMessage]
    cursor: Cursor


class DeliveryState(Answer):
    """What became of a message at one subscription."""

    subscription: str
    state: Literal["pending", "delivered", "retrying", "discarded", "dead"]
    attempts: int
    next_attempt_at: Time | UnsetType = UNSET
    last_error: str | UnsetType = UNSET


class MessageTrace(Answer):
    """What became of a message, subscription by subscription."""

    id: Id
    sent_at: Time
    deliveries: list[DeliveryState]


class SubscriptionAttributes(Answer, kw_only=True):
    """A subscription."""

    name: str
    topic: str
    id: str
    protocol: Protocol
    endpoint: str | UnsetType = UNSET
    filter: dict[str, Any] | None
    retry: dict[str, Any] | None
    content_format: ContentFormat
    dead_letter_queue: str | None
    max_in_flight: int | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    ordered: bool | UnsetType = UNSET
    created_at: Time
    modified_at: Time


class NewSubscription(SubscriptionAttributes, kw_only=True):
    """A new subscription; the secret that signs what a URL gets is shown here alone."""

    secret: str | UnsetType = UNSET


class SubscriptionCounts(Answer):
    """Messages by state."""

    active: int
    inactive: int
    delayed: int


class SubscriptionWithState(SubscriptionAttributes, kw_only=True):
    """A subscription, what waits for it, and how delivering goes."""

    state: Literal["unconfirmed", "delivering", "retrying"]
    counts: SubscriptionCounts | UnsetType = UNSET
    next_attempt_at: Time | UnsetType = UNSET
    last_error: str | UnsetType | None = UNSET


class SubscriptionPage(Answer):
    """A page of a topic's subscriptions, by name."""

    subscriptions: list[SubscriptionAttributes]
    cursor: Cursor | UnsetType = UNSET


class InvoiceLine(Answer):
    """What one resource did of one kind."""

    resource: str
    kind: str
    count: int
    bytes: int
    amount: Annotated[str, Meta(description="a decimal number")]


class Invoice(Answer):
    """A month of an account."""

    month: str
    currency: str
    lines: list[InvoiceLine]
    total: Annotated[str, Meta(description="a decimal number")]


class BillingReport(msgspec.Struct, rename={"start": "from", "end": "to"}, kw_only=True):
    """The newest finished billing of the account."""

    start: Time
    end: Time
    generated_at: Time
    invoices: list[Invoice]


class BacklogReport(msgspec.Struct, kw_only=True):
    """What stood in the account's queues and subscriptions at a time."""

    at: Time
    generated_at: Time
    resources: list[dict[str, Any]]


class Health(Answer):
    """That the service answers."""

    status: Literal["ok"]
    version: str
    time: Time
    time_scale: float
