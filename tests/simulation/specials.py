"""What a scenario of any family may be besides: in objects, turned over, purged."""

from __future__ import annotations

import random
from dataclasses import replace

from cirrusmq.runtime.secret import KEPT_MS, READ_AGAIN_MS, USED_AFTER_MS
from cirrusmq.storage.bodies.object import DAY_MS
from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import ORDERS, Cast, Scenario

_MINUTE_MS = 60_000


def purged(scenario: Scenario) -> Scenario:
    """The same, with purges while sends are repeated."""
    parts = {"sender": 10, "receiver": 2, "sweeper": 2, "rewinder": 1, "meter": 0}
    cast = [replace(each, steps=parts[each.part]) for each in scenario.cast if each.part in parts]
    cast.append(Cast("purger", "purger", ORDERS, 1))
    return replace(scenario, cast=tuple(cast), purged=True, attempts=1.0, repeated=0.9)


def in_objects(draw: random.Random, scenario: Scenario) -> Scenario:
    """The same, with all messages in the bucket, or the larger ones."""
    return replace(
        scenario,
        objects_from=draw.choice((1, 1, 120, 1_000)),
        object_day_ms=draw.choice((_MINUTE_MS, DAY_MS)),
        object_faults=0 if scenario.quiet else draw.choice((0, 5, 30)),
        big_bodies=scenario.big_bodies or draw.random() < 0.5,
    )


def turned_over(draw: random.Random, scenario: Scenario) -> Scenario:
    """The same, longer, while environments learn of a new generation of the secret or use it."""
    newest_ms = draw.randrange(40_000) - draw.choice(
        (0, 0, READ_AGAIN_MS // 2, READ_AGAIN_MS, USED_AFTER_MS, USED_AFTER_MS)
    )
    before_ms = newest_ms - KEPT_MS - USED_AFTER_MS
    subscribers = tuple(
        Cast(f"subscriber of {name}", "subscriber", Place(f"news/{name}", topic=True), 3)
        for name, attributes in scenario.subscriptions.items()
        if attributes["protocol"] == "http"
    )
    return replace(
        scenario,
        turned_over_ms=(before_ms, newest_ms) if draw.random() < 0.3 else (newest_ms,),
        attempted=0.9,
        repeats=0.8,
        pause_ms=draw.choice((1_500, 4_000, 10_000)),
        cast=scenario.cast + subscribers,
    )
