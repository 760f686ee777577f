"""Topics and subscriptions with everything that a test does not care for filled in."""

from __future__ import annotations

from typing import Any

from tests.unit.parcels import NOW_MS

from cirrusmq.model.topic import Subscription, Topic, TopicAttributes


def subscription(protocol: str = "pull", **given: Any) -> Subscription:
    fields: dict[str, Any] = {
        "account": "alice",
        "topic": "news",
        "topic_id": "0123456789ab",
        "name": "readers",
        "id": "ba9876543210",
        "created_ms": NOW_MS,
        "modified_ms": NOW_MS + 1,
        "protocol": protocol,
        "partitions": 8,
    }
    return Subscription(**{**fields, **given})


def topic(**given: Any) -> Topic:
    return Topic(
        account="alice",
        name="news",
        id="0123456789ab",
        attributes=TopicAttributes(**given),
        created_ms=NOW_MS,
        modified_ms=NOW_MS,
    )
