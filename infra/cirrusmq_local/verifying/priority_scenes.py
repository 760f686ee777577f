"""Scenes of queues with priorities: of one partition and of several, which share a look."""

from __future__ import annotations

from collections.abc import Callable

from cirrusmq_local.judging.scenario import Scenario

_LEVELS = {"priorities": 16}
_AGEING = {"priorities": 2, "ageing_seconds": 10}


def priority_scenes(queue: Callable[..., Scenario]) -> dict[str, Scenario]:
    """Name -> scene. `queue` makes one of a name, attributes and further values."""
    return {
        "priorities": queue("priorities", {**_LEVELS, "partitions": 1}),
        "ageing": queue("ageing", {**_AGEING, "partitions": 1}, takes=(1, 2)),
        "spread priorities": queue(
            "spread priorities", {**_LEVELS, "partitions": 4}, takes=(1, 1, 2), pause_ms=50
        ),
        "spread ageing": queue("spread ageing", {**_AGEING, "partitions": 3}, takes=(1, 2)),
    }
