"""Parts of made-up histories, with everything that a test does not care for filled in."""

from __future__ import annotations

from typing import Any

from cirrusmq_local.judging.history import Call
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import Scenario

LIFE_MS = 345_600_000


def delivery(call: Call, visible_ms: int, **given: Any) -> Delivery:
    """The only message, as a receive gets it for the first time."""
    fields: dict[str, Any] = {
        "id": "Msg-1",
        "label": "m",
        "group": None,
        "receipt": f"r{call.begun_ms}",
        "count": 1,
        "sent_ms": 1_000,
        "expires_ms": 1_000 + LIFE_MS,
        "dead": None,
        "priority": 1,
        "color": None,
        "sender": "acme",
    }
    return Delivery(call=call, visible_ms=visible_ms, **{**fields, **given})


def scenario(**queues: dict[str, Any]) -> Scenario:
    """A scenario by which a history without actors is judged."""
    return Scenario(
        family="plain",
        queues=queues,
        cast=(),
        pause_ms=0,
        big_bodies=False,
        attempts=0,
        deduplication=0,
    )
