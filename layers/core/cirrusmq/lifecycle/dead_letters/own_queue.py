"""The dead-letter queue that is made for a subscription."""

from __future__ import annotations

import contextlib

from msgspec.structs import replace

from cirrusmq.base.errors import AlreadyExists
from cirrusmq.model.queue import Queue, QueueInput
from cirrusmq.model.topic import Subscription
from cirrusmq.queues.queues import create_queue, get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.writes import update_subscription


def make_dead_letter_queue(core: Core, topic_id: str, subscription_name: str, name: str) -> Queue:
    """Makes the queue for a subscription's first dead letter, and sets it in the subscription.

    Both steps may have been done before: by another worker, or by one that crashed in between.
    """
    subscription = update_subscription(
        core,
        topic_id,
        subscription_name,
        lambda before: _with_dead_letter_queue(core, before, name),
    )
    return get_queue(core, subscription.account, subscription.dead_letter_queue or name)


def note_error(core: Core, topic_id: str, subscription_name: str, error: str) -> None:
    """Writes to the subscription why its queue cannot be made; its messages stay receivable."""

    def update(before: Subscription) -> Subscription:
        named = before.dead_letter_queue is not None  # another worker has made it
        return before if named else replace(before, dead_letter_error=error)

    update_subscription(core, topic_id, subscription_name, update)


def _with_dead_letter_queue(core: Core, before: Subscription, name: str) -> Subscription:
    if before.dead_letter_queue is not None:
        return before
    with contextlib.suppress(AlreadyExists):  # made by one that crashed here, changed since
        create_queue(core, before.account, name, QueueInput(ordered=False))
    return replace(before, dead_letter_queue=name, dead_letter_error=None)
