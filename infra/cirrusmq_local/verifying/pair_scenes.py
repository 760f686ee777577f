"""Scenes in which two features of a queue meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import DEAD, Cast, Scenario

_PRIORITIES: dict[str, Any] = {"priorities": 16, "partitions": 1}
_ASKED: dict[str, Any] = {"asking": 0.6, "asked_seconds": (2, 3, 5)}
_FOREVER = 1 << 30


def pair_scenes(
    queue: Callable[..., Scenario], letters: Callable[..., Scenario]
) -> dict[str, Scenario]:
    """Name -> scene. queue, letters: make one of a name, attributes and further values."""
    rates = {"send_rate": 8, "receive_rate": 5}
    return {
        "rated priorities": queue("rated priorities", {**_PRIORITIES, **rates}, pause_ms=50),
        "replaced priorities": queue("replaced priorities", _PRIORITIES, replacing=0.6),
        "replaced letters": letters("replaced letters", {}, replacing=0.7),
        "requests of priorities": queue("requests of priorities", _PRIORITIES, **_ASKED),
        "requests and letters": letters(
            "requests and letters", {}, asking=0.6, asked_seconds=(3, 8, 12)
        ),
        "redriven receivers": letters(
            "redriven receivers",
            {},
            receivers=("audit",),
            redrives=("all", "ids", "receipts", "reason"),
            more=[
                Cast("auditor", "receiver", Place("orders/audit"), _FOREVER),
                Cast("redriver", "redriver", DEAD, _FOREVER),
            ],
        ),
    }
