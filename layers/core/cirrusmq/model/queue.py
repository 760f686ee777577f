"""A queue and its attributes as values: reading what a caller gave, and the rules across them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InUse, InvalidParameter
from cirrusmq.base.shapes import integer
from cirrusmq.model.described import Description, Labels, chosen_values, with_given
from cirrusmq.model.invoke import Invoke, InvokeInput
from cirrusmq.model.pauses import Pause
from cirrusmq.model.pauses import changed as pauses_changed
from cirrusmq.model.retry import RetryPolicy, parse_retry
from cirrusmq.model.sender import SenderDetail


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a message is given up, and the queue of the same account that takes it."""

    queue: str
    max_receives: int | None = None
    max_age_seconds: int | None = None


class DeadLetterInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `dead_letter` as a caller gives it; members that are not given are UNSET."""

    queue: str
    max_receives: Annotated[int, integer(limits.DEAD_LETTER_RECEIVES)] | UnsetType = UNSET
    max_age_seconds: (
        Annotated[int, integer(limits.DEAD_LETTER_AGE_SECONDS, " seconds")] | UnsetType
    ) = UNSET

    def chosen(self) -> DeadLetter:
        """Returns the given values over the defaults."""
        return DeadLetter(**chosen_values(self))


RetryJson: TypeAlias = dict[str, Any]
_Wait: TypeAlias = Annotated[
    float,
    Meta(ge=0, le=limits.RECEIVE_WAIT_SECONDS[1], description="a number from 0 to 30 seconds"),
]


_Rate: TypeAlias = Annotated[int, integer(limits.MESSAGES_PER_SECOND, " messages a second")]


class QueueAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """All attributes of a queue; infra/manual/queues.md explains them."""

    message_retention_seconds: int = limits.RETENTION_SECONDS_DEFAULT
    visibility_timeout_seconds: int = limits.VISIBILITY_SECONDS_DEFAULT
    receive_wait_seconds: float = limits.RECEIVE_WAIT_SECONDS_DEFAULT
    delay_seconds: int = 0
    max_message_bytes: int = limits.MESSAGE_BYTES_DEFAULT
    max_messages: int = limits.QUEUE_MESSAGES_DEFAULT
    rewind_seconds: int = 0
    dead_letter: DeadLetter | None = None
    retry: RetryJson | None = None
    ordered: bool = False
    fair: bool = False
    max_in_flight: int | None = None
    rate: int | None = None
    priorities: int | None = None
    ageing_seconds: int | None = None
    send_rate: int | None = None
    receive_rate: int | None = None
    partitions: int = limits.PARTITIONS_DEFAULT
    invoke: Invoke | None = None
    description: str | None = None
    labels: dict[str, str] = {}
    paused: bool = False
    """Its own messages are received by nobody; sends go on."""
    sender: SenderDetail = "account"
    """Messages name the account that sent them, or its access key too."""


class QueueInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes as a caller gives them; missing ones are UNSET."""

    message_retention_seconds: (
        Annotated[int, integer(limits.RETENTION_SECONDS, " seconds")] | UnsetType
    ) = UNSET
    visibility_timeout_seconds: (
        Annotated[int, integer(limits.VISIBILITY_SECONDS, " seconds")] | UnsetType
    ) = UNSET
    receive_wait_seconds: _Wait | UnsetType = UNSET
    delay_seconds: Annotated[int, integer(limits.DELAY_SECONDS, " seconds")] | UnsetType = UNSET
    max_message_bytes: Annotated[int, integer(limits.MESSAGE_BYTES)] | UnsetType = UNSET
    max_messages: Annotated[int, integer(limits.QUEUE_MESSAGES)] | UnsetType = UNSET
    rewind_seconds: (
        Annotated[int, integer((0, limits.RETENTION_SECONDS[1]), " seconds")] | UnsetType
    ) = UNSET
    dead_letter: DeadLetterInput | UnsetType | None = UNSET
    retry: RetryJson | UnsetType | None = UNSET
    ordered: bool | UnsetType = UNSET
    fair: bool | UnsetType = UNSET
    max_in_flight: Annotated[int, integer(limits.MAX_IN_FLIGHT)] | UnsetType | None = UNSET
    rate: _Rate | UnsetType | None = UNSET
    priorities: Annotated[int, integer(limits.PRIORITIES)] | UnsetType | None = UNSET
    ageing_seconds: (
        Annotated[int, integer(limits.AGEING_SECONDS, " seconds")] | UnsetType | None
    ) = UNSET
    send_rate: _Rate | UnsetType | None = UNSET
    receive_rate: _Rate | UnsetType | None = UNSET
    partitions: Annotated[int, integer(limits.PARTITIONS)] | UnsetType = UNSET
    invoke: InvokeInput | UnsetType | None = UNSET
    description: Description | UnsetType | None = UNSET
    labels: Labels | UnsetType = UNSET
    paused: bool | UnsetType = UNSET
    sender: SenderDetail | UnsetType = UNSET


class ReceiverInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `PUT …/receivers/{receiver}`."""

    start: (
        Annotated[
            str,
            Meta(
                description="latest: messages sent after the answer; earliest: also all messages "
                "in the queue then, and what its log has; or a time since which the log has "
                "everything"
            ),
        ]
        | UnsetType
    ) = UNSET
    filter: dict[str, Any] | UnsetType | None = UNSET


class ReceiverChangeInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `PATCH …/receivers/{receiver}`."""

    paused: bool | UnsetType = UNSET
    receive_rate: _Rate | UnsetType | None = UNSET
    labels: Labels | UnsetType = UNSET


class SdkAttributes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Attributes that SDKs of other services set on a queue beside the core's."""

    texts: dict[str, str] = {}
    """Values that are read back as they were set, by their names there: `Policy`."""
    dead_letters_from: list[str] | None = None
    """The queues that may name this one as their dead-letter queue; None means every queue."""


class Queue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A queue as the directory keeps it. Times are in milliseconds since the epoch."""

    account: str
    name: str
    id: str
    attributes: QueueAttributes
    created_ms: int
    modified_ms: int
    purged_ms: int = 0
    """Messages sent until then are never returned again."""
    rewind_floor_ms: int = 0
    """Messages deleted until then cannot be rewound: rewinding was turned on at that time."""
    log_since_ms: int | None = None
    """Since when every message has a log record, for receivers; None if only large ones have."""
    earlier_retentions: list[tuple[int, int]] = []
    """(in force until ms, retention seconds) of longer retentions before the present one."""
    earlier_partitions: list[tuple[int, int]] = []
    """(before ms, partitions): the number in force for sends begun before then."""
    earlier_delays: list[tuple[int, int]] = []
    """(before ms, delay seconds): the delay in force for sends begun before then."""
    backlog_readers: list[str] = []
    """Ids of the operations that give new receivers the messages sent before the log. While there
    is one, such messages are kept when they end."""
    sdk: SdkAttributes | None = None
    pauses: list[Pause] = []
    """When it was paused, the last time at the end."""

    @property
    def sdk_texts(self) -> Mapping[str, str]:
        """The texts that SDKs of other services keep with the queue, by their names there."""
        return self.sdk.texts if self.sdk else {}

    @property
    def backlog_before_ms(self) -> int:
        """Every message sent later is in the log; 0 without a log."""
        since_ms = self.log_since_ms
        return 0 if since_ms is None else since_ms + limits.LOG_UNSURE_MS

    def partition_of(self, send_id: str, prefix: str = "") -> int:
        """Returns the partition of a send in an unordered queue; in a fair one, of a `prefix`.

        With priorities, each level has messages in every partition. A send repeated after the
        partitions grew must look in the first one's partition, so the number in force at the time
        inside the send's id decides.
        """
        leveled = self.attributes.priorities is not None
        chosen_by = send_id if leveled else prefix or send_id
        partitions = self.attributes.partitions
        if self.earlier_partitions:
            partitions = self.partitions_at(ulid.time_of(send_id))
        return zlib.crc32(chosen_by.encode()) % partitions

    def partitions_at(self, begun_ms: int) -> int:
        """Returns the number of partitions for sends begun at that time."""
        partitions = self.attributes.partitions
        for until_ms, earlier in reversed(self.earlier_partitions):
            if begun_ms < until_ms:
                partitions = earlier
        return partitions

    def earlier_delays_of(self, begun_ms: int) -> set[int]:
        """Returns delays, in seconds, that a send begun at that time may have found in force."""
        return {seconds for until_ms, seconds in self.earlier_delays if begun_ms < until_ms}

    def longest_retention_seconds(self, now_ms: int) -> int:
        """Returns the longest life that a message now in the queue may have, in seconds."""
        in_force = [seconds for until_ms, seconds in self.earlier_retentions if until_ms > now_ms]
        return max([self.attributes.message_retention_seconds, *in_force])

    @property
    def retry(self) -> RetryPolicy | None:
        """The retry policy, if there is one."""
        return read_retry(self.attributes)


def read_retry(attributes: QueueAttributes) -> RetryPolicy | None:
    """Returns the checked retry policy of `attributes`, or None."""
    if attributes.retry is None:  # each receive asks
        return None
    return parse_retry(attributes.retry, ordered_source=attributes.ordered)


def create_attributes(given: QueueInput) -> QueueAttributes:
    """Returns the attributes of a new queue: the given ones over the defaults."""
    attributes = with_given(QueueAttributes(), given)
    if attributes.priorities is not None and isinstance(given.partitions, UnsetType):
        attributes = msgspec.structs.replace(attributes, partitions=1)
    return _checked(attributes)


def change_attributes(queue: Queue, given: QueueInput, now_ms: int) -> Queue:
    """Returns the queue after a change. Raises if a fixed attribute or a rule forbids it."""
    before = queue.attributes
    after = with_given(before, given)
    if after.priorities != before.priorities:
        raise InvalidParameter("priorities", "are fixed when the queue is created")
    after = _checked(after)
    if after.ordered != before.ordered:
        raise InvalidParameter("ordered", "is fixed when the queue is created")
    if after.fair != before.fair:
        raise InvalidParameter("fair", "is fixed when the queue is created")
    if after.ordered and after.partitions != before.partitions:
        raise InvalidParameter("partitions", "are fixed in an ordered queue")
    if after.partitions < before.partitions:
        raise InUse("partitions can only grow")
    changes: dict[str, Any] = {"attributes": after, "modified_ms": now_ms}
    if after.partitions > before.partitions:
        earlier = _remember(queue.earlier_partitions, before.partitions, now_ms)
        changes["earlier_partitions"] = earlier
    if after.delay_seconds != before.delay_seconds:
        delays = _remember(queue.earlier_delays, before.delay_seconds, now_ms)
        changes["earlier_delays"] = delays
    if after.message_retention_seconds < before.message_retention_seconds:
        until_ms = now_ms + before.message_retention_seconds * 1000 + limits.KEY_SLACK_MS
        in_force = [entry for entry in queue.earlier_retentions if entry[0] > now_ms]
        longer = [*in_force, (until_ms, before.message_retention_seconds)]
        changes["earlier_retentions"] = longer
    if after.paused != before.paused:
        changes["pauses"] = pauses_changed(queue.pauses, now_ms, paused=after.paused)
    if after.rewind_seconds and not before.rewind_seconds:
        changes["rewind_floor_ms"] = now_ms
    return msgspec.structs.replace(queue, **changes)


def _checked(attributes: QueueAttributes) -> QueueAttributes:
    if attributes.fair and attributes.ordered:
        raise InvalidParameter("fair", "is not allowed in an ordered queue")
    if attributes.priorities is not None:
        if attributes.ordered or attributes.fair:
            raise InvalidParameter("priorities", "are not allowed in an ordered or a fair queue")
        least, limit = limits.PRIORITY_PARTITIONS
        if attributes.partitions > limit:
            reason = f"must be {least} to {limit} in a queue with priorities"
            raise InvalidParameter("partitions", reason)
    if attributes.ageing_seconds is not None and attributes.priorities is None:
        raise InvalidParameter("ageing_seconds", "is of a queue with priorities: this is none")
    if attributes.max_in_flight is not None and not attributes.fair:
        raise InvalidParameter("max_in_flight", "is of each group of a fair queue: this is none")
    if attributes.rate is not None and not attributes.fair:
        raise InvalidParameter("rate", "is of each group of a fair queue: this is none")
    retention = attributes.message_retention_seconds
    if attributes.delay_seconds >= retention:
        raise InvalidParameter(
            "delay_seconds", f"must be 0 to {retention - 1}, below message_retention_seconds"
        )
    if attributes.rewind_seconds > retention:
        raise InvalidParameter(
            "rewind_seconds", f"must be 0 to {retention}, the message_retention_seconds"
        )
    policy = read_retry(attributes)
    dead_letter = attributes.dead_letter
    if policy is not None and policy.ends and dead_letter is None:
        raise InvalidParameter("retry", "a policy with a last retry needs dead_letter")
    if dead_letter is None:
        return attributes
    if dead_letter.max_receives is None and dead_letter.max_age_seconds is None:
        raise InvalidParameter("dead_letter", "needs max_receives, max_age_seconds or both")
    if dead_letter.max_age_seconds is not None and dead_letter.max_age_seconds >= retention:
        raise InvalidParameter(
            "dead_letter.max_age_seconds",
            f"must be {limits.DEAD_LETTER_AGE_SECONDS[0]} to {limits.DEAD_LETTER_AGE_SECONDS[1]}"
            f" and below message_retention_seconds ({retention})",
        )
    return attributes


def _remember(earlier: list[tuple[int, int]], value: int, now_ms: int) -> list[tuple[int, int]]:
    """Returns values in force before a change, for as long as a repeated send may look for them.

    the change   now ──────> written ──> caches have turned over
    a send       begins in here, with the old value; its attempt's time may be ahead
    """
    recent = [entry for entry in earlier if entry[0] > now_ms - limits.KEY_SLACK_MS]
    until_ms = now_ms + limits.CALL_MS + limits.DOCUMENTS_MS + limits.ATTEMPT_AHEAD_MS
    return [*recent, (until_ms, value)]
