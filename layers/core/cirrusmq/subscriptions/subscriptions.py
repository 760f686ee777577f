"""Creating, changing, finding and deleting subscriptions of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import (
    AlreadyExists,
    InvalidParameter,
    LimitExceeded,
    QueueNotFound,
    SubscriptionNotFound,
    TopicNotFound,
)
from cirrusmq.base.names import check_name, new_id
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Protocol, Subscription, SubscriptionInput, Topic, checked, over
from cirrusmq.queues.queues import RESOURCE_SECONDS, Resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.storage import directory
from cirrusmq.storage.directory import Document, Use
from cirrusmq.storage.directory_keys import (
    queue_place,
    resource_place,
    subscription_place,
    subscriptions_count_place,
    topic_place,
)
from cirrusmq.storage.optimistic_locking import contended, tries
from cirrusmq.storage.pages import read_page
from cirrusmq.subscriptions import confirmations, delivery_state
from cirrusmq.subscriptions.topics import find_topic, remove_topic
from cirrusmq.webhooks.urls import check_endpoint


def cached_subscriptions(core: Core, topic_id: str) -> list[Subscription]:
    """The subscriptions of a topic, as the cache has them."""
    pk, prefix = subscription_place(topic_id, "")
    return core.cache.get(
        (pk, prefix), lambda: list(directory.read_list(core, pk, prefix, Subscription))
    )


def subscriptions_with(core: Core, topic_id: str, wanted: Iterable[str]) -> list[Subscription]:
    """The subscriptions of a topic, surely with those of `wanted` (ids) that are not deleted."""
    pk, prefix = subscription_place(topic_id, "")
    known = cached_subscriptions(core, topic_id)
    unknown = set(wanted) - {each.id for each in known}

    def is_gone(subscription_id: str) -> bool:
        now = directory.read_list(core, pk, prefix, Subscription)
        return all(each.id != subscription_id for each in now)

    # An id never comes back, so that what is gone needs asking no more than once a second.
    if all(core.cache.get(("gone", each), partial(is_gone, each)) for each in unknown):
        return known
    core.cache.drop((pk, prefix))
    return cached_subscriptions(core, topic_id)


def page_of_subscriptions(
    core: Core, topic: Topic, limit: int, cursor: str | None
) -> tuple[list[Subscription], str | None]:
    """A page of the topic's subscriptions, by name."""
    place = subscription_place(topic.id, "")
    return read_page(core, ("subscriptions", topic.id), place, limit, cursor, Subscription)


def list_subscriptions(core: Core, topic: Topic) -> list[Subscription]:
    """The subscriptions of a topic, by name, as the directory has them now."""
    pk, prefix = subscription_place(topic.id, "")
    return list(directory.read_list(core, pk, prefix, Subscription))


def get_subscription(core: Core, topic: Topic, name: str) -> Subscription:
    """The subscription of exactly this name, as the cache has it; SubscriptionNotFound."""
    check_name("subscription", name, limits.TOPIC_NAME)
    for subscription in cached_subscriptions(core, topic.id):
        if subscription.name == name:
            return subscription
    raise SubscriptionNotFound


def put_subscription(
    core: Core, topic: Topic, name: str, given: SubscriptionInput
) -> tuple[Subscription, bool]:
    """Create a subscription, or find it with these attributes; answers (it, created).

    What is published after the answer is later than the subscription by every clock: a publish
    that began before it is not put where those lie whose order is kept.
    """
    check_name("subscription", name, limits.TOPIC_NAME)
    wanted = _read(core, topic, name, given)
    place = subscription_place(topic.id, name)
    for _ in tries(core):
        found = directory.read(core, place, Subscription)
        if found is not None:
            _check_same(found.value, wanted)
            core.wait_until(found.value.created_ms + core.skew_ms)
            return found.value, False
        now_ms = core.now_ms()
        subscription = msgspec.structs.replace(
            wanted, id=new_id(core.random), created_ms=now_ms, modified_ms=now_ms
        )
        subscription, token = confirmations.begin(core, subscription)
        try:
            core.store.transact(_creation(core, topic, subscription))
        except TransactionRefused as refused:
            _explain(refused)
            continue
        core.cache.turn_over(subscription_place(topic.id, ""))
        core.wait_until(subscription.created_ms + core.skew_ms)
        if token is not None:
            confirmations.ask(core, subscription, token)
        return subscription, True
    raise contended()


def change_subscription(
    core: Core, topic: Topic, name: str, given: SubscriptionInput
) -> Subscription:
    """Change some attributes, for all members of a group at once."""
    check_name("subscription", name, limits.TOPIC_NAME)

    def change(before: Subscription) -> Subscription:
        after = checked(over(before, given), topic.attributes.filter)
        return msgspec.structs.replace(after, modified_ms=core.now_ms())

    return update_subscription(core, topic.id, name, change)


def update_subscription(
    core: Core, topic_id: str, name: str, change: Callable[[Subscription], Subscription]
) -> Subscription:
    """Write what `change` makes of a subscription; in force everywhere when this returns."""
    place = subscription_place(topic_id, name)
    for _ in tries(core):
        found = directory.read(core, place, Subscription)
        if found is None or found.value.name != name:
            raise SubscriptionNotFound
        before, after = found.value, change(found.value)
        if after == before:
            return before
        writes = [directory.put_over(core, place, after, found.version)]
        if before.dead_letter_queue != after.dead_letter_queue:
            writes += _release(core, before.account, before.dead_letter_queue, before.id)
            writes += _use(core, _dead_letter_target(core, after), "dead_letters_of", after.id)
        try:
            core.store.transact(writes)
        except TransactionRefused:
            continue
        core.cache.turn_over(subscription_place(topic_id, ""))
        return after
    raise contended()


def delete_subscription(core: Core, topic: Topic, name: str) -> None:
    """Delete a subscription; what it had not taken is gone with it."""
    check_name("subscription", name, limits.TOPIC_NAME)
    for _ in tries(core):
        found = directory.read(core, subscription_place(topic.id, name), Subscription)
        if found is None or found.value.name != name:
            raise SubscriptionNotFound
        if _delete(core, found):
            core.cache.turn_over(subscription_place(topic.id, ""))
            return
    raise contended()


def delete_topic(core: Core, account: str, name: str) -> None:
    """Delete a topic and its subscriptions, these first: a repeat finishes what stopped."""
    for _ in tries(core):
        found = find_topic(core, account, name)
        for subscription in list_subscriptions(core, found.value):
            stored = directory.read(
                core, subscription_place(found.value.id, subscription.name), Subscription
            )
            if stored is not None:
                _delete(core, stored)
        core.cache.turn_over(subscription_place(found.value.id, ""))
        if remove_topic(core, found):
            return
    raise contended()


def _read(core: Core, topic: Topic, name: str, given: SubscriptionInput) -> Subscription:
    """The subscription that a PUT asks for, without its id."""
    if isinstance(given.protocol, msgspec.UnsetType):
        raise InvalidParameter("protocol", "must be queue, http or pull")
    endpoint = None if isinstance(given.endpoint, msgspec.UnsetType) else given.endpoint
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
        mode="clustering" if isinstance(given.mode, msgspec.UnsetType) else given.mode,
        ordered=False if isinstance(given.ordered, msgspec.UnsetType) else given.ordered,
        log_partitions=topic.attributes.partitions,
    )
    if given.protocol == "pull":
        if endpoint is not None:
            raise InvalidParameter("endpoint", "a pull subscription has none")
    elif endpoint is None:
        raise InvalidParameter("endpoint", "is needed: a queue of the account, or a URL")
    wanted = checked(over(plain, given), topic.attributes.filter)
    if given.protocol == "http":
        assert endpoint is not None
        check_endpoint(endpoint, http_allowed=core.settings.http_endpoints)
    elif given.protocol == "queue":
        assert endpoint is not None
        check_name("endpoint", endpoint)
        queue = _find_queue(core, topic.account, endpoint)
        wanted = msgspec.structs.replace(wanted, endpoint_id=queue.id)
    return wanted


def partitions_of(protocol: Protocol, topic: Topic) -> int:
    """How many partitions a new subscription has: a group's are those of the topic's log."""
    if protocol != "http":
        return topic.attributes.partitions
    usual, wide = limits.PUSH_PARTITIONS
    return usual if topic.attributes.partitions <= usual else wide


def _check_same(existing: Subscription, wanted: Subscription) -> None:
    before, asked = existing.attributes(), wanted.attributes()
    made_for_it = existing.dead_letter_queue == delivery_state.own_dead_letter_queue(existing.id)
    if made_for_it and asked["dead_letter_queue"] is None:
        before["dead_letter_queue"] = None
    if existing.policy == wanted.policy:  # a default that is written out is still the default
        before["retry"] = asked["retry"]
    if existing.name != wanted.name or before != asked:
        raise AlreadyExists(f"subscription {existing.name} exists with other attributes")


def _creation(core: Core, topic: Topic, subscription: Subscription) -> list[dict[str, Any]]:
    """The writes of a new subscription; `_explain` knows their order."""
    below = "attribute_not_exists(#count) OR #count < :bound"
    resource = _resource(subscription)
    writes = [
        directory.check(core, topic_place(topic.account, topic.name), "attribute_exists(pk)"),
        directory.change_count(
            core, subscriptions_count_place(topic.id), 1, below, limits.SUBSCRIPTIONS_PER_TOPIC
        ),
        directory.put_new(core, subscription_place(topic.id, subscription.name), subscription),
        directory.put_new(core, resource_place(subscription.id), resource),
    ]
    if subscription.protocol == "queue":
        assert subscription.endpoint is not None
        endpoint = _find_queue(core, topic.account, subscription.endpoint)
        writes += _use(core, endpoint, "endpoint_of", subscription.id)
    target = _dead_letter_target(core, subscription)
    writes += _use(core, target, "dead_letters_of", subscription.id)
    if subscription.protocol == "http":
        writes.append(delivery_state.creation(core, subscription))
    return writes


def _resource(subscription: Subscription) -> Resource:
    name = f"{subscription.topic}/{subscription.name}"
    pushed = subscription.protocol == "http"
    return Resource(subscription.account, "subscription", name, pushed)


def _explain(refused: TransactionRefused) -> None:
    if 0 in refused.failed:
        raise TopicNotFound from refused
    if 1 in refused.failed:
        most = limits.SUBSCRIPTIONS_PER_TOPIC
        raise LimitExceeded(f"a topic has at most {most} subscriptions") from refused


def _delete(core: Core, found: Document[Subscription]) -> bool:
    subscription = found.value
    resource = _resource(subscription)
    writes = [
        directory.delete_version(
            core, subscription_place(subscription.topic_id, subscription.name), found.version
        ),
        directory.change_count(core, subscriptions_count_place(subscription.topic_id), -1),
        directory.put(
            core,
            resource_place(subscription.id),
            resource,
            expires_at=core.now_ms() // 1000 + RESOURCE_SECONDS,
        ),
    ]
    account, queue = subscription.account, subscription.dead_letter_queue
    writes += _release(core, account, queue, subscription.id)
    if subscription.endpoint_id is not None:
        endpoint_id = subscription.endpoint_id
        writes.append(
            directory.change_users(core, endpoint_id, "endpoint_of", "DELETE", subscription.id)
        )
    if subscription.protocol == "http":
        writes.append(delivery_state.removal(core, subscription))
    try:
        core.store.transact(writes)
    except TransactionRefused:
        return False
    return True


def _find_queue(core: Core, account: str, name: str) -> Queue:
    found = directory.read(core, queue_place(account, name), Queue)
    if found is None or found.value.name != name:
        raise QueueNotFound(f"account {account} has no queue {name}")
    return found.value


def _dead_letter_target(core: Core, subscription: Subscription) -> Queue | None:
    name = subscription.dead_letter_queue
    if name is None:
        return None
    if subscription.protocol == "queue" and name == subscription.endpoint:
        raise InvalidParameter("dead_letter_queue", "must be another queue than the endpoint")
    queue = _find_queue(core, subscription.account, name)
    if queue.attributes.dead_letter is not None:
        raise InvalidParameter("dead_letter_queue", "must be a queue without dead_letter")
    if queue.attributes.ordered and not subscription.ordered:
        raise InvalidParameter("dead_letter_queue", "must not be ordered")
    return queue


def _use(core: Core, queue: Queue | None, use: Use, subscription_id: str) -> list[dict[str, Any]]:
    """Keep a queue from being deleted while the subscription refers to it."""
    if queue is None:
        return []
    condition = "attribute_exists(pk)"
    if use == "dead_letters_of":  # it may have got a dead-letter queue since it was read
        condition += " AND attribute_not_exists(dead_letter_id)"
    return [
        directory.check(core, queue_place(queue.account, queue.name), condition),
        directory.change_users(core, queue.id, use, "ADD", subscription_id),
    ]


def _release(
    core: Core, account: str, name: str | None, subscription_id: str
) -> list[dict[str, Any]]:
    if name is None:
        return []
    found = directory.read(core, queue_place(account, name), Queue)
    if found is None:
        return []
    queue_id = found.value.id
    return [directory.change_users(core, queue_id, "dead_letters_of", "DELETE", subscription_id)]
