"""Deleting a queue that topics deliver to.

SNS keeps a subscription whose queue is deleted, and delivers to nobody. Here a subscribed queue is
not deleted, so that no message is lost. But programs of SNS end their subscriptions after their
queues, or never: a subscription that SNS's calls made ends with its queue.

    DeleteQueue    ends s1 ── stops             the queue is there; a repeat ends the others
    DeleteQueue    ends s1, s2 ───────── refused: s3 uses the queue
    Subscribe                      makes s3
"""

from __future__ import annotations

import contextlib

from cirrusmq.base.errors import SubscriptionNotFound, TopicNotFound
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.queues.queues import find_queue, users_of
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.management import delete_subscription
from cirrusmq.subscriptions.subscriptions import find_subscription
from cirrusmq.subscriptions.topics import find_topic

_REDRIVE = "RedrivePolicy"


def end_subscriptions(core: Core, account: str, name: str) -> None:
    """Ends a queue's subscriptions, or none if the queue has another use: it cannot be deleted.

    A subscription with a `RedrivePolicy` is such a use: in SNS its messages would be dead letters.
    """
    queue = find_queue(core, account, name).value
    if users_of(core, queue, "dead_letters_of"):
        return
    found: list[tuple[Topic, Subscription]] = []
    for resource in users_of(core, queue, "endpoint_of"):
        topic_name, _, own_name = resource.name.partition("/")
        with contextlib.suppress(SubscriptionNotFound, TopicNotFound):
            topic = find_topic(core, resource.account, topic_name).value
            found.append((topic, find_subscription(core, topic.id, own_name).value))
    if all(each.made_by_sns and _REDRIVE not in each.sdk for _, each in found):
        for topic, subscription in found:
            with contextlib.suppress(SubscriptionNotFound):
                delete_subscription(core, topic, subscription.name)
