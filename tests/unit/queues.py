"""Queues as values with everything that a test does not care for filled in."""

from __future__ import annotations

from typing import Any

from tests.unit.parcels import NOW_MS

from cirrusmq.model.queue import (
    Queue,
    QueueAttributes,
    QueueInput,
    change_attributes,
    create_attributes,
)


def created(**given: Any) -> QueueAttributes:
    return create_attributes(QueueInput(**given))


def queue(**given: Any) -> Queue:
    fields: dict[str, Any] = {
        "account": "alice",
        "name": "orders",
        "id": "0123456789ab",
        "attributes": QueueAttributes(),
        "created_ms": NOW_MS - 5_000,
        "modified_ms": NOW_MS - 5_000,
    }
    return Queue(**{**fields, **given})


def changed(before: dict[str, Any], now_ms: int = NOW_MS, **given: Any) -> Queue:
    """A queue that was made with `before`, after a change."""
    return change_attributes(queue(attributes=created(**before)), QueueInput(**given), now_ms)
