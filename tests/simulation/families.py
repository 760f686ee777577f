"""Scenarios of the families that have no seeds of their own, and what others take from them."""

from __future__ import annotations

import random
from typing import Any

from tests.simulation.scenario import TRIGGERS

from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import DEAD, NEWS, ORDERS, Cast, Scenario
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
_TRIGGERS = 1 / 16
"""The share of scenarios with functions that queues name."""


def plain_scenario(seed: int) -> Scenario:
    draw = random.Random(f"triggers {seed}")
    if draw.random() < _TRIGGERS:
        return trigger_scenario(draw)
    draw = random.Random(f"scenario {seed}")
    family = draw.choices(list(FAMILIES), list(FAMILIES.values()))[0]
    if family in _OF_TOPICS:
        return topic_scenario(draw, family)
    return plain_scenario_of(draw, family)


def plain_scenario_of(draw: random.Random, family: str) -> Scenario:
    """A queue of one family, its senders and its receivers."""
    orders = draw_attributes(draw, family)
    queues = {"orders": orders}
    if "dead_letter" in orders:
        queues = {"dead": {"partitions": 1}, "orders": orders}
    return Scenario(
        family=family,
        queues=queues,
        receivers=("audit", "copies")[: draw.choice((1, 2))] if "receivers" in family else (),
        cast=tuple(draw_cast(draw, family, orders)),
        pause_ms=300 if family == "crowd" else draw.choice((0, 300, 1_500, 4_000)),
        big_bodies=family == "storm" or draw.random() < 0.3,
        attempts=0 if orders.get("ordered") else draw.choice((0.3, 0.8)),
        deduplication=draw.choice((0, 0, 0.3)),
        poisoned=family == "poison",
        in_flight=1_000 if family == "crowd" else 0,
    )


def topic_scenario(draw: random.Random, family: str) -> Scenario:
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
        group = draw_group(draw, family == "ordered pull")
        subscriptions["group"] = group
        cast += [
            Cast(f"member{n}", "receiver", Place("news/group", topic=True), 4) for n in range(2)
        ]
        cast.append(Cast("receiver0", "receiver", ORDERS, 4))
    else:
        for n in range(draw.choice((1, 1, 2))):
            subscriptions[f"hook{n}"] = draw_hook(draw, f"hook{n}")
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


def trigger_scenario(draw: random.Random) -> Scenario:
    """A queue, or a topic's queue and group, that name functions, with all that may fail or not."""
    quiet, topic = draw.random() < 0.35, draw.random() < 0.4
    orders: dict[str, Any] = {
        "partitions": draw.choice((1, 2)),
        "message_retention_seconds": 345_600,
        "visibility_timeout_seconds": draw.choice((1, 5, 70)),
        "invoke": draw_invoke(draw),
    }
    subscriptions: dict[str, dict[str, Any]] = {}
    if topic:
        subscriptions = {
            "copy": {"protocol": "queue", "endpoint": "orders"},
            "group": draw_group(draw, draw.random() < 0.3) | {"invoke": draw_invoke(draw)},
        }
    elif draw.random() < 0.3:
        orders["ordered"] = True
    else:
        orders["delay_seconds"] = draw.choice((0, 0, 2, 40))
    if draw.random() < 0.4:
        orders["dead_letter"] = {"queue": "dead", "max_receives": draw.choice((1, 2, 3))}
        if not orders.get("ordered") and draw.random() < 0.5:
            orders["retry"] = draw_retry(draw)
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


def draw_plain_group(draw: random.Random) -> dict[str, Any]:
    """A group that never gives a message up."""
    group: dict[str, Any] = {"protocol": "pull"}
    if draw.random() < 0.5:
        return group | {"ordered": True}
    return group | {"retry": {"policy": "custom", "waits": draw.choice(([0.5] * 100, [70] * 100))}}


def draw_invoke(draw: random.Random) -> dict[str, Any]:
    return {
        "function": FUNCTION,
        "max_concurrency": draw.choice((1, 1, 2, 3)),
        "batch": draw.choice((1, 2, 4)),
        "timeout_seconds": draw.choice((5, 20, 60)),
    }


def draw_group(draw: random.Random, ordered: bool) -> dict[str, Any]:
    group: dict[str, Any] = {"protocol": "pull", "dead_letter_queue": "dead"}
    if ordered:
        group["ordered"] = True
    elif draw.random() < 0.6:
        group["retry"] = draw_retry(draw)
    if draw.random() < 0.3:
        group["filter"] = {"tags": ["a"]}
    return group


def draw_hook(draw: random.Random, name: str) -> dict[str, Any]:
    policy = draw.choice(("exponential_decay", "exponential_decay", "backoff", "backoff", "custom"))
    retry: dict[str, Any] = {"policy": policy}
    hook: dict[str, Any] = {"protocol": "http", "endpoint": f"http://{name}.example/"}
    if policy == "custom":
        retry |= {"waits": draw.choice(([1, 3], [0.5, 40])), "jitter": draw.choice((0, 0.5))}
        hook["dead_letter_queue"] = "dead"
    return hook | {"retry": retry}


def draw_attributes(draw: random.Random, family: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "partitions": draw.choice((1, 1, 2)),
        "visibility_timeout_seconds": draw.choice((1, 2, 5)),
        "message_retention_seconds": draw.choice((60, 100, 345_600, 345_600, 345_600)),
        "delay_seconds": draw.choice((0, 0, 0, 2)),
    }
    if family == "retries":
        attributes["retry"] = draw_retry(draw)
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


def draw_retry(draw: random.Random) -> dict[str, Any]:
    waits = draw.choice(([0.5], [1, 3], [70], [2, 90, 200], [150]))
    return {"policy": "custom", "waits": waits, "jitter": draw.choice((0, 0.5))}


def draw_cast(draw: random.Random, family: str, orders: dict[str, Any]) -> list[Cast]:
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
