"""A source of messages: a queue, one of its receivers, or a topic's subscription."""

from __future__ import annotations

import msgspec

from cirrusmq.base import ulid
from cirrusmq.base.limits import EXPIRED_KEPT_MS, KEY_SLACK_MS
from cirrusmq.model.invoke import Invoke
from cirrusmq.model.parcel import DELETED, Parcel
from cirrusmq.model.pauses import Pause
from cirrusmq.model.queue import DeadLetter, Queue
from cirrusmq.model.retry import RetryPolicy


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The values that receiving, holding and dead-lettering messages need of their source."""

    id: str
    account: str
    queue_name: str
    receiver: str | None = None
    """The receiver's name; None means the queue's default one."""
    subscription: str | None = None
    """The subscription's name, if this is one; `queue_name` is its topic's then."""
    subscription_id: str | None = None
    text_attributes: tuple[str, ...] = ()
    """Names of the attributes that may have a message's text for its URL or function."""
    log_id: str
    """The queue or topic with the log of bodies that do not fit into a parcel."""
    partitions: int
    ordered: bool
    fair: bool = False
    """True if keys begin with the group, which is served in round robin; or with the priority."""
    priorities: int | None = None
    """Number of priorities of its messages; None: they have groups, or neither."""
    ageing_seconds: int | None = None
    """Time after which a waiting message counts one priority higher; None: it never does."""
    max_in_flight: int | None = None
    """Largest number of held messages of a group of a fair source, about; None: any number."""
    group_rate: int | None = None
    """Largest number of messages of a fair source's group received within a second; None: any."""
    receive_rate: int | None = None
    """Largest number of messages received within a second; None: any number."""
    grown: bool = False
    """True if it had fewer partitions before."""
    visibility_timeout_seconds: int
    receive_wait_seconds: float
    retry: RetryPolicy | None
    dead_letter: DeadLetter | None
    makes_dead_letter_queue: bool = False
    """True if that queue is made, and set in the subscription, at the first dead letter."""
    lacks_dead_letter_queue: bool = False
    """True if it could not be made: its dead letters stay receivable."""
    rewind_seconds: int = 0
    purged_ms: int = 0
    rewind_floor_ms: int = 0
    longest_retention_seconds: int
    invoke: Invoke | None = None
    """The function that its messages are handed to."""
    paused: bool = False
    """True if nothing is received; held messages can be settled."""
    pauses: tuple[Pause, ...] = ()
    """Times of its pauses, in which messages did not age."""
    ends_ms: int | None = None
    """For a group's former source: messages published from then on are in a later one."""
    frontier: str | None = None
    """Key of a topic's log: a group that is rewound receives nothing behind it yet."""
    former: tuple[Source, ...] = ()
    """A group's former sources with messages left, the first one first."""
    later: tuple[Source, ...] = ()
    """For an ordered group's former source: the sources behind it, the present one last."""
    withheld_from_ms: int | None = None
    """For a former source: messages published from then on wait for the group's frontier, since it
    may still bring one that another clock put later and the group's order puts before them."""
    backlog_before_ms: int = 0
    """While a new receiver gets the queue's backlog: messages sent before this time; else 0."""

    @property
    def owner_id(self) -> str:
        """Id of the queue, receiver or subscription.

        A group keeps it when it is rewound, and its source is another one then: what must outlive a
        rewind goes by this id.
        """
        return self.subscription_id or self.id

    @property
    def all(self) -> tuple[Source, ...]:
        """The former sources, and this one behind them."""
        return (*self.former, self)

    def keeps(self, parcel: Parcel) -> bool:
        """Returns True if the parcel's messages are its own: not purged, not in a later source.

        A dead letter that was given back alone is in no topic's log, and stays in its source.
        """
        if parcel.sent_ms <= self.purged_ms:
            return False
        return self.ends_ms is None or parcel.sent_ms < self.ends_ms or parcel.came_alone

    def is_over(self, parcel: Parcel, now_ms: int) -> bool:
        """Returns True if the parcel's life is over, or it was purged, or is in a later source."""
        return now_ms >= parcel.expires_ms or not self.keeps(parcel)

    def has_ended(self, parcel: Parcel, now_ms: int) -> bool:
        """Returns True if no message of the parcel can be received any more, as it is."""
        return parcel.spent() or self.is_over(parcel, now_ms)

    def withholds(self, parcel: Parcel) -> bool:
        """Returns True if the parcel's messages may not be received yet, by their log position."""
        if self.withheld_from_ms is not None:
            return parcel.sent_ms >= self.withheld_from_ms and not parcel.came_alone
        if self.frontier is None:
            return False
        return f"{ulid.time_of(parcel.send_id):013d}#{parcel.record_id}" > self.frontier

    def gives_away(self, parcel: Parcel) -> bool:
        """Returns True if a new receiver gets the parcel's messages, or did a moment ago.

        Every write that ends one of its messages notes the time, and the parcel is not lost.
        """
        return parcel.sent_ms < self.backlog_before_ms

    @property
    def archives(self) -> bool:
        """True if deleted messages may have to be kept."""
        return bool(self.rewind_seconds or self.backlog_before_ms)

    @property
    def grouped(self) -> bool:
        """True if keys are group by group, and not of all messages in order of their times."""
        return self.ordered or self.fair

    @property
    def has_groups(self) -> bool:
        """True if its messages have groups that a call may name."""
        return self.grouped and self.priorities is None

    @property
    def traced(self) -> bool:
        """True if a dead message's end can be looked up: its parcel has it, to its expiry."""
        return self.subscription is not None

    @property
    def rescues(self) -> bool:
        """True if received messages become dead letters at the end of their life."""
        return self.subscription is not None and self.dead_letter is not None

    def removable_ms(self, parcel: Parcel) -> int:
        """Returns when TTL may remove a parcel with messages that were received.

        The sweep needs time between the end of its last lease and its removal:

            claimed ──────────── the lease ends ── it expires ── the sweep moves it ...... TTL
        """
        return parcel.expires_ms + (EXPIRED_KEPT_MS if self.rescues else 0)

    @property
    def gives_up(self) -> bool:
        """True if a message of it may ever be dead-lettered or dropped."""
        return self.dead_letter is not None or self.drops

    @property
    def drops(self) -> bool:
        """True if a message whose retries are used up is dropped at once."""
        ending = None if self.retry is None else self.retry.ending
        return self.subscription is not None and not self.dead_letter and ending == "dropped"

    @property
    def keeps_used_up(self) -> bool:
        """True if a message whose retries are used up stays, not received, to its expiry."""
        ending = None if self.retry is None else self.retry.ending
        return self.subscription is not None and not self.dead_letter and ending == "expiry"

    def query_from_ms(self, now_ms: int, scale: float) -> int:
        """Returns the earliest key time of messages that can still be received.

        A send's key has the time of its attempt, which may be old in real seconds (`scale`).
        """
        oldest_ms = max(now_ms - self.longest_retention_seconds * 1000, self.purged_ms)
        return max(0, oldest_ms - int(KEY_SLACK_MS * scale))


def rewindable(source: Source, parcel: Parcel, index: int) -> bool:
    """Returns True if the message at `index` was deleted since rewinding is on.

    A deleted message has the time of its deletion in the place of its first receive.
    """
    deleted = parcel.visible_ms[index] == DELETED
    return deleted and parcel.first_received_ms[index] > source.rewind_floor_ms


def is_kept(source: Source, parcel: Parcel) -> bool:
    """Returns True if a parcel with ended messages is kept: to rewind, or for a new receiver."""
    return source.gives_away(parcel) or any(
        rewindable(source, parcel, index) for index in range(parcel.count)
    )


def kept_until(source: Source, parcel: Parcel) -> int:
    """Returns until when an ended parcel must be in the archive; 0 if it need not be."""
    if source.gives_away(parcel):
        return parcel.expires_ms
    return rewindable_until(source, parcel)


def rewindable_until(source: Source, parcel: Parcel) -> int:
    """Returns until when a deleted message of the parcel can be rewound; 0 if it never can."""
    if not source.rewind_seconds:
        return 0
    return min(parcel.sent_ms + source.rewind_seconds * 1000, parcel.expires_ms)


def queue_source(queue: Queue, now_ms: int) -> Source:
    """Returns the source of the queue's default receiver."""
    attributes = queue.attributes
    return Source(
        id=queue.id,
        account=queue.account,
        queue_name=queue.name,
        log_id=queue.id,
        partitions=attributes.partitions,
        ordered=attributes.ordered,
        fair=attributes.fair or attributes.priorities is not None,
        priorities=attributes.priorities,
        ageing_seconds=attributes.ageing_seconds,
        max_in_flight=attributes.max_in_flight,
        group_rate=attributes.rate,
        receive_rate=attributes.receive_rate,
        grown=bool(queue.earlier_partitions),
        visibility_timeout_seconds=attributes.visibility_timeout_seconds,
        receive_wait_seconds=attributes.receive_wait_seconds,
        retry=queue.retry,
        dead_letter=attributes.dead_letter,
        rewind_seconds=attributes.rewind_seconds,
        purged_ms=queue.purged_ms,
        rewind_floor_ms=queue.rewind_floor_ms,
        longest_retention_seconds=queue.longest_retention_seconds(now_ms),
        invoke=attributes.invoke,
        backlog_before_ms=queue.backlog_before_ms if queue.backlog_readers else 0,
        paused=attributes.paused,
        pauses=tuple(queue.pauses),
    )
