"""A topic and its subscriptions as values: reading what a caller gave, and the rules across it."""

from __future__ import annotations

import zlib
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.names import QUEUE_NAME, check_name
from cirrusmq.base.shapes import integer
from cirrusmq.filters.selection import Filter, compile_filter
from cirrusmq.filters.tags import LONG_TAG_CHARACTERS
from cirrusmq.model.described import Description, Labels, check_labels
from cirrusmq.model.invoke import Invoke, InvokeInput
from cirrusmq.model.retry import RetryPolicy, parse_retry
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


class TopicAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's attributes, all of them."""

    filter: TopicKind = "tags"
    max_message_bytes: int = limits.TOPIC_MESSAGE_BYTES_DEFAULT
    partitions: int = limits.TOPIC_PARTITIONS_DEFAULT
    """Of its log. Fixed: the place of a record follows from its id alone, for traces and for
    repetitions of a publish, and a group's counter from the group's name."""
    description: str | None = None
    labels: dict[str, str] = {}
    sender: SenderDetail = "account"
    """Messages name the account that published them, or its access key too."""


class TopicInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes as a caller gives them; those that are not given are UNSET."""

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
    """What SDKs of other services set beside the attributes: read back as it was set."""

    def log_partition(self, send_id: str) -> int:
        """The partition of a send in the topic's log."""
        return zlib.crc32(send_id.encode()) % self.attributes.partitions


class Epoch(msgspec.Struct, frozen=True):
    """A former source of a group's messages: it keeps what was published before `until_ms`."""

    id: str
    until_ms: int


class Replay(msgspec.Struct, frozen=True):
    """What a group gets from the topic's log beside what was published for it."""

    operation: str
    """Id of the operation that hands it out."""
    from_ms: int
    until_ms: int
    """By then every publish knows the group."""
    running: bool = True
    """While it runs, nothing may be received that it has not reached."""


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
    """Of `queue`: the id of the queue."""
    filter: dict[str, Any] | None = None
    retry: dict[str, Any] | None = None
    content_format: ContentFormat = "json"
    dead_letter_queue: str | None = None
    dead_letter_error: str | None = None
    """Why the queue that it needs for its dead letters could not be made."""
    max_in_flight: int = limits.MAX_IN_FLIGHT_DEFAULT
    """Of `http`: how many messages are posted at the same time."""
    rate: int | None = None
    """Of `http`: how many messages are posted within a second at most."""
    keep_answers: bool = False
    """Of `http`: whether the begin of what it answers to posts that fail is kept for a day."""
    partitions: int
    """How many its parcels are spread over; fixed when it is created."""
    mode: Mode = "clustering"
    ordered: bool = False
    start: str = LATEST
    """Of `pull` in mode clustering, as the caller gave it."""
    source_id: str = ""
    """Of the source of its messages since it was last rewound; empty: its own id."""
    epochs: tuple[Epoch, ...] = ()
    """Its former sources that may have messages left, the first one first."""
    replay: Replay | None = None
    invoke: Invoke | None = None
    """Of `pull` in mode clustering."""
    log_partitions: int = limits.TOPIC_PARTITIONS_DEFAULT
    """How many the topic's log has."""
    labels: dict[str, str] = {}
    made_by: str | None = None
    """The account that made it, where that is not the topic's own: by a grant to subscribe."""
    confirmed: bool = True
    paused: bool = False
    """Whether nothing is posted to its URL, and its group receives nothing."""
    gone: bool = False
    """Whether it is paused because its URL answered 410."""
    token_sha256: str | None = None
    token_expires_ms: int = 0

    @property
    def pausable(self) -> bool:
        """Whether its messages wait in it: a queue's wait there, and a log is read by position."""
        return self.protocol != "queue" and self.mode == "clustering"

    @property
    def takes_back(self) -> bool:
        """Whether single messages may be put into it: dead letters, and what comes once more."""
        return self.pausable and self.confirmed

    @property
    def policy(self) -> RetryPolicy | None:
        """The retry policy in force; None where nothing is retried."""
        return _read_retry(self)

    @property
    def pushed_in_order(self) -> bool:
        """Whether its URL gets one message at a time, in order."""
        policy = self.policy if self.protocol == "http" else None
        return policy is not None and policy.blocking == "in_order"

    @property
    def present_id(self) -> str:
        """Id of the source that takes what is published now."""
        return self.source_id or self.id

    @property
    def source_ids(self) -> frozenset[str]:
        """Its own id, and those of all its sources."""
        return frozenset({self.id, self.present_id, *(epoch.id for epoch in self.epochs)})

    def source_of(self, sent_ms: int) -> str:
        """Id of the source with a message of this time: the same for all who hand it out."""
        former = (epoch.id for epoch in self.epochs if sent_ms < epoch.until_ms)
        return next(former, self.present_id)

    def catches_up_on(self, sent_ms: int) -> bool:
        """Whether it gets a message of this time that was not published for it."""
        return self.replay is not None and self.replay.from_ms <= sent_ms <= self.replay.until_ms

    def rewound(self, source_id: str, replay: Replay, oldest_ms: int) -> Subscription:
        """The group with a new source for what was published since `replay.from_ms`.

        Its former ones keep what was published before, as far as that lives: since `oldest_ms`.
        """
        former: list[Epoch] = []
        since_ms = oldest_ms
        for epoch in (*self.epochs, Epoch(self.present_id, replay.from_ms)):
            until_ms = min(epoch.until_ms, replay.from_ms)
            if until_ms > since_ms:
                former.append(Epoch(epoch.id, until_ms))
                since_ms = until_ms
        return msgspec.structs.replace(
            self, source_id=source_id, epochs=tuple(former), replay=replay
        )

    def partition_of(self, send_id: str) -> int:
        """The partition of a URL's parcel of a publish, also where the log has one key for all."""
        return zlib.crc32(send_id.encode()) % self.partitions

    def selection(self, kind: TopicKind) -> Filter:
        """Its filter, compiled for the topic's kind."""
        return compile_filter(self.filter, kind, tag_characters=LONG_TAG_CHARACTERS)

    def attributes(self) -> dict[str, Any]:
        """The attributes that a PUT may give."""
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
            }
        if self.protocol == "pull":
            shown |= {"mode": self.mode, "start": self.start, "invoke": self.invoke}
            del shown["endpoint"]
        if self.protocol != "queue":
            shown["ordered"] = self.ordered
        return shown


def own_dead_letter_queue(subscription_id: str) -> str:
    """Name of the queue that is made for dead letters where none was named."""
    return f"dlq-{subscription_id}"


def change_topic_attributes(before: TopicAttributes, given: TopicInput) -> TopicAttributes:
    """The attributes after a change; raises where one of them is fixed."""
    after = over_topic(before, given)
    if after.filter != before.filter:
        raise InvalidParameter("filter", "is fixed when the topic is created")
    if after.partitions != before.partitions:
        raise InvalidParameter("partitions", "are fixed when the topic is created")
    return after


def over_topic(attributes: TopicAttributes, given: TopicInput) -> TopicAttributes:
    """The attributes, with the given ones in their places."""
    given_values = msgspec.structs.asdict(given).items()
    changes = {name: value for name, value in given_values if value is not UNSET}
    check_labels(changes.get("labels", {}))
    return msgspec.structs.replace(attributes, **changes)


def create_subscription(topic: Topic, name: str, given: SubscriptionInput) -> Subscription:
    """A new subscription as it is asked for, without its id, checked by itself."""
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
    """How many partitions a new subscription has: a group's are those of the topic's log."""
    if protocol != "http":
        return topic.attributes.partitions
    usual, wide = limits.PUSH_PARTITIONS
    return usual if topic.attributes.partitions <= usual else wide


def over(subscription: Subscription, given: SubscriptionInput) -> Subscription:
    """The subscription with the given attributes, checked by itself."""
    for fixed in ("protocol", "endpoint", "mode", "ordered", "start"):
        value = getattr(given, fixed)
        if value is not UNSET and value != getattr(subscription, fixed):
            raise InvalidParameter(fixed, "is fixed when the subscription is created")
    for pushed in ("max_in_flight", "rate", "keep_answers"):
        # False says of others what holds anyway.
        if getattr(given, pushed) not in (UNSET, False) and subscription.protocol != "http":
            raise InvalidParameter(pushed, "is allowed only with protocol http")
    changes = {
        name: value for name, value in msgspec.structs.asdict(given).items() if value is not UNSET
    }
    check_labels(changes.get("labels", {}))
    if isinstance(given.invoke, InvokeInput):
        changes["invoke"] = given.invoke.chosen()
    return msgspec.structs.replace(subscription, **changes)


def checked(subscription: Subscription, kind: TopicKind) -> Subscription:
    """The subscription with its filter in the form that is kept; raises where a rule forbids it."""
    subscription = msgspec.structs.replace(
        subscription, filter=subscription.selection(kind).normalized()
    )
    if subscription.protocol != "pull":
        if subscription.mode != "clustering":
            raise InvalidParameter("mode", "broadcasting is allowed only with protocol pull")
        if subscription.ordered and subscription.protocol == "queue":
            raise InvalidParameter("ordered", "is allowed only with protocol pull or http")
    if subscription.invoke and (
        subscription.protocol != "pull" or subscription.mode == "broadcasting"
    ):
        raise InvalidParameter("invoke", "is allowed only with protocol pull, in mode clustering")
    if subscription.start != LATEST and (
        subscription.protocol != "pull" or subscription.mode == "broadcasting"
    ):
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
    _read_retry(subscription)
    return subscription


def _read_retry(subscription: Subscription) -> RetryPolicy | None:
    retries = subscription.protocol != "queue" and subscription.mode == "clustering"
    if not retries:
        return parse_retry(subscription.retry, ordered_source=False, allowed=())
    default = "ordered" if subscription.ordered else _DEFAULT_POLICY[subscription.protocol]
    if subscription.ordered and subscription.protocol == "http":
        default = "http_ordered"
    return parse_retry(subscription.retry, ordered_source=subscription.ordered, default=default)
