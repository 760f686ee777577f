"""Fan-out of a topic's record: a parcel for each subscription, or a send into its queue."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import Unavailable
from cirrusmq.fanout.reader_parcels import (
    LogEntry,
    ParcelsToPut,
    ReaderDelivery,
    ReaderShare,
    lanes_of,
    notice_of,
    parcels_of,
)
from cirrusmq.model.envelope import Described
from cirrusmq.model.parcel import lone_parcel_id, message_id
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Subscription, Topic, TopicKind
from cirrusmq.publishing.recipients import endpoint
from cirrusmq.publishing.records import Delivery, TopicRecord, read_record
from cirrusmq.publishing.selecting import select
from cirrusmq.queues.receivers import cached_receivers
from cirrusmq.queues.wake_ups.announce import wake_receivers
from cirrusmq.runtime.core import Core
from cirrusmq.sending import deduplication
from cirrusmq.sending.deduplication import Duplicate
from cirrusmq.sending.making import Entry, items_for
from cirrusmq.sending.request_messages import stored
from cirrusmq.storage import directory
from cirrusmq.storage.bodies.write import keep_messages
from cirrusmq.storage.directory import topic_key
from cirrusmq.storage.parcels import read_parcel
from cirrusmq.storage.sequences import take_sequence
from cirrusmq.subscriptions.subscriptions import subscriptions_with


class _CopyToSend(ReaderDelivery, frozen=True, kw_only=True):
    """A share of a queue that numbers, logs or archives what it is sent."""

    queue: Queue
    record: TopicRecord
    delivery: Delivery
    others: Mapping[str, Any]
    """Attributes that the parcels have besides."""

    def give(self, core: Core) -> None:
        """A normal send, with a reminder for each message so that a repetition sends nothing.

        A whole record is sent as it was published, a part of it message by message, since a log
        record's messages are numbered as in their send.
        """
        queue, record, delivery = self.queue, self.record, self.delivery
        whole = len(delivery.indexes) == len(record.messages)
        for indexes in [delivery.indexes] if whole else [[index] for index in delivery.indexes]:
            now_ms = core.now_ms()
            parcel_id = record.send_id
            if not whole:
                index = record.positions[indexes[0]]
                parcel_id = lone_parcel_id(record.send_id, index, now_ms, record.topic_id)
            messages = {
                record.positions[index]: _grouped(queue, record, index) for index in indexes
            }
            items = items_for(
                queue,
                [
                    Entry(
                        position=record.positions[index],
                        message=messages[record.positions[index]],
                        available_ms=max(
                            now_ms, record.due_ms(index) or now_ms + delivery.delay_ms
                        ),
                    )
                    for index in indexes
                ],
                parcel_id=parcel_id,
                begun_ms=_key_ms(record, now_ms) if whole else now_ms,
                now_ms=now_ms,
                take_sequence=lambda n, count: take_sequence(core, queue.id, n, count),
                object_days=_kept_days(core, queue, record, now_ms),
                others=self.others,
            )
            reminders = deduplication.reminders(
                queue.id,
                {record.positions[index]: f"{record.send_id}#{index}" for index in indexes},
                stored(record.send_id, messages, now_ms),
                life_ms=limits.TOPIC_LIFE_SECONDS * 1000,
            )
            with contextlib.suppress(Duplicate):
                deduplication.transact(core, items.all, reminders, begun_ms=now_ms, now_ms=now_ms)
                wake_receivers(core, queue, map(read_parcel, items.parcels), now_ms)


def topic_handouts(core: Core, entry: LogEntry) -> list[ReaderDelivery]:
    """The handouts to the subscriptions that were chosen when the record was published.

    Several subscriptions may have the same queue: a message is in there once, as a notification if
    one of them has no raw delivery.
    """
    record = read_record(entry.item)
    subscriptions = subscriptions_of(core, record)
    handouts: list[ReaderDelivery] = []
    into: dict[str, tuple[Queue, Delivery]] = {}
    for delivery in record.header.deliveries:
        subscription = subscriptions.get(delivery.subscription_id)
        if subscription is None or subscription.mode == "broadcasting":
            continue  # deleted since then, or it reads the log itself
        if subscription.protocol == "queue":
            queue = endpoint(core, subscription)
            if queue is not None:
                before = into[queue.id][1].indexes if queue.id in into else []
                indexes = sorted({*before, *delivery.indexes})
                into[queue.id] = queue, replace(delivery, indexes=indexes)
            continue
        handouts.append(_own_handout(entry, subscription, record, delivery))
    handouts += _late_handouts(core, entry, subscriptions, record)
    for queue, delivery in into.values():
        others = _as_notification(queue, subscriptions.values())
        handouts.append(_queue_handout(core, entry, queue, record, delivery, others))
    return handouts


def _as_notification(queue: Queue, subscriptions: Iterable[Subscription]) -> Mapping[str, Any]:
    """Returns extra attributes of a queue's parcels if a subscription of it has no raw delivery.

    It looks at all subscriptions of the topic, not only at the record's: all messages of a topic
    have one form in a queue.
    """
    for each in subscriptions:
        if each.notifies and each.endpoint_id == queue.id:
            return notifying(each)
    return {}


def notifying(subscription: Subscription) -> Mapping[str, Any]:
    """Returns the extra attributes of a subscription's parcels; none if it has raw delivery."""
    if not subscription.notifies:
        return {}
    # For subscriptions of SNS's callers alone: the others' cold starts do without.
    from cirrusmq.model.notification import as_attribute

    return as_attribute(subscription)


def subscriptions_of(core: Core, record: TopicRecord) -> dict[str, Subscription]:
    """Returns the topic's subscriptions by id, with all of the record that are not deleted.

    publish    knows the new subscription ── stores it in the record
    fan_out    has a list from before it, not yet a second old: asks before it skips any
    """
    wanted = [delivery.subscription_id for delivery in record.header.deliveries]
    return {each.id: each for each in subscriptions_with(core, record.topic_id, wanted)}


def _late_handouts(
    core: Core, entry: LogEntry, subscriptions: Mapping[str, Subscription], record: TopicRecord
) -> list[ReaderDelivery]:
    """The handouts to groups that start before their creation, or are rewound.

    publish    knows no group ────────────────── put ──> fan_out: it is the group's
    replay                   reads the log: not there
    """
    known = {delivery.subscription_id for delivery in record.header.deliveries}
    late = [
        each
        for each in subscriptions.values()
        if each.replay and each.catches_up_on(record.sent_ms) and each.id not in known
    ]
    if not late:
        return []
    key = topic_key(late[0].account, late[0].topic)
    topic = directory.read_cached(core, key, Topic)
    if topic is None or topic.id != record.topic_id:
        return []
    handouts = []
    for each in late:
        delivery = _later_delivery(core, each, record, topic.attributes.filter)
        if delivery.indexes:
            handouts.append(_own_handout(entry, each, record, delivery))
    return handouts


def fair_share(
    core: Core, subscription: Subscription, record: TopicRecord, kind: TopicKind
) -> ReaderShare | None:
    """Returns the share of a group in a record of any age, or None if it has none."""
    deliveries = record.header.deliveries
    delivery = next((each for each in deliveries if each.subscription_id == subscription.id), None)
    if delivery is None:
        delivery = _later_delivery(core, subscription, record, kind)
    return own_share(subscription, record, delivery) if delivery.indexes else None


def _later_delivery(
    core: Core, subscription: Subscription, record: TopicRecord, kind: TopicKind
) -> Delivery:
    """Returns the delivery of a record that was not published for a group: by its filter now."""
    return Delivery(
        subscription_id=subscription.id,
        indexes=select(core, record, subscription, kind),
        life_ms=limits.TOPIC_LIFE_SECONDS * 1000,
        delay_ms=0,
    )


def _own_handout(
    entry: LogEntry, subscription: Subscription, record: TopicRecord, delivery: Delivery
) -> ReaderDelivery:
    share = own_share(subscription, record, delivery)
    pushed = subscription.protocol == "http"
    parcels = list(parcels_of(share)) if pushed else []
    delayed = any(record.due_ms(index) for index in delivery.indexes)
    strictly = frozenset({subscription.id}) if subscription.pushed_in_order else frozenset()
    return ParcelsToPut(
        reader_id=subscription.id,
        entry=entry,
        share=share,
        parcels=parcels,
        lanes=lanes_of(share) | strictly,
        notice=notice_of(subscription, parcels, delayed=delayed) if pushed else None,
    )


def _queue_handout(
    core: Core,
    entry: LogEntry,
    queue: Queue,
    record: TopicRecord,
    delivery: Delivery,
    others: Mapping[str, Any],
) -> ReaderDelivery:
    if not _needs_a_send(core, queue):
        share = replace(_queue_share(queue, record, delivery), others=others)
        return ParcelsToPut(reader_id=queue.id, entry=entry, share=share, woken=queue)
    lanes = frozenset(
        f"{queue.id}#{_grouped(queue, record, index).group}" for index in delivery.indexes
    )
    return _CopyToSend(
        reader_id=queue.id,
        entry=entry,
        queue=queue,
        record=record,
        delivery=delivery,
        others=others,
        lanes=lanes if queue.attributes.ordered else frozenset(),
    )


def own_share(subscription: Subscription, record: TopicRecord, delivery: Delivery) -> ReaderShare:
    """Returns the share of a subscription with its own parcels."""
    pull = subscription.protocol == "pull"
    ordered = pull and subscription.ordered
    share = _share(subscription.source_of(record.sent_ms), record, delivery)
    unnumbered = ordered and record.header.sequences is None
    numbers = record.header.sequences or [0] * len(record.messages)
    return replace(
        share,
        partition=record.partition if pull else subscription.partition_of(record.send_id),
        sequences=[numbers[index] for index in delivery.indexes] if ordered else None,
        unnumbered=unnumbered,
        group_partitions=subscription.log_partitions,
        log_is_own=True,
        invokes=subscription.invoke is not None,
        others=notifying(subscription),
    )


def _queue_share(queue: Queue, record: TopicRecord, delivery: Delivery) -> ReaderShare:
    """The share of a plain queue; its own log does not have the record."""
    share = _share(queue.id, record, delivery)
    return replace(
        share,
        partition=queue.partition_of(record.send_id),
        group_partitions=queue.partitions_at(ulid.time_of(record.send_id)),
        fair=queue.attributes.fair or queue.attributes.priorities is not None,
        priorities=queue.attributes.priorities,
        invokes=queue.attributes.invoke is not None,
    )


def _share(source_id: str, record: TopicRecord, delivery: Delivery) -> ReaderShare:
    return ReaderShare(
        source_id=source_id,
        entries=[
            Entry(
                position=record.positions[index],
                message=record.messages[index],
                available_ms=record.due_ms(index) or record.sent_ms + delivery.delay_ms,
            )
            for index in delivery.indexes
        ],
        parcel_id=record.send_id,
        partition=record.partition,
        log=f"{record.topic_id}#{record.partition}",
        sent_ms=record.sent_ms,
        expires_ms=record.sent_ms + delivery.life_ms,
        skew_ms=ulid.time_of(record.send_id) - record.sent_ms,
        group_partitions=limits.TOPIC_PARTITIONS_DEFAULT,
        object_days=record.object_days,
    )


def _needs_a_send(core: Core, queue: Queue) -> bool:
    """Returns True if a parcel put from outside would miss steps of a send in this queue.

    An ordered one gives sequence numbers; a log feeds receivers; and if deleted parcels are
    archived, a repeated record would find the key free and be delivered twice.
    """
    attributes = queue.attributes
    logged = queue.log_since_ms is not None or bool(cached_receivers(core, queue.id))
    return attributes.ordered or bool(attributes.rewind_seconds) or logged


def _key_ms(record: TopicRecord, now_ms: int) -> int:
    """Returns the time of a whole record's key in a queue, where its life begins now.

    Scans go back by a message's life and `KEY_SLACK_MS`, and no further than a purge. So the key of
    a copy that is later than this slack is later than its publish.
    """
    return max(ulid.time_of(record.send_id), now_ms - limits.KEY_SLACK_MS)


def _kept_days(core: Core, queue: Queue, record: TopicRecord, now_ms: int) -> int:
    """The class of the object with the record's messages, for a life that begins now; 0: in none.

    published    object d05 .............................. ends
    fanned out, a day late        the queue's 4 days ............. end: copied again
    """
    days = keep_messages(core, queue, record.send_id, record.object_days, now_ms)
    if days is None:
        raise Unavailable  # its share stays parked
    return days


def _grouped(queue: Queue, record: TopicRecord, index: int) -> Described:
    """Returns the message; in an ordered queue a message without a group is its own group."""
    message = record.messages[index]
    if not queue.attributes.ordered or message.group is not None:
        return message
    return replace(message, group=message_id(record.send_id, record.positions[index]))
