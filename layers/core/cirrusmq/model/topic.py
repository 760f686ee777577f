"""A topic and its subscriptions as values: reading what a caller gave, and the rules across it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.names import QUEUE_NAME, check_name
from cirrusmq.base.reserved_attributes import HTTP, HTTPS, LAMBDA, own_text
from cirrusmq.base.shapes import integer
from cirrusmq.filters.selection import Filter, compile_filter, reads_body
from cirrusmq.filters.tags import LONG_TAG_CHARACTERS
from cirrusmq.model.breaker import Breaker, BreakerInput
from cirrusmq.model.described import Description, Labels, with_given
from cirrusmq.model.invoke import Invoke, InvokeInput
from cirrusmq.model.retry import Blocking, RetryPolicy, parse_retry
from cirrusmq.model.sender import SenderDetail

TopicKind: TypeAlias = Literal["tags", "routing_key"]
Protocol: TypeAlias = Literal["queue", "http", "pull"]
Mode: TypeAlias = Literal["clustering", "broadcasting"]
ContentFormat: TypeAlias = Literal["json", "simplified"]

LATEST, EARLIEST = "latest", "earliest"
_DEFAULT_POLICY = {"http": "exponential_decay", "pull": "unordered"}
_Start: TypeAlias = Annotated[
    str, Meta(description="latest, earliest or a time within the last 24 hours")
]


FUNCTIONS = "functions"
"""Name in a subscription's `sdk` of the ARN of functions, up to `:function:`; a call of SNS sets it
for the protocol `lambda`, which is a group with a function here."""


class TopicAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's attributes, all of them."""

    filter: TopicKind = "tags"
    max_message_bytes: int = limits.TOPIC_MESSAGE_BYTES_DEFAULT
    partitions: int = limits.TOPIC_PARTITIONS_DEFAULT
    """Partitions of its log, fixed: the place of a record follows from its id alone, for traces and
    repeated publishes, and a group's counter from the group's name."""
    description: str | None = None
    labels: dict[str, str] = {}
    sender: SenderDetail = "account"
    """Messages name the account that published them, or its access key too."""


class TopicInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes as a caller gives them; missing ones are UNSET."""

    filter: TopicKind | UnsetType = UNSET
    max_message_bytes: Annotated[int, integer(limits.TOPIC_MESSAGE_BYTES)] | UnsetType = UNSET
    partitions: Annotated[int, integer(limits.PARTITIONS)] | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    labels: Labels | UnsetType = UNSET
    sender: SenderDetail | UnsetType = UNSET


class Topic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A topic as the directory keeps it. Times are in milliseconds since the epoch."""

    account: str
    name: str
    id: str
    attributes: TopicAttributes
    created_ms: int
    modified_ms: int
    sdk: dict[str, str] = {}
    """Values that SDKs of other services set beside the attributes: read back as they were set."""

    def log_partition(self, send_id: str) -> int:
        """Returns the partition of a send in the topic's log."""
        return zlib.crc32(send_id.encode()) % self.attributes.partitions


class Epoch(msgspec.Struct, frozen=True):
    """A former source of a group's messages: it keeps messages published before `until_ms`."""

    id: str
    until_ms: int
    alone_until_ms: int = 0
    """Until when messages may have come alone into it: these it keeps, whatever their time."""


class Replay(msgspec.Struct, frozen=True):
    """The part of the topic's log that a group gets beside messages published for it."""

    operation: str
    """Id of the operation that hands it out."""
    from_ms: int
    until_ms: int
    """By then every publish knows the group."""
    running: bool = True
    """True while it runs: only messages that it has reached may be received."""


class SubscriptionInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A subscription as a caller gives it; attributes that are not given are UNSET."""

    protocol: Protocol | UnsetType = UNSET
    endpoint: str | UnsetType = UNSET
    filter: dict[str, Any] | UnsetType | None = UNSET
    retry: dict[str, Any] | UnsetType | None = UNSET
    content_format: ContentFormat | UnsetType = UNSET
    dead_letter_queue: str | UnsetType | None = UNSET
    max_in_flight: Annotated[int, integer(limits.MAX_IN_FLIGHT)] | UnsetType = UNSET
    rate: (
        Annotated[int, integer(limits.POSTS_PER_SECOND, " messages a second")] | UnsetType | None
    ) = UNSET
    keep_answers: bool | UnsetType = UNSET
    breaker: BreakerInput | UnsetType | None = UNSET
    mode: Mode | UnsetType = UNSET
    ordered: bool | UnsetType = UNSET
    start: _Start | UnsetType = UNSET
    invoke: InvokeInput | UnsetType | None = UNSET
    labels: Labels | UnsetType = UNSET


class Subscription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subscription as the directory keeps it. Times are in milliseconds since the epoch."""

    account: str
    topic: str
    topic_id: str
    name: str
    id: str
    created_ms: int
    modified_ms: int
    protocol: Protocol
    endpoint: str | None = None
    endpoint_id: str | None = None
    """The queue's id, for `queue`."""
    filter: dict[str, Any] | None = None
    retry: dict[str, Any] | None = None
    content_format: ContentFormat = "json"
    dead_letter_queue: str | None = None
    dead_letter_error: str | None = None
    """Why the queue that it needs for its dead letters could not be made."""
    max_in_flight: int = limits.MAX_IN_FLIGHT_DEFAULT
    """Largest number of messages that are posted at the same time, for `http`."""
    rate: int | None = None
    """Largest number of messages that are posted within a second, for `http`; None: no limit."""
    keep_answers: bool = False
    """True if the begin of answers to failed posts is kept for a day, for `http`."""
    breaker: Breaker | None = None
    """When posts stop because most of them fail, for `http`; None: never."""
    partitions: int
    """Number of partitions of its parcels; fixed when it is created."""
    mode: Mode = "clustering"
    ordered: bool = False
    start: str = LATEST
    """For `pull` in mode clustering, as the caller gave it."""
    source_id: str = ""
    """The source of its messages since it was last rewound; empty means its own id."""
    epochs: tuple[Epoch, ...] = ()
    """Its former sources that may have messages left, the first one first."""
    replay: Replay | None = None
    invoke: Invoke | None = None
    """The function for its messages, for `pull` in mode clustering."""
    alone_until_ms: int = 0
    """Until when messages may come alone into its present source (`lone_messages`)."""
    log_partitions: int = limits.TOPIC_PARTITIONS_DEFAULT
    """Number of partitions of the topic's log."""
    labels: dict[str, str] = {}
    made_by: str | None = None
    """The account that made it by a grant to subscribe; None for the topic's own account."""
    confirmed: bool = True
    paused: bool = False
    """True if nothing is posted to its URL, and its group receives nothing."""
    gone: bool = False
    """True if it is paused because its URL answered 410."""
    token_sha256: str | None = None
    token_expires_ms: int = 0
    format: int = 1
    """2 if it filters by bodies: an older release would refuse all messages of its topic."""
    sdk: dict[str, str] = {}
    """Attributes of SNS that only SNS's calls set, read back as they were set; and the `region` and
    the `url` of the call that made it."""

    @property
    def notifies(self) -> bool:
        """True if SNS's callers get its messages in JSON objects (`model.notification`)."""
        return self.sdk.get("RawMessageDelivery") == "false" and self.content_format == "json"

    @property
    def made_by_sns(self) -> bool:
        """True if a call of SNS made it, so that its URL gets posts as SNS has them."""
        return "url" in self.sdk

    @property
    def reads_bodies(self) -> bool:
        """True if its filter looks at the bodies of messages."""
        return reads_body(self.filter)

    def body_for(self, attributes: Mapping[str, str | bytes], body: str | bytes) -> str | bytes:
        """Returns the text that it gets of a message with these attributes and body.

        Subscriptions share a message. Its body is the text for queues; if a call of SNS gave URLs
        or functions another one (`MessageStructure` `json`), that is an attribute of the service's
        own. A function's is written only if it is not the one for `https`; if it is the body, as
        an empty text, which no message of SNS has:

            {"default": "a", "https": "b"}        body a, $https b, $lambda ""
            {"default": "a", "sqs": "c"}          body c, $http a, $https a
            {"default": "a", "lambda": "d"}       body a, $lambda d
        """
        return (attributes and own_text(attributes, self.text_attributes)) or body

    @property
    def text_attributes(self) -> tuple[str, ...]:
        """Names of the attributes that may have the text for its URL or function, the first first.

        Empty if it always gets the body.
        """
        if FUNCTIONS in self.sdk:
            return (LAMBDA, HTTPS)
        if self.protocol != "http" or self.endpoint is None:
            return ()
        return (HTTPS,) if self.endpoint.startswith("https:") else (HTTP,)

    @property
    def pausable(self) -> bool:
        """True if its messages wait in it: a queue's wait there, and a log is read by position."""
        return self.protocol != "queue" and self.mode == "clustering"

    @property
    def takes_back(self) -> bool:
        """True if single messages may be put into it: dead letters, and repeated deliveries."""
        return self.pausable and self.confirmed

    @property
    def policy(self) -> RetryPolicy | None:
        """The retry policy in force; None if nothing is retried."""
        return _read_retry(self)

    @property
    def blocking(self) -> Blocking:
        """Which messages of its URL wait behind one that fails."""
        policy = self.policy if self.protocol == "http" else None
        return "none" if policy is None else policy.blocking

    @property
    def pushed_in_order(self) -> bool:
        """True if its URL gets one message at a time, in order."""
        return self.blocking == "in_order"

    @property
    def present_id(self) -> str:
        """Id of the source that takes messages published now."""
        return self.source_id or self.id

    @property
    def source_ids(self) -> frozenset[str]:
        """The id of the subscription and of all its sources."""
        return frozenset({self.id, self.present_id, *(epoch.id for epoch in self.epochs)})

    def source_of(self, sent_ms: int) -> str:
        """Returns the id of the source of a message of this time: the same for all fan-outs."""
        former = (epoch.id for epoch in self.epochs if sent_ms < epoch.until_ms)
        return next(former, self.present_id)

    def catches_up_on(self, sent_ms: int) -> bool:
        """Returns True if it gets a message of this time that was not published for it."""
        return self.replay is not None and self.replay.from_ms <= sent_ms <= self.replay.until_ms

    def rewound(self, source_id: str, replay: Replay, oldest_ms: int) -> Subscription:
        """Returns the group with a new source for messages published since `replay.from_ms`.

        Its former sources keep earlier messages, as far as these live: since `oldest_ms`; and
        messages that came alone since then, which no log brings back.
        """
        former: list[Epoch] = []
        since_ms = oldest_ms
        present = Epoch(self.present_id, replay.from_ms, self.alone_until_ms)
        for epoch in (*self.epochs, present):
            until_ms = min(epoch.until_ms, replay.from_ms)
            if until_ms > since_ms or epoch.alone_until_ms > oldest_ms:
                since_ms = max(since_ms, until_ms)
                former.append(Epoch(epoch.id, since_ms, epoch.alone_until_ms))
        return msgspec.structs.replace(
            self, source_id=source_id, epochs=tuple(former), replay=replay, alone_until_ms=0
        )

    def partition_of(self, send_id: str) -> int:
        """Returns the partition of a publish's parcel for a URL, also if the log has one key."""
        return zlib.crc32(send_id.encode()) % self.partitions

    def selection(self, kind: TopicKind) -> Filter:
        """Returns its filter, compiled for the topic's kind."""
        return compile_filter(self.filter, kind, tag_characters=LONG_TAG_CHARACTERS)

    def attributes(self) -> dict[str, Any]:
        """Returns the attributes that a PUT may give."""
        shown: dict[str, Any] = {
            "protocol": self.protocol,
            "endpoint": self.endpoint,
            "filter": self.filter,
            "retry": self.retry,
            "content_format": self.content_format,
            "dead_letter_queue": self.dead_letter_queue,
            "labels": self.labels,
        }
        if self.protocol == "http":
            shown |= {
                "max_in_flight": self.max_in_flight,
                "rate": self.rate,
                "keep_answers": self.keep_answers,
                "breaker": self.breaker,
            }
        if self.protocol == "pull":
            shown |= {"mode": self.mode, "start": self.start, "invoke": self.invoke}
            del shown["endpoint"]
        if self.protocol != "queue":
            shown["ordered"] = self.ordered
        return shown


def own_dead_letter_queue(subscription_id: str) -> str:
    """Returns the name of the queue that is made for dead letters if none was named."""
    return f"dlq-{subscription_id}"


def change_topic_attributes(before: TopicAttributes, given: TopicInput) -> TopicAttributes:
    """Returns the attributes after a change. Raises if one of them is fixed."""
    after = with_given(before, given)
    if after.filter != before.filter:
        raise InvalidParameter("filter", "is fixed when the topic is created")
    if after.partitions != before.partitions:
        raise InvalidParameter("partitions", "are fixed when the topic is created")
    return after


def create_subscription(topic: Topic, name: str, given: SubscriptionInput) -> Subscription:
    """Returns a new subscription from a request, without its id, checked alone."""
    if isinstance(given.protocol, UnsetType):
        raise InvalidParameter("protocol", "must be queue, http or pull")
    endpoint = None if isinstance(given.endpoint, UnsetType) else given.endpoint
    plain = Subscription(
        account=topic.account,
        topic=topic.name,
        topic_id=topic.id,
        name=name,
        id="",
        created_ms=0,
        modified_ms=0,
        protocol=given.protocol,
        endpoint=endpoint,
        partitions=partitions_of(given.protocol, topic),
        mode="clustering" if isinstance(given.mode, UnsetType) else given.mode,
        ordered=False if isinstance(given.ordered, UnsetType) else given.ordered,
        start=LATEST if isinstance(given.start, UnsetType) else given.start,
        log_partitions=topic.attributes.partitions,
    )
    if given.protocol == "pull":
        if endpoint is not None:
            raise InvalidParameter("endpoint", "is not allowed with protocol pull")
    elif endpoint is None:
        raise InvalidParameter("endpoint", "must be a queue of the account, or a URL")
    return checked(over(plain, given), topic.attributes.filter)


def partitions_of(protocol: Protocol, topic: Topic) -> int:
    """Returns the partitions of a new subscription: a group has as many as the topic's log."""
    if protocol != "http":
        return topic.attributes.partitions
    usual, wide = limits.PUSH_PARTITIONS
    return usual if topic.attributes.partitions <= usual else wide


def over(subscription: Subscription, given: SubscriptionInput) -> Subscription:
    """Returns the subscription with the given attributes, checked alone."""
    for fixed in ("protocol", "endpoint", "mode", "ordered", "start"):
        value = getattr(given, fixed)
        if value is not UNSET and value != getattr(subscription, fixed):
            raise InvalidParameter(fixed, "is fixed when the subscription is created")
    for pushed in ("max_in_flight", "rate", "keep_answers", "breaker"):
        # False is true of other protocols, too.
        if getattr(given, pushed) not in (UNSET, False) and subscription.protocol != "http":
            instead = "; a function has invoke.breaker" if pushed == "breaker" else ""
            raise InvalidParameter(pushed, f"is allowed only with protocol http{instead}")
    return with_given(subscription, given)


def checked(subscription: Subscription, kind: TopicKind) -> Subscription:
    """Returns the subscription with a normalized filter. Raises if a rule forbids it."""
    subscription = msgspec.structs.replace(
        subscription, filter=subscription.selection(kind).normalized()
    )
    if subscription.protocol != "pull":
        if subscription.mode != "clustering":
            raise InvalidParameter("mode", "broadcasting is allowed only with protocol pull")
        if subscription.ordered and subscription.protocol == "queue":
            raise InvalidParameter("ordered", "is allowed only with protocol pull or http")
    is_group = subscription.protocol == "pull" and subscription.mode == "clustering"
    if subscription.invoke and not is_group:
        raise InvalidParameter("invoke", "is allowed only with protocol pull, in mode clustering")
    if subscription.start != LATEST and not is_group:
        raise InvalidParameter("start", "is allowed only with protocol pull, in mode clustering")
    if subscription.content_format != "json" and subscription.protocol != "http":
        raise InvalidParameter("content_format", "is allowed only with protocol http")
    if subscription.dead_letter_queue is not None:
        check_name("dead_letter_queue", subscription.dead_letter_queue, QUEUE_NAME)
        if subscription.protocol == "queue" or subscription.mode == "broadcasting":
            raise InvalidParameter(
                "dead_letter_queue", "must be null: this subscription retries nothing"
            )
    if subscription.mode == "broadcasting" and subscription.ordered:
        raise InvalidParameter("ordered", "is allowed only in mode clustering")
    policy = _read_retry(subscription)
    if subscription.breaker and policy is not None and policy.blocking != "none":
        raise InvalidParameter(
            "breaker",
            f"is not allowed with the policy {policy.policy}, which tries one message at a time"
            " while it fails",
        )
    return msgspec.structs.replace(subscription, format=2 if subscription.reads_bodies else 1)


def _read_retry(subscription: Subscription) -> RetryPolicy | None:
    if not subscription.pausable and subscription.retry is not None:
        raise InvalidParameter("retry", "must be null: nothing is retried here")
    if not subscription.pausable:
        return None
    default = "ordered" if subscription.ordered else _DEFAULT_POLICY[subscription.protocol]
    if subscription.ordered and subscription.protocol == "http":
        default = "http_ordered"
    return parse_retry(subscription.retry, ordered_source=subscription.ordered, default=default)
