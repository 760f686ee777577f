"""Finding the subscriptions of topics. Every receive of one and every publish does it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from cirrusmq.base.errors import SubscriptionNotFound
from cirrusmq.base.names import SUBSCRIPTION_NAME, check_name
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory import Document, subscription_key
from cirrusmq.storage.pages import read_page


def cached_subscriptions(core: Core, topic_id: str) -> list[Subscription]:
    """Returns the subscriptions of a topic, as the cache has them."""
    pk, prefix = subscription_key(topic_id, "")
    return core.cache.get(
        (pk, prefix), lambda: list(directory.read_list(core, pk, prefix, Subscription))
    )


def subscriptions_with(core: Core, topic_id: str, wanted: Iterable[str]) -> list[Subscription]:
    """Returns a topic's subscriptions, surely with all ids in `wanted` that are not deleted."""
    pk, prefix = subscription_key(topic_id, "")
    known = cached_subscriptions(core, topic_id)
    unknown = set(wanted) - {each.id for each in known}

    def is_gone(subscription_id: str) -> bool:
        now = directory.read_list(core, pk, prefix, Subscription)
        return all(each.id != subscription_id for each in now)

    # An id is never used again, so a deleted one is read at most once a second.
    if all(core.cache.get(("gone", each), partial(is_gone, each)) for each in unknown):
        return known
    core.cache.drop((pk, prefix))
    return cached_subscriptions(core, topic_id)


def page_of_subscriptions(
    core: Core, topic: Topic, limit: int, cursor: str | None
) -> tuple[list[Subscription], str | None]:
    """Returns a page of the topic's subscriptions, by name."""
    key = subscription_key(topic.id, "")
    return read_page(core, ("subscriptions", topic.id), key, limit, cursor, Subscription)


def list_subscriptions(core: Core, topic: Topic) -> list[Subscription]:
    """Returns the subscriptions of a topic, by name, as the directory has them now."""
    pk, prefix = subscription_key(topic.id, "")
    return list(directory.read_list(core, pk, prefix, Subscription))


def find_subscription(core: Core, topic_id: str, name: str) -> Document[Subscription]:
    """Returns the subscription of exactly this name, read now. Raises SubscriptionNotFound."""
    found = directory.read(core, subscription_key(topic_id, name), Subscription)
    if found is None or found.value.name != name:
        raise SubscriptionNotFound
    return found


def get_subscription(core: Core, topic: Topic, name: str) -> Subscription:
    """Returns the subscription of exactly this name, cached. Raises SubscriptionNotFound."""
    check_name("subscription", name, SUBSCRIPTION_NAME)
    for subscription in cached_subscriptions(core, topic.id):
        if subscription.name == name:
            return subscription
    raise SubscriptionNotFound
