"""The subscriptions that get a publish: their messages, for how long, in order."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit import queues, topics
from tests.unit.parcels import NOW_MS

from cirrusmq.model.message import Message
from cirrusmq.model.queue import Queue, QueueAttributes
from cirrusmq.model.topic import Subscription
from cirrusmq.publishing.recipients import Draft, any_ordered, deliveries
from cirrusmq.publishing.records import Delivery

DAY_MS = 86_400_000


def subscription(subscription_id: str, **given: Any) -> Subscription:
    return topics.subscription(name=subscription_id, id=subscription_id, **given)


def queue(**attributes: Any) -> Queue:
    return queues.queue(id="queue", attributes=QueueAttributes(**attributes))


def draft(*subscriptions: Subscription) -> Draft:
    return Draft(
        deduplication_id=None,
        message=Message(body="x"),
        routing_key="",
        subscriptions=subscriptions,
    )


PULL = subscription("pull")
INTO = subscription("into", protocol="queue", endpoint="orders", endpoint_id="queue")


def test_each_subscription_gets_its_matching_messages() -> None:
    drafts = [draft(PULL), draft(INTO, PULL), draft(PULL)]
    assert deliveries(drafts, {}) == [
        Delivery(subscription_id="pull", indexes=[0, 1, 2], life_ms=DAY_MS, delay_ms=0),
        Delivery(subscription_id="into", indexes=[1], life_ms=DAY_MS, delay_ms=0),
    ]


def test_in_a_queue_a_message_lives_and_waits_as_the_queue_says() -> None:
    given = queue(message_retention_seconds=60, delay_seconds=5)
    assert deliveries([draft(INTO)], {"into": given}) == [
        Delivery(subscription_id="into", indexes=[0], life_ms=60_000, delay_ms=5_000)
    ]


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        (PULL, False),
        (subscription("pull", ordered=True), True),
        (subscription("http", protocol="http"), False),
        (subscription("http", protocol="http", retry={"policy": "backoff"}), True),
        (INTO, True),
        (subscription("gone", protocol="queue", endpoint="gone"), False),
    ],
)
def test_one_reader_with_a_promised_order_is_enough(given: Subscription, ordered: bool) -> None:
    drafts = [draft(), draft(PULL), draft(given)]
    assert any_ordered(drafts, {"into": queue(ordered=True)}, NOW_MS) is ordered
    assert not any_ordered(drafts, {"into": queue()}, NOW_MS - 1)


def test_a_queue_without_an_order_promises_none() -> None:
    assert not any_ordered([draft(INTO)], {"into": queue()}, NOW_MS)


def test_a_subscription_since_the_attempt_began_does_not_count() -> None:
    late = subscription("pull", ordered=True, created_ms=NOW_MS + 1)
    assert not any_ordered([draft(late)], {}, NOW_MS)
