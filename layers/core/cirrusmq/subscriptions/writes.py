"""The writes of transactions that create, change and delete a subscription.

Queues that a subscription refers to, as its endpoint or for its dead letters, know their users: a
queue that has any cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq.base import limits
from cirrusmq.base.errors import (
    CirrusMQError,
    InvalidParameter,
    LimitExceeded,
    TopicNotFound,
)
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.queues.queues import find_queue
from cirrusmq.queues.resources import Resource, expire_resource, put_resource
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import (
    Document,
    queue_key,
    subscription_key,
    subscriptions_count_key,
    topic_key,
)
from cirrusmq.storage.optimistic_locking import DirectoryChange, change
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.subscriptions import find_subscription


def creation(core: Core, topic: Topic, subscription: Subscription) -> list[dict[str, Any]]:
    """Returns the writes of a new subscription; `creation_refusals` knows their order."""
    limit = limits.SUBSCRIPTIONS_PER_TOPIC
    writes = [
        directory_writes.check(core, topic_key(topic.account, topic.name), "attribute_exists(pk)"),
        directory_writes.count_up(core, subscriptions_count_key(topic.id), limit),
        directory_writes.put_new(core, subscription_key(topic.id, subscription.name), subscription),
        put_resource(core, subscription.id, resource(subscription)),
    ]
    if subscription.protocol == "queue":
        assert subscription.endpoint is not None
        endpoint = find_queue(core, topic.account, subscription.endpoint).value
        writes += _use(core, endpoint, "endpoint_of", subscription.id)
    writes += _use_dead_letter_queue(core, subscription)
    if subscription.protocol == "http":
        writes.append(delivery_items.creation(core, subscription))
    return writes


def creation_refusals() -> dict[int, CirrusMQError]:
    """Returns number of a write of `creation` -> the error if its condition does not hold."""
    limit = limits.SUBSCRIPTIONS_PER_TOPIC
    return {0: TopicNotFound(), 1: LimitExceeded(f"a topic has at most {limit} subscriptions")}


def update(core: Core, found: Document[Subscription], after: Subscription) -> list[dict[str, Any]]:
    """Returns the writes of a subscription that is changed."""
    before = found.value
    key = subscription_key(before.topic_id, before.name)
    writes = [directory_writes.put_over(core, key, after, found)]
    if after.protocol == "http" and (before.paused, before.rate) != (after.paused, after.rate):
        writes.append(delivery_items.bounds(core, after))
    if before.dead_letter_queue != after.dead_letter_queue:
        writes += _release_dead_letter_queue(core, before)
        writes += _use_dead_letter_queue(core, after)
    return writes


def update_subscription(
    core: Core, topic_id: str, name: str, changed: Callable[[Subscription], Subscription]
) -> Subscription:
    """Writes the result of `changed` on a subscription; in force everywhere when this returns."""

    def plan() -> DirectoryChange[Subscription]:
        found = find_subscription(core, topic_id, name)
        after = changed(found.value)
        if after == found.value:
            return DirectoryChange(result=after)
        return DirectoryChange(
            result=after,
            writes=update(core, found, after),
            keys=[subscription_key(topic_id, "")],
        )

    return change(core, plan)


def removal(core: Core, found: Document[Subscription]) -> list[dict[str, Any]]:
    """Returns the writes that delete a subscription."""
    subscription = found.value
    topic_id, subscription_id = subscription.topic_id, subscription.id
    writes = [
        directory_writes.delete_version(
            core, subscription_key(topic_id, subscription.name), found.version
        ),
        directory_writes.change_count(core, subscriptions_count_key(topic_id), -1),
        *(
            expire_resource(core, source_id, resource(subscription))
            for source_id in sorted(subscription.source_ids)
        ),
        *_release_dead_letter_queue(core, subscription),
    ]
    if subscription.endpoint_id is not None:
        writes.append(
            directory_writes.change_users(
                core, subscription.endpoint_id, "endpoint_of", "DELETE", subscription_id
            )
        )
    if subscription.protocol == "http":
        writes.append(delivery_items.removal(core, subscription))
    return writes


def resource(subscription: Subscription) -> Resource:
    """Returns the entry of a subscription for the ids of its sources."""
    name = f"{subscription.topic}/{subscription.name}"
    pushed = subscription.protocol == "http"
    return Resource(subscription.account, "subscription", name, pushed)


def _use_dead_letter_queue(core: Core, subscription: Subscription) -> list[dict[str, Any]]:
    name = subscription.dead_letter_queue
    if name is None:
        return []
    if subscription.protocol == "queue" and name == subscription.endpoint:
        raise InvalidParameter("dead_letter_queue", "must be another queue than the endpoint")
    queue = find_queue(core, subscription.account, name).value
    if queue.attributes.dead_letter is not None:
        raise InvalidParameter(
            "dead_letter_queue", "must be a queue that has no dead-letter queue itself"
        )
    if queue.attributes.ordered and not subscription.ordered:
        raise InvalidParameter("dead_letter_queue", "must not be ordered")
    return _use(core, queue, "dead_letters_of", subscription.id)


def _use(
    core: Core, queue: Queue, use: directory_writes.Use, subscription_id: str
) -> list[dict[str, Any]]:
    """Returns writes that keep a queue from being deleted while the subscription refers to it."""
    condition = "attribute_exists(pk)"
    if use == "dead_letters_of":  # it may have got a dead-letter queue since it was read
        condition += " AND attribute_not_exists(dead_letter_id)"
    return [
        directory_writes.check(core, queue_key(queue.account, queue.name), condition),
        directory_writes.change_users(core, queue.id, use, "ADD", subscription_id),
    ]


def _release_dead_letter_queue(core: Core, subscription: Subscription) -> list[dict[str, Any]]:
    name = subscription.dead_letter_queue
    found = (
        None if name is None else directory.read(core, queue_key(subscription.account, name), Queue)
    )
    if found is None:
        return []
    return [
        directory_writes.change_users(
            core, found.value.id, "dead_letters_of", "DELETE", subscription.id
        )
    ]
