"""The scenario of a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.places import Place
from tests.simulation.scenario import (
    CANCELLED,
    DEAD,
    DELAYED,
    EARLY,
    FAIR,
    FIRST_SEEDS,
    FLOW,
    HALF,
    LATE,
    NEWS,
    ORDERS,
    REWOUND,
    TRIGGERS,
    Cast,
    Scenario,
)

from cirrusmq.model.objects import DAY_MS
from cirrusmq.runtime.secret import KEPT_MS, READ_AGAIN_MS, USED_AFTER_MS
from cirrusmq_local.testing.core import FUNCTION

FAMILIES = {
    "plain": 16,
    "retries": 11,
    "dead": 10,
    "poison": 5,
    "rewinding": 12,
    "ordered": 9,
    "ordered receivers": 6,
    "receivers": 7,
    "pull": 6,
    "ordered pull": 6,
    "ordered copies": 4,
    "http": 11,
    "storm": 3,
    "crowd": 0.5,
}
"""Family -> its share of a hundred seeds or so; those of `triggers` are drawn apart.

`poison`: consumers fail at most messages and take one at a time; `ordered copies`: a topic's
subscription is an ordered queue; `storm`: the store refuses a lot, and a message may be received
once; `crowd`: thousands are in flight.
"""
_OF_TOPICS = ("pull", "ordered pull", "ordered copies", "http")
_OF_PURGED = ("plain", "rewinding", "receivers")
_TRIGGERS, _TURNED_OVER, _PURGED, _IN_OBJECTS = 1 / 16, 1 / 12, 1 / 16, 1 / 12
"""The shares of scenarios with functions that queues name; of those, of any family, in which the
secret is turned over; of those, of the families above, whose queue is purged again and again; and
of those, of any of these, whose large messages are in the bucket. They are drawn from numbers of
their own: no other seed changes."""
_MINUTE_MS = 60_000


def draw_scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    for family, first in reversed(FIRST_SEEDS.items()):
        if seed >= first:
            return _OWN_FAMILIES[family](random.Random(f"{family.split()[0]} {seed}"))
    scenario = _special_scenario(seed)
    draw = random.Random(f"objects {seed}")
    if draw.random() < _IN_OBJECTS and not scenario.in_flight:
        return _in_objects(draw, scenario)
    return scenario


def _special_scenario(seed: int) -> Scenario:
    scenario = _scenario(seed)
    draw = random.Random(f"turn-over {seed}")
    if draw.random() < _TURNED_OVER and not scenario.in_flight:
        return _turned_over(draw, scenario)
    draw = random.Random(f"purges {seed}")
    if draw.random() < _PURGED and scenario.family in _OF_PURGED:
        return _purged(scenario)
    return scenario


def _purged(scenario: Scenario) -> Scenario:
    """The same, with purges while sends are repeated."""
    parts = {"sender": 10, "receiver": 2, "sweeper": 2, "rewinder": 1, "meter": 0}
    cast = [replace(each, steps=parts[each.part]) for each in scenario.cast if each.part in parts]
    cast.append(Cast("purger", "purger", ORDERS, 1))
    return replace(scenario, cast=tuple(cast), purged=True, attempts=1.0, repeated=0.9)


def _in_objects(draw: random.Random, scenario: Scenario) -> Scenario:
    """The same, with all messages in the bucket, or the larger ones."""
    return replace(
        scenario,
        objects_from=draw.choice((1, 1, 120, 1_000)),
        object_day_ms=draw.choice((_MINUTE_MS, DAY_MS)),
        object_faults=0 if scenario.quiet else draw.choice((0, 5, 30)),
        big_bodies=scenario.big_bodies or draw.random() < 0.5,
    )


def _turned_over(draw: random.Random, scenario: Scenario) -> Scenario:
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


def _scenario(seed: int) -> Scenario:
    draw = random.Random(f"triggers {seed}")
    if draw.random() < _TRIGGERS:
        return _trigger_scenario(draw)
    draw = random.Random(f"scenario {seed}")
    family = draw.choices(list(FAMILIES), list(FAMILIES.values()))[0]
    if family in _OF_TOPICS:
        return _topic_scenario(draw, family)
    orders = _attributes(draw, family)
    queues = {"orders": orders}
    if "dead_letter" in orders:
        queues = {"dead": {"partitions": 1}, "orders": orders}
    return Scenario(
        family=family,
        queues=queues,
        receivers=("audit", "copies")[: draw.choice((1, 2))] if "receivers" in family else (),
        cast=tuple(_cast(draw, family, orders)),
        pause_ms=300 if family == "crowd" else draw.choice((0, 300, 1_500, 4_000)),
        big_bodies=family == "storm" or draw.random() < 0.3,
        attempts=0 if orders.get("ordered") else draw.choice((0.3, 0.8)),
        deduplication=draw.choice((0, 0, 0.3)),
        poisoned=family == "poison",
        in_flight=1_000 if family == "crowd" else 0,
    )


def _topic_scenario(draw: random.Random, family: str) -> Scenario:
    """A topic: pulled by a group and copied to a queue, or pushed to URLs that fail for a while."""
    orders: dict[str, Any] = {"message_retention_seconds": 345_600, "partitions": 1}
    if family == "ordered copies":
        orders["ordered"] = True
    elif draw.random() < 0.3:
        orders["rewind_seconds"] = 3_600
    subscriptions: dict[str, dict[str, Any]] = {"copy": {"protocol": "queue", "endpoint": "orders"}}
    cast = [Cast(f"publisher{n}", "publisher", NEWS, draw.choice((2, 4))) for n in range(2)]
    if family == "ordered copies":
        cast += [Cast(f"receiver{n}", "receiver", ORDERS, draw.choice((4, 8))) for n in range(2)]
    elif family != "http":
        group = _group(draw, family == "ordered pull")
        subscriptions["group"] = group
        cast += [
            Cast(f"member{n}", "receiver", Place("news/group", topic=True), 4) for n in range(2)
        ]
        cast.append(Cast("receiver0", "receiver", ORDERS, 4))
    else:
        for n in range(draw.choice((1, 1, 2))):
            subscriptions[f"hook{n}"] = _hook(draw, n)
    cast.append(Cast("reader0", "log reader", NEWS, draw.choice((8, 16))))
    outage = draw.choice(((0, 0), (0, 30_000), (5_000, 25_000), (0, 100_000)))
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((2, 4))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    return Scenario(
        family=family,
        queues={"dead": {"partitions": 1}, "orders": orders},
        subscriptions=subscriptions,
        cast=tuple(cast),
        pause_ms=draw.choice((0, 1_500, 10_000)),
        big_bodies=draw.random() < 0.3,
        attempts=draw.choice((0.3, 0.8)),
        deduplication=draw.choice((0, 0, 0.3)),
        outage_ms=outage,
        failing=draw.choice((0, 0, 0.2)),
    )


def _cancelled_scenario(draw: random.Random) -> Scenario:
    """A queue whose senders cancel messages, or say when they are due, while receivers look."""
    orders: dict[str, Any] = {
        "partitions": draw.choice((1, 1, 2)),
        "visibility_timeout_seconds": draw.choice((1, 2, 5)),
        "message_retention_seconds": 345_600,
        "delay_seconds": draw.choice((0, 2, 2, 10)),
    }
    if draw.random() < 0.3:
        orders["rewind_seconds"] = 3_600
    cast = [Cast(f"sender{n}", "sender", ORDERS, draw.choice((3, 5))) for n in range(2)]
    cast += [Cast(f"canceller{n}", "canceller", ORDERS, draw.choice((5, 9))) for n in range(2)]
    cast += [Cast(f"receiver{n}", "receiver", ORDERS, 4) for n in range(2)]
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    scenario = Scenario(
        family=CANCELLED,
        queues={"orders": orders},
        cast=tuple(cast),
        pause_ms=draw.choice((300, 1_500, 4_000)),
        big_bodies=draw.random() < 0.3,
        attempts=draw.choice((0.3, 0.8)),
        repeated=0.5,
        deduplication=0,
    )
    return _in_objects(draw, scenario) if draw.random() < 0.3 else scenario


def _flow_scenario(draw: random.Random) -> Scenario:
    """URLs that say how many messages a second they take, and get as many as that or more."""
    scenario = _topic_scenario(draw, "http")
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


def _delayed_scenario(draw: random.Random) -> Scenario:
    """A topic's queue and group, and URLs, none of them in order, and messages for later."""
    family = draw.choice(("pull", "http"))
    scenario = _topic_scenario(draw, family)
    hooks = dict(scenario.subscriptions)
    for name, attributes in scenario.subscriptions.items():
        if attributes["protocol"] == "http" and attributes["retry"]["policy"] == "backoff":
            hooks[name] = attributes | {"retry": {"policy": "exponential_decay"}}
    return replace(scenario, family=DELAYED, subscriptions=hooks)


def _early_scenario(draw: random.Random) -> Scenario:
    """A queue in use that gets a receiver which begins with the earliest message."""
    ordered = draw.random() < 0.35
    orders: dict[str, Any] = {
        "partitions": draw.choice((1, 1, 2)),
        "visibility_timeout_seconds": draw.choice((1, 2, 5)),
        "message_retention_seconds": 345_600,
        "delay_seconds": draw.choice((0, 0, 0, 2, 10)),
        "ordered": ordered,
    }
    if draw.random() < 0.4:
        orders["rewind_seconds"] = draw.choice((30, 3_600))
    if draw.random() < 0.35:
        orders["dead_letter"] = {"queue": "dead", "max_receives": draw.choice((2, 3))}
        if not ordered and draw.random() < 0.6:
            orders["retry"] = _retry_policy(draw)
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
    return _in_objects(draw, scenario) if draw.random() < 0.2 else scenario


def _fair_scenario(draw: random.Random) -> Scenario:
    """A fair queue with several groups, one of which sends most; or the copies of a topic there."""
    kind = draw.choice(("plain", "plain", "retries", "dead", "rewinding", "receivers", "pull"))
    tenants = (*("loud",) * draw.choice((3, 6, 12)), "red", "blue", "green", None)
    takes = draw.choice(((1,), (1, 2), (1, 2, 4, 16)))
    if kind == "pull":
        scenario = _topic_scenario(draw, kind)
        orders = scenario.queues["orders"] | {"fair": True}
        queues = scenario.queues | {"orders": orders}
        return replace(scenario, family=FAIR, queues=queues, tenants=tenants, takes=takes)
    orders = _attributes(draw, kind) | {"fair": True}
    if kind == "plain" and draw.random() < 0.5:
        orders["visibility_timeout_seconds"] = 30
    if draw.random() < 0.3:
        orders["max_in_flight"] = draw.choice((1, 2, 4))
    steps = {"sender": draw.choice((4, 7)), "receiver": draw.choice((8, 14))}
    cast = [
        replace(each, steps=steps.get(each.part, each.steps)) for each in _cast(draw, kind, orders)
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
    return _in_objects(draw, scenario) if draw.random() < 0.15 else scenario


def _half_scenario(draw: random.Random) -> Scenario:
    """A topic's queue and group, whose producers prepare, die, and are asked for."""
    orders: dict[str, Any] = {"message_retention_seconds": 345_600, "partitions": 1}
    if draw.random() < 0.3:
        orders["ordered"] = True
    subscriptions = {
        "copy": {"protocol": "queue", "endpoint": "orders"},
        "group": _group(draw, draw.random() < 0.3),
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
        queues={"dead": {"partitions": 1}, "orders": orders},
        subscriptions=subscriptions,
        cast=tuple(cast),
        pause_ms=draw.choice((0, 300, 1_500, 10_000)),
        big_bodies=draw.random() < 0.3,
        attempts=draw.choice((0.3, 0.8)),
        deduplication=0,
    )
    return _in_objects(draw, scenario) if draw.random() < 0.3 else scenario


def _trigger_scenario(draw: random.Random) -> Scenario:
    """A queue, or a topic's queue and group, that name functions, with all that may fail or not."""
    quiet, topic = draw.random() < 0.35, draw.random() < 0.4
    orders: dict[str, Any] = {
        "partitions": draw.choice((1, 2)),
        "message_retention_seconds": 345_600,
        "visibility_timeout_seconds": draw.choice((1, 5, 70)),
        "invoke": _invoke(draw),
    }
    subscriptions: dict[str, dict[str, Any]] = {}
    if topic:
        subscriptions = {
            "copy": {"protocol": "queue", "endpoint": "orders"},
            "group": _group(draw, draw.random() < 0.3) | {"invoke": _invoke(draw)},
        }
    elif draw.random() < 0.3:
        orders["ordered"] = True
    else:
        orders["delay_seconds"] = draw.choice((0, 0, 2, 40))
    if draw.random() < 0.4:
        orders["dead_letter"] = {"queue": "dead", "max_receives": draw.choice((1, 2, 3))}
        if not orders.get("ordered") and draw.random() < 0.5:
            orders["retry"] = _retry_policy(draw)
    part, place = ("publisher", NEWS) if topic else ("sender", ORDERS)
    cast = [Cast(f"{part}{n}", part, place, draw.choice((2, 4))) for n in range(2)]
    if not quiet:
        if "dead_letter" in orders and not topic and draw.random() < 0.4:
            cast.append(Cast("redriver", "redriver", DEAD, 2))
        cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    return Scenario(
        family=TRIGGERS,
        queues={"dead": {"partitions": 1}, "orders": orders},
        subscriptions=subscriptions,
        cast=tuple(cast),
        pause_ms=draw.choice((0, 300, 1_500, 10_000)),
        big_bodies=draw.random() < 0.2,
        attempts=0 if orders.get("ordered") else draw.choice((0.3, 0.8)),
        deduplication=0,
        failing=draw.choice((0, 0.2, 0.5)),
        quiet=quiet,
    )


def _rewound_scenario(draw: random.Random) -> Scenario:
    """A topic whose group is rewound, and another that begins with what was before it."""
    group, late = _plain_group(draw), _plain_group(draw)
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


def _plain_group(draw: random.Random) -> dict[str, Any]:
    """A group that never gives a message up."""
    group: dict[str, Any] = {"protocol": "pull"}
    if draw.random() < 0.5:
        return group | {"ordered": True}
    return group | {"retry": {"policy": "custom", "waits": draw.choice(([0.5] * 100, [70] * 100))}}


def _invoke(draw: random.Random) -> dict[str, Any]:
    return {
        "function": FUNCTION,
        "max_concurrency": draw.choice((1, 1, 2, 3)),
        "batch": draw.choice((1, 2, 4)),
        "timeout_seconds": draw.choice((5, 20, 60)),
    }


def _group(draw: random.Random, ordered: bool) -> dict[str, Any]:
    group: dict[str, Any] = {"protocol": "pull", "dead_letter_queue": "dead"}
    if ordered:
        group["ordered"] = True
    elif draw.random() < 0.6:
        group["retry"] = _retry_policy(draw)
    if draw.random() < 0.3:
        group["filter"] = {"tags": ["a"]}
    return group


def _hook(draw: random.Random, number: int) -> dict[str, Any]:
    policy = draw.choice(("exponential_decay", "exponential_decay", "backoff", "backoff", "custom"))
    retry: dict[str, Any] = {"policy": policy}
    hook: dict[str, Any] = {"protocol": "http", "endpoint": f"http://hook{number}.example/"}
    if policy == "custom":
        retry |= {"waits": draw.choice(([1, 3], [0.5, 40])), "jitter": draw.choice((0, 0.5))}
        hook["dead_letter_queue"] = "dead"
    return hook | {"retry": retry}


def _attributes(draw: random.Random, family: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "partitions": draw.choice((1, 1, 2)),
        "visibility_timeout_seconds": draw.choice((1, 2, 5)),
        "message_retention_seconds": draw.choice((60, 100, 345_600, 345_600, 345_600)),
        "delay_seconds": draw.choice((0, 0, 0, 2)),
    }
    if family == "retries":
        attributes["retry"] = _retry_policy(draw)
    if family == "storm":
        one = {"queue": "dead", "max_receives": 1}
        return attributes | {"partitions": 1, "dead_letter": one}
    if family == "crowd":
        return attributes | {"partitions": 1, "message_retention_seconds": 345_600}
    if family in ("retries", "dead", "poison") or draw.random() < 0.15:
        attributes["dead_letter"] = {"queue": "dead", "max_receives": draw.choice((1, 2, 3))}
        if draw.random() < 0.3 and attributes["message_retention_seconds"] > 400:
            attributes["dead_letter"]["max_age_seconds"] = 300
    if family == "rewinding":
        attributes["rewind_seconds"] = min(
            draw.choice((30, 3_600)), attributes["message_retention_seconds"]
        )
    if family in ("ordered", "ordered receivers"):
        attributes["ordered"] = True
        if draw.random() < 0.3:
            attributes["retry"] = {"policy": "ordered", "interval_seconds": draw.choice((1, 5))}
        if draw.random() < 0.25 and family == "ordered":
            attributes["rewind_seconds"] = min(3_600, attributes["message_retention_seconds"])
    return attributes


def _retry_policy(draw: random.Random) -> dict[str, Any]:
    waits = draw.choice(([0.5], [1, 3], [70], [2, 90, 200], [150]))
    return {"policy": "custom", "waits": waits, "jitter": draw.choice((0, 0.5))}


def _cast(draw: random.Random, family: str, orders: dict[str, Any]) -> list[Cast]:
    cast = [Cast(f"sender{n}", "sender", ORDERS, draw.choice((3, 5))) for n in range(2)]
    if family == "crowd":
        return cast + [Cast(f"receiver{n}", "receiver", ORDERS, 12) for n in range(2)]
    consumers = draw.choice((2, 3))
    cast += [
        Cast(f"receiver{n}", "receiver", ORDERS, draw.choice((4, 7))) for n in range(consumers)
    ]
    if "dead_letter" in orders:
        cast.append(Cast("undertaker", "receiver", DEAD, 3))
        # A message that is redriven into a queue with receivers is delivered to all of them.
        if draw.random() < 0.5 and "receivers" not in family:
            cast.append(Cast("redriver", "redriver", DEAD, 2))
    if orders.get("rewind_seconds"):
        cast.append(Cast("rewinder", "rewinder", ORDERS, 2))
    if "receivers" in family:
        cast.append(Cast("auditor", "receiver", Place("orders/audit"), 5))
    if family == "ordered receivers":
        cast.append(Cast("second auditor", "receiver", Place("orders/audit"), 5))
    if draw.random() < 0.12:
        cast.append(Cast("purger", "purger", ORDERS, 1))
    if draw.random() < 0.2:
        cast.append(Cast("changer", "changer", ORDERS, 2))
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    return cast


_OWN_FAMILIES: dict[str, Callable[[random.Random], Scenario]] = {
    HALF: _half_scenario,
    REWOUND: _rewound_scenario,
    CANCELLED: _cancelled_scenario,
    FLOW: _flow_scenario,
    DELAYED: _delayed_scenario,
    FAIR: _fair_scenario,
    EARLY: _early_scenario,
}
