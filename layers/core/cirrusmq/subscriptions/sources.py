"""The source of a subscription."""

from __future__ import annotations

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.model.queue import DeadLetter
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Subscription, Topic, own_dead_letter_queue
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.queues.resources import find_resource
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory
from cirrusmq.storage.directory_keys import topic_place
from cirrusmq.subscriptions.subscriptions import cached_subscriptions


def subscription_source(subscription: Subscription) -> Source:
    """The source of a pull or http subscription. A topic's messages are not rewound or purged."""
    policy = subscription.policy
    named = subscription.dead_letter_queue
    unnamed = named is None and policy is not None and policy.ends_in_dead_letter
    if unnamed:
        named = own_dead_letter_queue(subscription.id)
    return Source(
        id=subscription.id,
        account=subscription.account,
        queue_name=subscription.topic,
        receiver=None,
        subscription=subscription.name,
        log_id=subscription.topic_id,
        partitions=subscription.partitions,
        ordered=subscription.ordered and subscription.protocol == "pull",
        visibility_timeout_seconds=limits.VISIBILITY_SECONDS_DEFAULT,
        receive_wait_seconds=limits.RECEIVE_WAIT_SECONDS_DEFAULT,
        retry=policy if subscription.protocol == "pull" else None,
        dead_letter=DeadLetter(queue=named) if named else None,
        makes_dead_letter_queue=unnamed,
        rewind_seconds=0,
        purged_ms=0,
        rewind_floor_ms=0,
        longest_retention_seconds=limits.TOPIC_LIFE_SECONDS,
        invoke=subscription.invoke,
        paused=subscription.paused,
    )


def source_of_resource(core: Core, resource_id: str) -> Source | None:
    """The source with this id; None for URLs, topics, and deleted resources."""
    resource = find_resource(core, resource_id)
    if resource is None or resource.pushed:
        return None
    name, _, subscription_name = resource.name.partition("/")
    if resource.kind in ("queue", "receiver"):
        try:
            return source_with_id(core, get_queue(core, resource.account, name), resource_id)
        except CirrusMQError:
            return None  # deleted meanwhile
    topic = directory.read_cached(core, topic_place(resource.account, name), Topic)
    for subscription in cached_subscriptions(core, topic.id) if topic else ():
        if (subscription.id, subscription.name) == (resource_id, subscription_name):
            return subscription_source(subscription)
    return None
