"""Scenarios of the families that have seeds of their own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.families import (
    draw_attributes,
    draw_cast,
    draw_group,
    draw_hook,
    draw_plain_group,
    draw_retry,
    topic_scenario,
)
from tests.simulation.scenario import (
    CANCELLED,
    DELAYED,
    EARLY,
    FAIR,
    FLOW,
    HALF,
    REPLACED,
    REPLIES,
    REWOUND,
    SLOW,
)
from tests.simulation.specials import in_objects

from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import LATE, NEWS, ORDERS, Cast, Scenario

_FAIR_KINDS = ("plain", "plain", "retries", "dead", "rewinding", "receivers", "pull")
"""The families whose queues are made fair."""


def _draw_orders(draw: random.Random, delays: tuple[int, ...]) -> dict[str, Any]:
    """Attributes of the queue; delays: what its own may be."""
    return {
        "partitions": draw.choice((1, 1, 2)),
        "visibility_timeout_seconds": draw.choice((1, 2, 5)),
        "message_retention_seconds": 345_600,
        "delay_seconds": draw.choice(delays),
    }


def _sent_again(
    draw: random.Random,
    family: str,
    orders: dict[str, Any],
    cast: list[Cast],
    pauses_ms: tuple[int, ...],
) -> Scenario:
    """A queue to which half of the sends are repeated though they were answered."""
    return Scenario(
        family=family,
        queues={"orders": orders},
        cast=tuple(cast),
        pause_ms=draw.choice(pauses_ms),
        big_bodies=draw.random() < 0.3,
        attempts=draw.choice((0.3, 0.8)),
        repeated=0.5,
        deduplication=0,
    )


def half_scenario(draw: random.Random) -> Scenario:
    """A topic's queue and group, whose producers prepare, die, and are asked for."""
    orders: dict[str, Any] = {"message_retention_seconds": 345_600, "partitions": 1}
    if draw.random() < 0.3:
        orders["ordered"] = True
    subscriptions = {
        "copy": {"protocol": "queue", "endpoint": "orders"},
        "group": draw_group(draw, draw.random() < 0.3),
    }
    cast = [Cast(f"producer{n}", "half producer", NEWS, draw.choice((3, 5))) for n in range(2)]
    cast += [Cast(f"checker{n}", "checker", NEWS, draw.choice((4, 8))) for n in range(2)]
    cast.append(Cast("publisher0", "publisher", NEWS, draw.choice((0, 2))))
    cast.append(Cast("receiver0", "receiver", ORDERS, 4))
    cast.append(Cast("member0", "receiver", Place("news/group", topic=True), 4))
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((2, 4))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    scenario = Scenario(
        family=HALF,
        halves=True,
        queues={"dead": {"partitions": 1}, "orders": orders},
        subscriptions=subscriptions,
        cast=tuple(cast),
        pause_ms=draw.choice((0, 300, 1_500, 10_000)),
        big_bodies=draw.random() < 0.3,
        attempts=draw.choice((0.3, 0.8)),
        deduplication=0,
    )
    return in_objects(draw, scenario) if draw.random() < 0.3 else scenario


def rewound_scenario(draw: random.Random) -> Scenario:
    """A topic whose group is rewound, and another that begins with what was before it."""
    group, late = draw_plain_group(draw), draw_plain_group(draw)
    cast = [Cast(f"publisher{n}", "publisher", NEWS, draw.choice((3, 5))) for n in range(2)]
    for name, members in (("group", draw.choice((2, 3))), ("late", 1)):
        place = Place(f"news/{name}", topic=True)
        cast += [Cast(f"{name}{n}", "receiver", place, draw.choice((4, 8))) for n in range(members)]
        if draw.random() < (0.9 if name == "group" else 0.4):
            steps = draw.choice((1, 2, 3))
            cast.append(Cast(f"rewinder of {name}", "group rewinder", place, steps))
    cast.append(Cast("opener", "opener", Place("news/late", topic=True), 1))
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    pause_ms, big_bodies = draw.choice((0, 1_500, 5_000)), draw.random() < 0.3
    # The first ordered group changes the id of a publish that is repeated while it is made, if its
    # client's clock is ahead.
    first_ordered = late.get("ordered") and not group.get("ordered")
    attempts = 0 if first_ordered else draw.choice((0.3, 0.8))
    return Scenario(
        family=REWOUND,
        queues={"orders": {"message_retention_seconds": 345_600, "partitions": 1}},
        subscriptions={"copy": {"protocol": "queue", "endpoint": "orders"}, "group": group},
        late=late | {"start": "earliest"},
        rewound=True,
        cast=tuple(cast),
        pause_ms=pause_ms,
        big_bodies=big_bodies,
        attempts=attempts,
        deduplication=0,
    )


def cancelled_scenario(draw: random.Random) -> Scenario:
    """A queue whose senders cancel messages, or say when they are due, while receivers look."""
    orders = _draw_orders(draw, (0, 2, 2, 10))
    if draw.random() < 0.3:
        orders["rewind_seconds"] = 3_600
    cast = [Cast(f"sender{n}", "sender", ORDERS, draw.choice((3, 5))) for n in range(2)]
    cast += [Cast(f"canceller{n}", "canceller", ORDERS, draw.choice((5, 9))) for n in range(2)]
    cast += [Cast(f"receiver{n}", "receiver", ORDERS, 4) for n in range(2)]
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    scenario = _sent_again(draw, CANCELLED, orders, cast, (300, 1_500, 4_000))
    return in_objects(draw, scenario) if draw.random() < 0.3 else scenario


def replaced_scenario(draw: random.Random) -> Scenario:
    """A queue whose messages replace those that wait under their keys, while receivers look."""
    orders = _draw_orders(draw, (0, 2, 2, 10))
    cast = [Cast(f"sender{n}", "sender", ORDERS, draw.choice((5, 9))) for n in range(2)]
    cast += [Cast(f"receiver{n}", "receiver", ORDERS, draw.choice((4, 8))) for n in range(2)]
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    scenario = _sent_again(draw, REPLACED, orders, cast, (0, 300, 1_500, 4_000))
    scenario = replace(scenario, replacing=draw.choice((0.8, 1.0)))
    return in_objects(draw, scenario) if draw.random() < 0.2 else scenario


def replies_scenario(draw: random.Random) -> Scenario:
    """A queue whose senders ask for replies, wait, and give up while others still work."""
    orders = _draw_orders(draw, (0, 0, 2))
    if draw.random() < 0.3:
        orders["rewind_seconds"] = 3_600
    cast = [Cast(f"sender{n}", "sender", ORDERS, draw.choice((3, 6))) for n in range(2)]
    cast += [Cast(f"receiver{n}", "receiver", ORDERS, draw.choice((6, 12))) for n in range(2)]
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    scenario = _sent_again(draw, REPLIES, orders, cast, (0, 300, 1_500, 4_000))
    scenario = replace(scenario, asking=draw.choice((0.8, 1.0)))
    return in_objects(draw, scenario) if draw.random() < 0.2 else scenario


def flow_scenario(draw: random.Random) -> Scenario:
    """URLs that say how many messages a second they take, and get as many as that or more."""
    scenario = topic_scenario(draw, "http")
    hooks = {
        name: attributes | {"rate": draw.choice((1, 2, 3, 25))}
        for name, attributes in scenario.subscriptions.items()
        if attributes["protocol"] == "http"
    }
    return replace(
        scenario,
        family=FLOW,
        subscriptions=scenario.subscriptions | hooks,
        pause_ms=draw.choice((0, 0, 300, 1_500)),
    )


def delayed_scenario(draw: random.Random) -> Scenario:
    """A topic's queue and group, and URLs, none of them in order, and messages for later."""
    family = draw.choice(("pull", "http"))
    scenario = topic_scenario(draw, family)
    hooks = dict(scenario.subscriptions)
    for name, attributes in scenario.subscriptions.items():
        if attributes["protocol"] == "http" and attributes["retry"]["policy"] == "backoff":
            hooks[name] = attributes | {"retry": {"policy": "exponential_decay"}}
    return replace(scenario, family=DELAYED, delayed=True, subscriptions=hooks)


def fair_scenario(draw: random.Random, kinds: tuple[str, ...] = _FAIR_KINDS) -> Scenario:
    """A fair queue with several groups, one of which sends most; or the copies of a topic there."""
    kind = draw.choice(kinds)
    tenants = (*("loud",) * draw.choice((3, 6, 12)), "red", "blue", "green", None)
    takes = draw.choice(((1,), (1, 2), (1, 2, 4, 16)))
    if kind == "pull":
        scenario = topic_scenario(draw, kind)
        orders = scenario.queues["orders"] | {"fair": True}
        queues = scenario.queues | {"orders": orders}
        return replace(scenario, family=FAIR, queues=queues, tenants=tenants, takes=takes)
    orders = draw_attributes(draw, kind) | {"fair": True}
    if kind == "plain" and draw.random() < 0.5:
        orders["visibility_timeout_seconds"] = 30
    if draw.random() < 0.3:
        orders["max_in_flight"] = draw.choice((1, 2, 4))
    steps = {"sender": draw.choice((4, 7)), "receiver": draw.choice((8, 14))}
    cast = [
        replace(each, steps=steps.get(each.part, each.steps))
        for each in draw_cast(draw, kind, orders)
    ]
    scenario = Scenario(
        family=FAIR,
        queues={"dead": {"partitions": 1, "fair": draw.random() < 0.5}, "orders": orders},
        receivers=("audit",) if kind == "receivers" else (),
        cast=tuple(cast),
        pause_ms=draw.choice((0, 300, 1_500, 4_000)),
        big_bodies=draw.random() < 0.2,
        attempts=draw.choice((0.3, 0.8)),
        deduplication=draw.choice((0, 0, 0.3)),
        tenants=tenants,
        takes=takes,
    )
    return in_objects(draw, scenario) if draw.random() < 0.15 else scenario


def early_scenario(draw: random.Random) -> Scenario:
    """A queue in use that gets a receiver which begins with the earliest message."""
    ordered = draw.random() < 0.35
    orders = _draw_orders(draw, (0, 0, 0, 2, 10)) | {"ordered": ordered}
    if draw.random() < 0.4:
        orders["rewind_seconds"] = draw.choice((30, 3_600))
    if draw.random() < 0.35:
        orders["dead_letter"] = {"queue": "dead", "max_receives": draw.choice((2, 3))}
        if not ordered and draw.random() < 0.6:
            orders["retry"] = draw_retry(draw)
    cast = [Cast(f"sender{n}", "sender", ORDERS, draw.choice((3, 5, 7))) for n in range(2)]
    cast += [Cast(f"receiver{n}", "receiver", ORDERS, draw.choice((4, 8))) for n in range(2)]
    cast += [Cast(f"late{n}", "receiver", LATE, draw.choice((2, 5))) for n in range(2)]
    cast.append(Cast("opener", "opener", LATE, 1))
    if orders.get("rewind_seconds") and draw.random() < 0.6:
        cast.append(Cast("rewinder", "rewinder", ORDERS, draw.choice((1, 2))))
    if draw.random() < 0.1:
        cast.append(Cast("purger", "purger", ORDERS, 1))
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    queues = {"orders": orders}
    if "dead_letter" in orders:
        queues = {"dead": {"partitions": 1}, "orders": orders}
    scenario = Scenario(
        family=EARLY,
        queues=queues,
        receivers=("audit",) if draw.random() < 0.2 else (),
        early=True,
        cast=tuple(cast),
        pause_ms=draw.choice((0, 1_500, 5_000)),
        big_bodies=draw.random() < 0.3,
        attempts=0 if ordered else draw.choice((0.3, 0.8)),
        deduplication=0,
    )
    return in_objects(draw, scenario) if draw.random() < 0.2 else scenario


def slow_scenario(draw: random.Random) -> Scenario:
    """Two accounts whose URLs answer after 14 s for a while, and most times with a failure."""
    scenario = topic_scenario(draw, "http")
    names = [f"hook{n}" for n in range(draw.choice((2, 4, 5)))]
    until_ms = draw.choice((60_000, 120_000, 300_000))
    cast = [replace(each, steps=draw.choice((2, 4, 6))) for each in scenario.cast]
    cast.append(Cast("neighbour", "neighbour", NEWS, draw.choice((2, 4, 6))))
    return replace(
        scenario,
        family=SLOW,
        subscriptions=scenario.subscriptions | {name: draw_hook(draw, name) for name in names},
        cast=tuple(each for each in cast if each.part != "log reader"),
        pause_ms=draw.choice((1_500, 10_000, 20_000)),
        outage_ms=(0, draw.choice((0, until_ms))),
        failing=0.5,
        slow_until_ms=until_ms,
        slow_pushes=draw.choice((4, 4, 8)),
        unfailing=draw.random() < 0.5,
    )


OWN_FAMILIES: dict[str, Callable[[random.Random], Scenario]] = {
    HALF: half_scenario,
    REWOUND: rewound_scenario,
    CANCELLED: cancelled_scenario,
    FLOW: flow_scenario,
    DELAYED: delayed_scenario,
    FAIR: fair_scenario,
    EARLY: early_scenario,
    SLOW: slow_scenario,
    REPLACED: replaced_scenario,
    REPLIES: replies_scenario,
}
