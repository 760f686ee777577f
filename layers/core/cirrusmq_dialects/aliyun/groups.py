"""Consumer groups: a subscription of the group's name, with its own queue.

There a group is made in a console; here at its first consume. Each step is one that may be
repeated, and by several consumers at once:

    dead-letter queue ──> queue ──> subscription
"""

from __future__ import annotations

import contextlib
import hashlib

from cirrusmq.base.errors import AlreadyExists, SubscriptionNotFound
from cirrusmq.base.names import SUBSCRIPTION_NAME, check_name
from cirrusmq.base.shapes import read_values
from cirrusmq.filters.tags import LONG_TAG_CHARACTERS
from cirrusmq.model.queue import Queue, QueueInput
from cirrusmq.model.topic import Subscription, SubscriptionInput, Topic
from cirrusmq.queues.queues import create_queue, get_queue
from cirrusmq.runtime.core import Core
from cirrusmq.storage import counters
from cirrusmq.storage.directory import subscription_key
from cirrusmq.subscriptions.subscriptions import get_subscription
from cirrusmq_dialects.aliyun.errors import invalid

_NAME_CHARACTERS, _KEPT_CHARACTERS, _DIGITS = 64, 40, 20
_RECEIVES = 289
"""Receives before a message is a dead letter: the first one and 288 repetitions."""
_RETENTION_SECONDS = 259_200
_WAIT_SECONDS = {False: 300, True: 60}
"""Until a message that was not acknowledged comes again; in order sooner."""


def find_group(core: Core, topic: Topic, name: str) -> tuple[Subscription, Queue]:
    """Returns a group and its queue. Raises SubscriptionNotFound."""
    check_name("consumer", name, SUBSCRIPTION_NAME)
    subscription = get_subscription(core, topic, name)
    if subscription.protocol != "queue" or subscription.endpoint is None:
        raise invalid(f"Group {name} is a subscription of another protocol.")
    return subscription, get_queue(core, topic.account, subscription.endpoint)


def make_group(core: Core, topic: Topic, name: str, tag: str | None, *, ordered: bool) -> None:
    """Makes a group; a group that another consumer has just made stays as it is."""
    from cirrusmq.subscriptions.management import put_subscription

    queue_name = _queue_name(f"{topic.name}--{name}")
    dead = _make_queue(core, topic.account, _queue_name(f"dlq--{queue_name}"), {})
    queue = _make_queue(
        core,
        topic.account,
        queue_name,
        {
            "ordered": ordered,
            "visibility_timeout_seconds": _WAIT_SECONDS[ordered],
            "receive_wait_seconds": 0,
            "dead_letter": {"queue": dead.name, "max_receives": _RECEIVES},
        },
    )
    given = {"protocol": "queue", "endpoint": queue.name, "filter": filter_of(tag)}
    with contextlib.suppress(AlreadyExists):
        put_subscription(
            core,
            topic,
            name,
            read_values(given, SubscriptionInput),
            tag_characters=LONG_TAG_CHARACTERS,
        )
    # If another environment made it, an older list is cached here.
    core.cache.drop(subscription_key(topic.id, ""))


def choose_tag(core: Core, topic: Topic, group: Subscription, tag: str | None) -> None:
    """Restricts the group to messages of this tag; the last consumer's tag holds."""
    if group.filter == filter_of(tag):
        return
    from cirrusmq.subscriptions.management import change_subscription

    given = read_values({"filter": filter_of(tag)}, SubscriptionInput)
    with contextlib.suppress(SubscriptionNotFound):
        change_subscription(core, topic, group.name, given, tag_characters=LONG_TAG_CHARACTERS)


def filter_of(tag: str | None) -> dict[str, str] | None:
    """Returns the filter of `A||B`, or None if everything is wanted."""
    wanted = (tag or "").strip()
    return {"tag_expression": wanted} if wanted and wanted != "*" else None


def _make_queue(core: Core, account: str, name: str, attributes: dict[str, object]) -> Queue:
    given = {"message_retention_seconds": _RETENTION_SECONDS, **attributes}
    try:
        queue, created = create_queue(core, account, name, read_values(given, QueueInput))
    except AlreadyExists:  # its owner changed it since
        return get_queue(core, account, name)
    if created:
        counters.note_use(core, queue.id)
    return queue


def _queue_name(name: str) -> str:
    if len(name) <= _NAME_CHARACTERS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[:_KEPT_CHARACTERS]}--{digest}"
