"""The JSON objects of answers, as `make openapi` reads them from the service's structs.

Times are RFC 3339 texts, as the service sends them; a field that is NotRequired may be absent.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Problem(TypedDict):
    """The reason of a refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    """stable: for programs to decide by"""
    request_id: str
    parameter: NotRequired[str]
    """the value that is refused"""
    cursor: NotRequired[str]
    """of a log: to read on behind the message that no answer holds"""


class SentMessage(TypedDict):
    """A message that is stored; with `atomic: false` an entry may be an `error` instead."""

    id: NotRequired[str]
    body_md5: NotRequired[str]
    """of the body's bytes, in hex"""
    sent_at: NotRequired[str]
    replaced: NotRequired[str | None]
    """of a message with `replace`: the one whose place it took, or null"""
    reply_by: NotRequired[str]
    """of a message with `reply`: its deadline"""
    error: NotRequired[Problem]


class SentMessages(TypedDict):
    """One entry for each message, in the order sent."""

    messages: list[SentMessage]


class Bytes(TypedDict):
    """Bytes that are not given as text."""

    base64: str


class Content(TypedDict):
    """A message as it was sent: `body` as `body`, `body_base64` as `body_base64`."""

    id: str
    body: NotRequired[str]
    body_base64: NotRequired[str]
    attributes: dict[str, str | Bytes]
    tags: list[str]
    group: NotRequired[str]
    priority: NotRequired[int]
    """absent: 1, the lowest"""
    sent_at: str
    sender: str
    """the account that sent it"""
    sender_key: NotRequired[str]
    """the id of its access key, where the queue or topic has `sender: key`: shown to that account
    alone"""


class DeadLetterNote(TypedDict):
    """The source of a dead letter, and the reason."""

    source_queue: str
    receive_count: int
    dead_at: str
    reason: str
    """`max_receives`, `max_age`, `retries`, `expired`, or a consumer's text"""
    receiver: NotRequired[str]
    subscription: NotRequired[str]


class PeekedMessage(Content):
    """A message in the state that was asked for, not claimed."""

    receive_count: int
    visible_at: str
    expires_at: str
    first_received_at: NotRequired[str]
    dead_letter: NotRequired[DeadLetterNote]
    reply_by: NotRequired[str]
    """until when its sender waits for a reply, if it does"""


class ReceivedMessage(PeekedMessage):
    """A message that the caller holds until `visible_at`."""

    receipt: str
    """opaque: deletes the message, or changes its lease"""


class Failure(TypedDict):
    """A receipt that could not be used."""

    receipt: str
    code: str
    detail: str


class ReceivedMessages(TypedDict):
    """Messages that the caller holds now; empty if there was none in time."""

    messages: list[ReceivedMessage]
    deleted: NotRequired[list[str]]
    """receipts of `delete` whose messages are deleted"""
    failed: NotRequired[list[Failure]]
    paused: NotRequired[bool]
    """true: nobody receives from it until it is resumed"""
    seen_all: NotRequired[bool]
    """with `where`: whether everything was looked at, by this call and those whose `after` it goes
    on behind"""
    after: NotRequired[str]
    """with `where`: opaque, for the next call"""
    error: NotRequired[Problem]
    """after the deletes, why nothing could be received"""


class PeekedMessages(TypedDict):
    """Messages of one state; none is claimed. A page may be empty and have a cursor."""

    messages: list[PeekedMessage]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class MessageState(TypedDict):
    """The state of a message in a queue or in one of its receivers."""

    id: str
    state: Literal["active", "inactive", "delayed"]
    sent_at: str
    receive_count: int
    first_received_at: NotRequired[str]
    visible_at: str
    """when it can be received, or since when"""
    expires_at: str
    bytes: int
    """of body, attributes and tags"""
    dead_letter: NotRequired[DeadLetterNote]


class FoundMessage(MessageState):
    """A message that is in a queue or in one of its receivers."""

    message: NotRequired[Content]
    """with `body=true`: as it was sent"""
    others: NotRequired[list[MessageState]]
    """messages of the same id that are there too: dead letters of several receivers, or
    redriven"""


class GivenReply(TypedDict):
    """A reply as it was given: `body` as `body`, `body_base64` as `body_base64`."""

    body: NotRequired[str]
    body_base64: NotRequired[str]
    attributes: dict[str, str | Bytes]
    replied_at: str


class AwaitedReply(TypedDict):
    """The state of a request, for its sender."""

    state: Literal["waiting", "replied", "timed_out"]
    """`timed_out`: no reply came before the deadline, and none is taken now"""
    reply: NotRequired[GivenReply]


class DeletedReceipts(TypedDict):
    """The messages that were deleted, and the receipts that could not be used."""

    deleted: list[str]
    failed: list[Failure]


class HeldReceipt(TypedDict):
    """A message and the time at which it is visible again."""

    receipt: str
    visible_at: str


class ChangedReceipts(TypedDict):
    """The leases that were changed, and the receipts that could not be used."""

    changed: list[HeldReceipt]
    failed: list[Failure]


class GivenBackReceipts(TypedDict):
    """The messages that were given back, and the receipts that could not be used."""

    given_back: list[HeldReceipt]
    failed: list[Failure]


class Replied(TypedDict):
    """A reply that is stored; its message is deleted."""

    id: str
    replied_at: str


class PublishedMessage(TypedDict):
    """A message that was published; with `atomic: false` an entry may be an `error` instead."""

    id: NotRequired[str]
    matched: NotRequired[int]
    """subscriptions that get it; 0: nothing is kept"""
    sent_at: NotRequired[str]
    error: NotRequired[Problem]


class Prepared(TypedDict):
    """A publish that nobody sees before its commit."""

    handle: str
    """names the half message to commit or roll back"""
    check_at: str
    """from then on its producers are asked for the decision"""
    expires_at: str
    """from then on it can only be rolled back"""


class PublishedMessages(TypedDict):
    """One entry for each message, in the order published; none before a commit."""

    messages: list[PublishedMessage]
    transaction: NotRequired[Prepared]


class MatchedSubscription(TypedDict):
    """A subscription that gets a message."""

    name: str
    protocol: Literal["queue", "http", "pull"]
    paused: bool
    """whether the message would wait there"""


class MatchedMessage(TypedDict):
    """The subscriptions that would get a message; with `atomic: false` it may be an `error`.

    With `filter` whether it passes that one, instead of the subscriptions.
    """

    subscriptions: NotRequired[list[MatchedSubscription]]
    passes: NotRequired[bool]
    """whether the filter lets it pass"""
    why_not: NotRequired[str]
    """the reason, if it does not"""
    error: NotRequired[Problem]


class MatchedMessages(TypedDict):
    """One entry for each message, in the order given; none is published."""

    messages: list[MatchedMessage]


class HalfMessage(TypedDict):
    """A message as it was given, which has no id before its commit."""

    body: NotRequired[str]
    body_base64: NotRequired[str]
    attributes: dict[str, str | Bytes]
    tags: list[str]
    group: NotRequired[str]
    routing_key: NotRequired[str]


class UndecidedTransaction(TypedDict):
    """A publish that the caller is to commit or roll back."""

    handle: str
    """names the half message to commit or roll back"""
    messages: list[HalfMessage]
    checks: int
    """how often it was handed out, this time included"""
    max_checks: int
    prepared_at: str
    held_until: str
    """until then nobody else is asked"""
    expires_at: str
    """from then on it can only be rolled back"""


class UndecidedTransactions(TypedDict):
    """Undecided half messages; empty if there are none."""

    transactions: list[UndecidedTransaction]


class RetryInForce(TypedDict):
    """The retry policy in force, the default if `retry` is null; absent if nothing is retried."""

    policy: str
    waits: list[float]
    """in seconds; the last one repeats"""
    jitter: float
    """the share of each wait that is drawn"""
    max_retries: int | None
    """null: no end"""


class Breaker(TypedDict):
    """When it opens: in a minute 20 outcomes or more, and a share of them failed."""

    share: float


class Invoke(TypedDict):
    """A function that is called with batches of messages, and within which bounds."""

    function: str
    max_concurrency: int
    batch: int
    timeout_seconds: int
    event_source: Literal["cirrusmq", "aws:sqs"]
    breaker: Breaker | None
    """null: calls never stop"""


class SubscriptionAttributes(TypedDict):
    """A subscription; `made_by`: the account that made it, if it is not the topic's own."""

    name: str
    topic: str
    id: str
    protocol: Literal["queue", "http", "pull"]
    endpoint: NotRequired[str]
    filter: dict[str, Any] | None
    retry: dict[str, Any] | None
    retry_in_force: NotRequired[RetryInForce]
    content_format: Literal["json", "simplified"]
    dead_letter_queue: str | None
    dead_letter_error: NotRequired[str]
    """why its own dead-letter queue could not be made"""
    labels: dict[str, str]
    max_in_flight: NotRequired[int]
    rate: NotRequired[int | None]
    """messages a second at most; null: as many as there are"""
    keep_answers: NotRequired[bool]
    """whether what the URL answers to posts that fail is kept for a day"""
    breaker: NotRequired[Breaker | None]
    """null: posts never stop"""
    mode: NotRequired[Literal["clustering", "broadcasting"]]
    ordered: NotRequired[bool]
    start: NotRequired[str]
    invoke: NotRequired[Invoke | None]
    paused: NotRequired[bool]
    """whether its messages wait until it is resumed"""
    gone: NotRequired[bool]
    """true: paused because its URL answered 410"""
    made_by: NotRequired[str]
    created_at: str
    modified_at: str


class NewSubscription(SubscriptionAttributes):
    """A new subscription, with the secret that signs what a URL gets."""

    secret: NotRequired[str]


class SubscriptionCounts(TypedDict):
    """Messages by state."""

    active: int
    inactive: int
    delayed: int
    approximate: NotRequired[bool]
    """left out: exact; true: not all were read, the rest is counted late"""


class AnsweredHeader(TypedDict):
    """A header of an answer."""

    name: str
    value: str


class FailedAnswer(TypedDict):
    """The newest answer of a URL that did not take a message, of one status."""

    error: str
    """as in a message's `history`: `status 503`"""
    at: str
    """when its post began"""
    duration_ms: int
    message_id: str
    headers: list[AnsweredHeader]
    """1 KB of them together; none that may hold a secret"""
    body: str
    """its first kilobyte"""
    body_encoding: NotRequired[Literal["base64"]]
    """absent: text"""
    body_cut: bool
    """whether it was longer"""


class SubscriptionWithState(SubscriptionAttributes):
    """A subscription, its counts, and the state of its deliveries."""

    state: Literal["unconfirmed", "paused", "delivering", "retrying"]
    counts: NotRequired[SubscriptionCounts]
    oldest_active_age_seconds: NotRequired[int]
    """with `counts`; 0 if no message is active"""
    next_attempt_at: NotRequired[str]
    last_error: NotRequired[str | None]
    breaker_state: NotRequired[Literal["closed", "open"]]
    """with a breaker; open: one message at a time is tried"""
    breaker_open_since: NotRequired[str]
    breaker_error: NotRequired[str]
    """while open: why the newest message failed"""
    failed_answers: NotRequired[list[FailedAnswer]]
    """with `keep_answers`: the newest of each status, of 20 statuses"""


class SubscriptionPage(TypedDict):
    """A page of a topic's subscriptions, by name."""

    subscriptions: list[SubscriptionAttributes]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class SigningSecret(TypedDict):
    """The secret that signs what a URL gets."""

    secret: str
    """`whsec_` and base64 of 24 bytes"""


class OperationStarted(TypedDict):
    """Work that continues after the answer."""

    operation: str
    """opaque: ask GET /operations/{id} how far it is"""


class DeadLetter(TypedDict):
    """When a message is given up, and the queue of the same account that takes it."""

    queue: str
    max_receives: NotRequired[int | None]
    max_age_seconds: NotRequired[int | None]


class QueueAttributes(TypedDict):
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
    fair: bool
    max_in_flight: int | None
    rate: int | None
    priorities: int | None
    ageing_seconds: int | None
    send_rate: int | None
    receive_rate: int | None
    partitions: int
    invoke: Invoke | None
    description: str | None
    labels: dict[str, str]
    paused: bool
    sender: Literal["account", "key"]
    created_at: str
    modified_at: str


class Counts(TypedDict):
    """Messages by state."""

    active: int
    inactive: int
    delayed: int
    rewindable: int
    oldest_active_age_seconds: int
    active_by_priority: NotRequired[dict[str, int]]
    """with priorities: the active ones by priority; with approximate, those not read are parted by
    a count of each priority that may be a minute old"""
    approximate: NotRequired[bool]
    """left out: exact; true: not all were read, the rest is counted late"""


class QueueWithCounts(QueueAttributes):
    """A queue, its counts of messages, and the state of its function's breaker."""

    counts: Counts
    region: str
    breaker_state: NotRequired[Literal["closed", "open"]]
    """with a breaker; open: one message at a time is tried"""
    breaker_open_since: NotRequired[str]
    breaker_error: NotRequired[str]
    """while open: why the newest message failed"""


class QueuePage(TypedDict):
    """A page of queues, by name."""

    queues: list[QueueAttributes]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class ReceiverAttributes(TypedDict):
    """An independent receiver of a queue."""

    name: str
    id: str
    start: str
    starts_at: str
    filter: dict[str, Any] | None
    paused: bool
    receive_rate: int | None
    labels: dict[str, str]
    created_at: str
    modified_at: str
    operation: NotRequired[str]
    """is copying older messages to it; it gets no other messages yet"""


class ReceiverWithCounts(ReceiverAttributes):
    """A receiver and how many messages wait for it."""

    counts: Counts


class ReceiverPage(TypedDict):
    """A page of a queue's receivers, by name."""

    receivers: list[ReceiverAttributes]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class ConsumerState(TypedDict):
    """An access key that received within the last seven days, whether or not a message came."""

    access_key_id: NotRequired[str]
    """shown to the key's own account alone"""
    account: str
    last_received_at: str
    """noted once in five minutes: the key may have received since"""


class ConsumerPage(TypedDict):
    """A page of the access keys that received, in no order."""

    consumers: list[ConsumerState]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class OperationState(TypedDict):
    """How far an operation is."""

    id: str
    kind: Literal["purge", "rewind", "redrive", "backfill", "fan_out", "replay"]
    """backfill: of a new receiver; replay: of what a topic's log has"""
    state: Literal["running", "succeeded", "failed"]
    done: int
    """messages so far"""
    started_at: str
    finished_at: NotRequired[str]
    detail: NotRequired[str]
    queue: NotRequired[str]
    """the queue's name then"""
    receiver: NotRequired[str]
    """of a backfill"""
    topic: NotRequired[str]
    """of a replay"""
    subscription: NotRequired[str]
    """of a replay"""
    key_id: NotRequired[str]
    """the access key that asked for it; absent if none did"""


class OperationPage(TypedDict):
    """A page of operations, the newest first; it may be short, and even empty, before the end."""

    operations: list[OperationState]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class Listed(TypedDict):
    """Queues and topics by name; another account's queue is `account:queue`."""

    queues: NotRequired[list[str]]
    """a list of at most 50 names"""
    topics: NotRequired[list[str]]
    """a list of at most 50 names"""


class Scope(TypedDict):
    """For each right the queues and topics that a key has it on; `all` of the account, or some."""

    send: NotRequired[Listed | Literal["all"]]
    receive: NotRequired[Listed | Literal["all"]]
    manage: NotRequired[Listed | Literal["all"]]


class KeyState(TypedDict):
    """An access key, without its secret."""

    access_key_id: str
    account: str
    admin: bool
    scope: Scope | None
    """null: every call in its account"""
    manages_keys: bool
    """makes, rotates and deletes keys"""
    signing: bool
    """its secret may sign calls of other services' SDKs, too"""
    description: str | None
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    """the beginning of the day, in UTC"""
    earlier_secret_until: str | None
    """end of the time in which the old secret is valid"""


class NewKey(KeyState):
    """An access key with a new secret, which is shown here alone."""

    secret: str


class KeyPage(TypedDict):
    """A page of an account's keys."""

    keys: list[KeyState]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class GrantState(TypedDict):
    """A grant: the permission of another account on a queue."""

    account: str
    permission: Literal["send", "receive", "send_receive", "info", "admin", "full"]


class GrantPage(TypedDict):
    """A page of the grants on a queue, by account."""

    grants: list[GrantState]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class TopicGrantState(TypedDict):
    """A grant: the permission of another account on a topic."""

    account: str
    permission: Literal["publish", "subscribe", "publish_subscribe", "info", "admin", "full"]


class TopicGrantPage(TypedDict):
    """A page of the grants on a topic, by account."""

    grants: list[TopicGrantState]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class SharedResource(TypedDict):
    """A queue or a topic that another account shares with the caller's, as calls address it."""

    queue: NotRequired[str]
    topic: NotRequired[str]
    account: str
    permission: str


class SharedPage(TypedDict):
    """A page of the grants of other accounts to the caller's."""

    grants: list[SharedResource]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class ChangeState(TypedDict):
    """A change, and the key that made it."""

    at: str
    account: str | None
    """of the key; null: no key's, as CloudFormation's"""
    key_id: str | None
    route: str
    """the call"""
    resource: str
    """the names in its path"""
    code: str
    """Ok; or Unavailable: it may have been made"""
    request_id: str
    """as in the log"""


class ChangePage(TypedDict):
    """A page of changes, the newest first; it may be short, and even empty, before the end."""

    changes: list[ChangeState]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class TopicAttributes(TypedDict):
    """A topic."""

    name: str
    id: str
    filter: Literal["tags", "routing_key"]
    max_message_bytes: int
    message_retention_seconds: int
    """fixed: a message's whole life"""
    partitions: int
    description: str | None
    labels: dict[str, str]
    sender: Literal["account", "key"]
    created_at: str
    modified_at: str


class TopicCounts(TypedDict):
    """Messages not yet taken by every subscription that gets them."""

    active: int
    approximate: NotRequired[bool]
    """true: there are more"""


class TopicWithCounts(TopicAttributes):
    """A topic and how many messages are under way."""

    counts: TopicCounts
    region: str


class TopicPage(TypedDict):
    """A page of topics, by name."""

    topics: list[TopicAttributes]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class LoggedMessage(Content):
    """A message of a topic's log."""

    routing_key: NotRequired[str]


class LogPage(TypedDict):
    """Messages in order; the cursor is always there, for later messages."""

    messages: list[LoggedMessage]
    cursor: str
    """opaque: the cursor of the next page; absent at the end of a listing"""


class DeliveryAttempt(TypedDict):
    """A post of a message to a URL; one without an `error` was taken."""

    number: int
    """from 1 on"""
    at: str
    """when it began"""
    status: NotRequired[int]
    """of the answer; absent without one"""
    error: NotRequired[str]
    """`status <n>`, `redirect <n>`, or a word such as `timeout`, `tls`"""


class DeliveryState(TypedDict):
    """The outcome of a message at one subscription."""

    subscription: str
    state: Literal["pending", "delivered", "retrying", "discarded", "dead"]
    attempts: int
    next_attempt_at: NotRequired[str]
    last_error: NotRequired[str]
    dead_letter_queue: NotRequired[str]
    """where one went that is dead"""
    history: NotRequired[list[DeliveryAttempt]]
    """of a URL: the latest attempts, 10 at most, oldest first"""


class MessageTrace(TypedDict):
    """The outcomes of a message, subscription by subscription."""

    id: str
    sent_at: str
    deliveries: list[DeliveryState]
    trace_id: NotRequired[str]
    """of its traceparent"""
    message: NotRequired[LoggedMessage]
    """with `body=true`: as it was published"""


class ResourceRates(TypedDict):
    """Messages of each interval, the oldest first; the last one still runs.

    A figure that a kind of resource does not count is 0: a topic counts only `published`, and a
    subscription that hands its messages to a queue, or broadcasts, nothing.
    """

    kind: Literal["queue", "receiver", "topic", "subscription"]
    name: str
    """as the query has it"""
    sent: list[int]
    received: list[int]
    """receipts: a message that comes again is counted again"""
    deleted: list[int]
    expired: list[int]
    dead_lettered: list[int]
    """moved away from here as dead letters"""
    published: list[int]
    delivered: list[int]
    """came to a receiver or a group, or were taken by a URL"""
    attempts: list[int]
    """posts to a URL, also failed posts"""
    dropped: list[int]
    """given up without a dead-letter queue"""
    rewound: list[int]
    kept: list[int]
    """messages that were stored, in any state, at the end of each interval"""


class RatesOfLastHour(TypedDict):
    """Counted by the meter: what happened is here a little later, mostly within a minute.

    Twelve intervals of five minutes; with `hours` in the query as many of an hour each.
    """

    starts_at: str
    """the beginning of the first interval"""
    interval_seconds: int
    rates: list[ResourceRates]
    """in the order of the query, by kind"""


BillingGap = TypedDict("BillingGap", {"from": "str", "to": "str"})
"""A time whose use is in no invoice, for no export shows it."""


class InvoiceLine(TypedDict):
    """The use of one resource, of one kind."""

    resource: str
    kind: str
    correction: str | None
    """the closed month that the use is of; null: the invoice's own"""
    count: int
    bytes: int
    amount: str
    """a decimal number, exact"""


class Invoice(TypedDict):
    """A month of an account, in one currency: a document, or charges that are not issued yet."""

    month: str
    currency: str
    closed: bool
    """nothing of it changes any more"""
    closes_at: str
    forecast: str | None
    """of the running month: its total if each day is like the last one"""
    lines: list[InvoiceLine]
    """those on this page; the pages before and after it have more"""
    total: str
    """a decimal number: the sum of all lines, in whole minor units"""
    number: str | None
    """of the document; null: not issued yet"""
    type: Literal["invoice", "credit_note", "debit_note"]
    refers_to: str | None
    """the number of a note's invoice"""


class UnusualHour(TypedDict):
    """An hour of the last day with far more use than any of the four weeks before."""

    hour: str
    resource: str
    kind: str
    count: int
    usual_most: int
    """of the busiest hour before"""


class BudgetOfMonth(TypedDict):
    """Charges of use in the running month, before tax: until now, and the forecast."""

    month: str
    currency: str
    amount: str
    """a decimal number: the budget"""
    spent: str
    """a decimal number: so far"""
    forecast: str
    """a decimal number: at the month's end, if each day is like the last"""
    state: Literal["open", "forecast", "spent"]
    """within it; exceeded by the forecast; exceeded now"""


BillingReport = TypedDict(
    "BillingReport",
    {
        "from": "str",
        "to": "str",
        "generated_at": "str",
        "time_zone": "Literal['UTC']",
        "gaps": "list[BillingGap]",
        "invoices": "list[Invoice]",
        "unusual": "list[UnusualHour]",
        "budget": "NotRequired[BudgetOfMonth]",
        "cursor": "NotRequired[str]",
    },
)
"""The newest finished billing of the account."""


class BacklogReport(TypedDict):
    """The backlog of the account's queues and subscriptions at one time."""

    at: str
    generated_at: str
    resources: list[dict[str, Any]]
    labels: list[dict[str, Any]]
    """the same figures of all resources together that have a label"""
    top: dict[str, Any]
    """of each figure: the resources and labels that have most, ten at most"""


class ScheduledContent(TypedDict):
    """The message of a schedule, as it was given."""

    body: NotRequired[str]
    body_base64: NotRequired[str]
    attributes: dict[str, str | Bytes]
    tags: list[str]
    group: NotRequired[str]
    priority: NotRequired[int]
    routing_key: NotRequired[str]


class ScheduleFailure(TypedDict):
    """Why the last time of a schedule did not fire; it is tried again at the next time."""

    due_at: str
    code: str
    detail: str


class ScheduleAttributes(TypedDict):
    """A schedule: when it fires, and its message."""

    name: str
    id: str
    message: ScheduledContent
    missed: Literal["one", "all", "none"]
    in_force_from: str
    created_at: str
    modified_at: str
    queue: NotRequired[str]
    topic: NotRequired[str]
    cron: NotRequired[str]
    time_zone: NotRequired[str]
    every_seconds: NotRequired[int]
    next_at: str | None
    last_error: ScheduleFailure | None


class SchedulePage(TypedDict):
    """A page of the account's schedules, by name."""

    schedules: list[ScheduleAttributes]
    cursor: NotRequired[str]
    """opaque: the cursor of the next page; absent at the end of a listing"""


class Health(TypedDict):
    """That the service answers."""

    status: Literal["ok", "degraded"]
    """`degraded`, on one machine: calls are served, and stored data was lost"""
    version: str
    time: str
    time_scale: float
    detail: NotRequired[str]
    """why it is degraded, and what to do"""


class InProcess(TypedDict):
    """The tables, for a client that calls them from its own process with its own AWS rights."""

    region: str
    directory: str
    """the table of accounts and queues"""
    messages: str
    """the table of messages"""
    account: str
    """the account of the access key"""
    format: int
    """the highest format that is written"""


class Endpoints(TypedDict):
    """Other ways for some calls: URLs, each with the same paths, and tables; empty without any."""

    send: NotRequired[str]
    """takes POST /queues/{queue}/messages"""
    receive: NotRequired[str]
    """takes POST …/messages/receive and …/peek"""
    delete: NotRequired[str]
    """takes POST …/messages/delete, …/visibility, …/give-back, …/dead-letter"""
    publish: NotRequired[str]
    """takes POST /topics/{topic}/messages"""
    in_process: NotRequired[InProcess]
