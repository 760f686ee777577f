"""Parcels and their places with everything that a test does not care for filled in."""

from __future__ import annotations

from typing import Any

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source

NOW_MS = 1_795_000_000_000
SEND_ID = "01M7Q5CQG0F81FFGDXGX6TBSR9"


def parcel(count: int = 1, **given: Any) -> Parcel:
    """A parcel of messages that can be received at `NOW_MS` and never were."""
    fields: dict[str, Any] = {
        "source_id": "queue",
        "partition": 0,
        "sort_key": f"{NOW_MS:013d}#{SEND_ID}",
        "parcel_id": SEND_ID,
        "sent_ms": NOW_MS,
        "expires_ms": NOW_MS + 60_000,
        "visible_ms": (NOW_MS,) * count,
        "nonces": (b"",) * count,
        "receives": (0,) * count,
        "first_received_ms": (0,) * count,
        "sizes": (100,) * count,
    }
    return Parcel(**{**fields, **given})


def source(**given: Any) -> Source:
    """A queue's default receiver without a retry policy and without a dead-letter queue."""
    fields: dict[str, Any] = {
        "id": "queue",
        "account": "alice",
        "queue_name": "orders",
        "receiver": None,
        "log_id": "queue",
        "partitions": 4,
        "ordered": False,
        "visibility_timeout_seconds": 30,
        "receive_wait_seconds": 0.0,
        "retry": None,
        "dead_letter": None,
        "rewind_seconds": 0,
        "purged_ms": 0,
        "rewind_floor_ms": 0,
        "longest_retention_seconds": 60,
    }
    return Source(**{**fields, **given})
