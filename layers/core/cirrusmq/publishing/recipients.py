"""The subscriptions that get a publish, and their terms: decided when it is published.

A message that is published for later has a time, and recipients that can wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.timestamps import parse_moment
from cirrusmq.filters.filterable import Filterable
from cirrusmq.model.envelope import Described
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.publishing.records import Delivery
from cirrusmq.queues.queues import endpoint_queue
from cirrusmq.runtime.core import Core
from cirrusmq.sending.making import group_partition
from cirrusmq.storage.sequences import take_sequence
from cirrusmq.subscriptions.subscriptions import cached_subscriptions


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A checked message, and the subscriptions that get it."""

    deduplication_id: str | None
    message: Described
    """With its body, unless the body is in an object."""
    routing_key: str
    subscriptions: tuple[Subscription, ...]
    delay_ms: int = 0
    """Milliseconds after its publishing at which it is to be delivered; 0: not given."""
    deliver_at_ms: int = 0
    """The time when it is to be delivered; 0: not given."""

    def due_ms(self, sent_ms: int) -> int:
        """When it is to be delivered; 0: at once, or by its queue's delay."""
        return sent_ms + self.delay_ms if self.delay_ms else self.deliver_at_ms


def confirmed_subscriptions(core: Core, topic: Topic) -> list[Subscription]:
    """Returns the subscriptions that may get messages, as the cache has them."""
    return [each for each in cached_subscriptions(core, topic.id) if each.confirmed]


def make_draft(
    topic: Topic,
    subscriptions: Iterable[Subscription],
    message: Described,
    routing_key: str,
    deduplication_id: str | None,
    body: str | bytes = "",
) -> Draft:
    """Returns a checked message, with the subscriptions whose filters select it.

    body: the message's body, if one of the subscriptions `reads_bodies`.
    """
    kind = topic.attributes.filter
    tags, attributes = message.tags, message.attributes
    return Draft(
        deduplication_id=deduplication_id,
        message=message,
        routing_key=routing_key,
        subscriptions=tuple(
            subscription
            for subscription in subscriptions
            if subscription.selection(kind).matches(
                Filterable(tags, routing_key, attributes, subscription.body_for(attributes, body))
            )
        ),
    )


def goes_to_functions_alone(core: Core, draft: Draft) -> bool:
    """Returns True if all recipients hand the message to a function; False if nobody gets it."""
    return bool(draft.subscriptions) and all(
        _hands_over(core, subscription) for subscription in draft.subscriptions
    )


def _hands_over(core: Core, subscription: Subscription) -> bool:
    if subscription.protocol != "queue":
        return subscription.invoke is not None
    queue = endpoint(core, subscription)
    return queue is not None and queue.attributes.invoke is not None


def endpoint(core: Core, subscription: Subscription) -> Queue | None:
    """Returns the queue that the subscription delivers to, or None if it is gone."""
    assert subscription.endpoint is not None
    key = subscription.account, subscription.endpoint
    return endpoint_queue(core, *key, subscription.endpoint_id)


def endpoints(core: Core, drafts: Iterable[Draft]) -> dict[str, Queue]:
    """Returns the queues to deliver to, by the ids of their subscriptions, without deleted ones."""
    queues = {}
    for subscription in _subscriptions(drafts).values():
        if subscription.protocol == "queue":
            queue = endpoint(core, subscription)
            if queue is not None:
                queues[subscription.id] = queue
    return queues


def any_ordered(drafts: Iterable[Draft], queues: Mapping[str, Queue], begun_ms: int) -> bool:
    """Returns True if a consumer that gets one of the messages is promised an order.

    A consumer that subscribed since the attempt began must not change the id of a repetition.
    """
    return any(
        subscription.ordered
        or subscription.pushed_in_order
        or (subscription.id in queues and queues[subscription.id].attributes.ordered)
        for subscription in _subscriptions(drafts).values()
        if subscription.created_ms <= begun_ms
    )


def deliveries(drafts: Sequence[Draft], queues: Mapping[str, Queue]) -> list[Delivery]:
    """For each subscription which of the messages it gets, and for how long."""
    places: dict[str, list[int]] = {}
    for index, draft in enumerate(drafts):
        for subscription in draft.subscriptions:
            places.setdefault(subscription.id, []).append(index)
    return [_delivery(reader, held, queues.get(reader)) for reader, held in places.items()]


def sequences(core: Core, topic: Topic, drafts: Sequence[Draft]) -> list[int] | None:
    """A place in its group's order for each message, if a subscription needs one.

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
        taken |= {group: first + index for index, group in enumerate(held)}
    return [taken.get(draft.message.group or "", 1) for draft in drafts]


def _subscriptions(drafts: Iterable[Draft]) -> dict[str, Subscription]:
    return {each.id: each for draft in drafts for each in draft.subscriptions}


def _delivery(subscription_id: str, indexes: list[int], queue: Queue | None) -> Delivery:
    life_ms, delay_ms = limits.TOPIC_LIFE_SECONDS * 1000, 0
    if queue is not None:
        life_ms = queue.attributes.message_retention_seconds * 1000
        delay_ms = queue.attributes.delay_seconds * 1000
    return Delivery(
        subscription_id=subscription_id, indexes=indexes, life_ms=life_ms, delay_ms=delay_ms
    )


class WantedDelay(NamedTuple):
    """When a message is to be delivered, as its publisher says: one of the two."""

    delay_seconds: int | UnsetType
    deliver_at: str | int | float | UnsetType

    @property
    def parameter(self) -> str:
        """The name of the given parameter; `deliver_at` only if `delay_seconds` is not given."""
        return "deliver_at" if isinstance(self.delay_seconds, UnsetType) else "delay_seconds"


def with_delay(core: Core, draft: Draft, due: WantedDelay | None, where: str) -> Draft:
    """The draft with its due time, if one is given that is not over.

    Raises InvalidParameter if a subscription that gets it cannot have it then.
    """
    if due is None:
        return draft
    now_ms, life_ms = core.now_ms(), limits.TOPIC_LIFE_SECONDS * 1_000
    name = f"{where}.{due.parameter}"
    if isinstance(due.deliver_at, UnsetType):
        assert not isinstance(due.delay_seconds, UnsetType)
        due_ms = now_ms + due.delay_seconds * 1_000
    elif isinstance(due.delay_seconds, UnsetType):
        due_ms = parse_moment(name, due.deliver_at)
    else:
        raise InvalidParameter(name, "and deliver_at cannot be given together")
    if due_ms <= now_ms:
        return draft
    if due_ms >= now_ms + life_ms:
        raise InvalidParameter(name, f"must be less than {life_ms // 1_000:,} seconds from now")
    for each in draft.subscriptions:
        _check_reader(core, each, due_ms - now_ms, name)
    if isinstance(due.deliver_at, UnsetType):
        return replace(draft, delay_ms=due_ms - now_ms)
    return replace(draft, deliver_at_ms=due_ms)


def _check_reader(core: Core, subscription: Subscription, delay_ms: int, name: str) -> None:
    queue = endpoint(core, subscription) if subscription.protocol == "queue" else None
    in_order = subscription.ordered or subscription.pushed_in_order
    if in_order or (queue is not None and queue.attributes.ordered):
        raise InvalidParameter(
            name,
            f"is not possible: subscription {subscription.name} gets its messages in order, and "
            "later ones would wait",
        )
    retention_seconds = queue.attributes.message_retention_seconds if queue else None
    if retention_seconds and delay_ms >= retention_seconds * 1_000:
        raise InvalidParameter(
            name,
            f"must be below the retention of subscription {subscription.name}'s queue, "
            f"{retention_seconds:,} seconds",
        )
