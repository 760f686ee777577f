"""Publishing: one log record, with the subscriptions that it goes to; fan-out does the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError, InvalidParameter
from cirrusmq.base.request_token import check_attempt
from cirrusmq.filters.routing import check_routing_key
from cirrusmq.model.message import Message, check_body_size
from cirrusmq.model.parcel import message_id
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.publishing.ids import is_in_order, moved_to, new_id, settle_id
from cirrusmq.publishing.records import Delivery, TopicRecord, make_header, read_record
from cirrusmq.queues.queues import endpoint_queue
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.sending import deduplication
from cirrusmq.sending.batch import (
    BatchMessage,
    deduplication_key,
    read_contents,
    repeatable_send_ids,
    store_once,
    stored,
)
from cirrusmq.sending.deduplication import Earlier, Stored
from cirrusmq.sending.parcels import group_partition
from cirrusmq.storage.parcels import log_item
from cirrusmq.storage.sequences import take_sequence
from cirrusmq.subscriptions.subscriptions import cached_subscriptions


class PublishMessage(BatchMessage, forbid_unknown_fields=True, frozen=True):
    """One message of a publish."""

    routing_key: str | UnsetType = UNSET


class PublishRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a publish."""

    messages: Annotated[
        list[PublishMessage], Meta(min_length=1, description="an array of 1 to 16 messages")
    ]
    atomic: bool = True
    attempt: str | UnsetType = UNSET


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What a publisher learns of one message."""

    id: str
    matched: int
    """How many subscriptions it goes to; 0: nothing is kept."""
    sent_ms: int


class _Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A checked message, and the subscriptions that it goes to."""

    message: Message
    routing_key: str
    subscriptions: tuple[Subscription, ...]


def publish(core: Core, topic: Topic, request: PublishRequest) -> list[Published | CirrusMQError]:
    """Publish the messages; one result for each, in the order given."""
    now_ms = core.now_ms()
    begun_ms = now_ms
    if not isinstance(request.attempt, UnsetType):
        begun_ms = check_attempt(request.attempt, now_ms, core.clock.scale)
    contents = read_contents(request.messages)
    routing_keys = [
        _routing_key(topic, given, f"messages[{number}]")
        for number, given in enumerate(request.messages)
    ]
    subscriptions = [each for each in cached_subscriptions(core, topic.id) if each.confirmed]
    results: dict[int, Published | CirrusMQError] = {}
    drafts: dict[int, _Draft] = {}
    for number, (message, routing_key) in enumerate(zip(contents, routing_keys, strict=True)):
        try:
            draft = _draft(topic, message, routing_key, subscriptions, f"messages[{number}]")
        except CirrusMQError as error:
            if request.atomic:
                raise
            results[number] = error
        else:
            drafts[number] = draft
    matched = [number for number in drafts if drafts[number].subscriptions]
    in_order = _has_ordered_readers(core, drafts.values(), begun_ms)
    if isinstance(request.attempt, UnsetType):
        send_id = new_id(core, topic, begun_ms, in_order=in_order)
    else:
        ids = repeatable_send_ids(topic.account, topic.id, request, begun_ms)
        send_id = next(filter(partial(is_in_order, topic), ids) if in_order else ids)
        if matched:
            send_id = settle_id(core, topic, send_id, in_order=in_order)

    counts = {number: len(draft.subscriptions) for number, draft in drafts.items()}

    def store(places: Sequence[int]) -> list[Stored]:
        nonlocal send_id, now_ms
        fresh = {matched[place]: drafts[matched[place]] for place in places}
        keys = [deduplication_key(request.messages[number]) for number in fresh]
        while True:
            earlier = _write(core, topic, send_id, fresh, keys, begun_ms, now_ms)
            later_id = moved_to(earlier.items[0]) if earlier and earlier.items else None
            if later_id is None:
                break
            # A repetition took this try for dead, and settled for all where the messages lie.
            send_id = settle_id(core, topic, later_id, in_order=in_order)
            now_ms = core.now_ms()
        if earlier is not None and earlier.items:
            decided = _counts(read_record(earlier.items[0]))
            counts.update({number: decided.get(number, 0) for number in fresh})
        contents = {number: draft.message for number, draft in fresh.items()}
        return stored(send_id, contents, earlier.sent_ms if earlier else now_ms)

    keys = [deduplication_key(request.messages[number]) for number in matched]
    for number, answer in zip(matched, store_once(keys, store), strict=True):
        results[number] = Published(id=answer.id, matched=counts[number], sent_ms=answer.sent_ms)
    for number in drafts.keys() - results.keys():
        results[number] = Published(id=message_id(send_id, number), matched=0, sent_ms=now_ms)
    return [results[number] for number in range(len(contents))]


def _routing_key(topic: Topic, given: PublishMessage, where: str) -> str:
    if isinstance(given.routing_key, UnsetType):
        return ""
    if topic.attributes.filter == "tags":
        raise InvalidParameter(f"{where}.routing_key", "is of topics with filter routing_key")
    return check_routing_key(given.routing_key, f"{where}.routing_key")


def _draft(
    topic: Topic,
    message: Message,
    routing_key: str,
    subscriptions: Sequence[Subscription],
    where: str,
) -> _Draft:
    kind = topic.attributes.filter
    check_body_size(message, topic.attributes.max_message_bytes, where)
    return _Draft(
        message=message,
        routing_key=routing_key,
        subscriptions=tuple(
            subscription
            for subscription in subscriptions
            if subscription.selection(kind).matches(message.tags, routing_key, message.attributes)
        ),
    )


def _counts(record: TopicRecord) -> dict[int, int]:
    """To how many subscriptions each message of a stored record goes, by its place in the call.

    That was decided when it was stored; whoever subscribed since gets nothing by a repetition.
    """
    return {
        position: sum(place in delivery.places for delivery in record.header.deliveries)
        for place, position in enumerate(record.positions)
    }


def _has_ordered_readers(core: Core, drafts: Iterable[_Draft], begun_ms: int) -> bool:
    """Whether a consumer that gets one of them is promised an order.

    One that subscribed since the attempt began must not change the id that a repetition has.
    """
    for subscription in {
        each.id: each for draft in drafts for each in draft.subscriptions
    }.values():
        if subscription.created_ms > begun_ms:
            continue
        if subscription.ordered or subscription.pushed_in_order:
            return True
        if subscription.protocol == "queue":
            queue = _endpoint(core, subscription)
            if queue is not None and queue.attributes.ordered:
                return True
    return False


def _write(
    core: Core,
    topic: Topic,
    send_id: str,
    fresh: Mapping[int, _Draft],
    keys: Sequence[str | None],
    begun_ms: int,
    now_ms: int,
) -> Earlier | None:
    """Store messages, given by their places in the call, unless an earlier try of it did."""
    drafts = list(fresh.values())
    contents = {number: draft.message for number, draft in fresh.items()}
    deliveries = _deliveries(core, drafts)
    header = make_header(
        topic=topic.name,
        account=topic.account,
        deliveries=deliveries,
        sequences=_sequences(core, topic, drafts),
        routing_keys=[draft.routing_key for draft in drafts],
    )
    # The topic's log and the trace read it for the topic's life, however short a queue's is.
    longest_ms = max(
        limits.TOPIC_LIFE_SECONDS * 1000, *(delivery.life_ms for delivery in deliveries)
    )
    record = log_item(
        f"{topic.id}#{topic.log_partition(send_id)}",
        send_id,
        contents,
        now_ms,
        now_ms + longest_ms,
        None,
    ) | {"g": {"B": msgspec.msgpack.encode(header)}}
    reminders = deduplication.reminders(topic.id, keys, stored(send_id, contents, now_ms))
    if reminders:
        return deduplication.transact(core, [record], reminders, begun_ms=begun_ms, now_ms=now_ms)
    try:
        core.store.put_if_absent(core.tables.messages, record)
    except ConditionFailed as failed:  # the same key: an earlier try of this publish
        if failed.item is None:
            return Earlier(now_ms, ())
        return Earlier(int(failed.item["t"]["N"]), (failed.item,))
    return None


def _deliveries(core: Core, drafts: Sequence[_Draft]) -> list[Delivery]:
    """For each subscription which of the messages it gets, and for how long."""
    places: dict[str, list[int]] = {}
    subscriptions: dict[str, Subscription] = {}
    for number, draft in enumerate(drafts):
        for subscription in draft.subscriptions:
            places.setdefault(subscription.id, []).append(number)
            subscriptions[subscription.id] = subscription
    deliveries = []
    for subscription_id, numbers in places.items():
        subscription = subscriptions[subscription_id]
        life_ms, delay_ms = limits.TOPIC_LIFE_SECONDS * 1000, 0
        if subscription.protocol == "queue":
            queue = _endpoint(core, subscription)
            if queue is not None:
                life_ms = queue.attributes.message_retention_seconds * 1000
                delay_ms = queue.attributes.delay_seconds * 1000
        deliveries.append(
            Delivery(
                subscription_id=subscription_id,
                places=numbers,
                life_ms=life_ms,
                delay_ms=delay_ms,
            )
        )
    return deliveries


def _endpoint(core: Core, subscription: Subscription) -> Queue | None:
    assert subscription.endpoint is not None
    place = subscription.account, subscription.endpoint
    return endpoint_queue(core, *place, subscription.endpoint_id)


def _sequences(core: Core, topic: Topic, drafts: Sequence[_Draft]) -> list[int] | None:
    """A place in its group's order for each message, where a subscription needs one.

    A message without a group is its own, and needs no counting.
    """
    if not any(each.ordered for draft in drafts for each in draft.subscriptions):
        return None
    groups: dict[int, list[str]] = {}
    for draft in drafts:
        group = draft.message.group
        if group is not None:
            partition = group_partition(group, topic.attributes.partitions)
            held = groups.setdefault(partition, [])
            if group not in held:
                held.append(group)
    taken: dict[str, int] = {}
    for partition, held in groups.items():
        first = take_sequence(core, topic.id, partition, len(held))
        taken |= {group: first + place for place, group in enumerate(held)}
    return [taken.get(draft.message.group or "", 1) for draft in drafts]
