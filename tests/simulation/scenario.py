"""What a seed plays: which queues there are, who uses them, and how many steps each takes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.places import Place

FAMILIES = ("plain", "retries", "dead", "rewinding", "ordered", "receivers", "pull", "http")
_WEIGHTS = (22, 14, 14, 14, 14, 8, 7, 7)


@dataclass(frozen=True, slots=True)
class Cast:
    """An actor: its part (`sender`, `receiver`, …), where it plays, and its steps."""

    name: str
    part: str
    place: Place
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run's resources and actors."""

    family: str
    queues: dict[str, dict[str, Any]]
    """Name -> attributes; in the order of creation."""
    receivers: tuple[str, ...] = ()
    """Of the queue `orders`."""
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the topic `news`."""
    cast: tuple[Cast, ...]
    pause_ms: int
    """How long an actor waits between its steps, about."""
    big_bodies: bool
    attempts: float
    """The share of sends that can be repeated."""
    deduplication: float
    """The share of sends with deduplication ids."""

    @property
    def places(self) -> list[Place]:
        """Whatever messages can be received from."""
        queues = [Place(name) for name in self.queues]
        receivers = [Place(f"orders/{name}") for name in self.receivers]
        pulled = [
            Place(f"news/{name}", topic=True)
            for name, attributes in self.subscriptions.items()
            if attributes["protocol"] == "pull"
        ]
        return queues + receivers + pulled


ORDERS, DEAD = Place("orders"), Place("dead")


def draw_scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    draw = random.Random(f"scenario {seed}")
    family = draw.choices(FAMILIES, _WEIGHTS)[0]
    orders = _attributes(draw, family)
    queues = {"orders": orders}
    if "dead_letter" in orders:
        queues = {"dead": {"partitions": 1}, "orders": orders}
    return Scenario(
        family=family,
        queues=queues,
        cast=tuple(_cast(draw, family, orders)),
        pause_ms=draw.choice((0, 300, 1_500, 4_000)),
        big_bodies=draw.random() < 0.3,
        attempts=0 if family == "ordered" else draw.choice((0.3, 0.8)),
        deduplication=draw.choice((0, 0, 0.3)),
    )


def _attributes(draw: random.Random, family: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "partitions": draw.choice((1, 1, 2)),
        "visibility_timeout_seconds": draw.choice((1, 2, 5)),
        "message_retention_seconds": draw.choice((60, 100, 345_600, 345_600, 345_600)),
        "delay_seconds": draw.choice((0, 0, 0, 2)),
    }
    if family == "retries":
        attributes["retry"] = _ladder(draw)
    if family in ("retries", "dead") or draw.random() < 0.15:
        attributes["dead_letter"] = {"queue": "dead", "max_receives": draw.choice((1, 2, 3))}
        if draw.random() < 0.3 and attributes["message_retention_seconds"] > 400:
            attributes["dead_letter"]["max_age_seconds"] = 300
    if family == "rewinding":
        attributes["rewind_seconds"] = min(
            draw.choice((30, 3_600)), attributes["message_retention_seconds"]
        )
    if family == "ordered":
        attributes["ordered"] = True
        if draw.random() < 0.3:
            attributes["retry"] = {"policy": "ordered", "interval_seconds": draw.choice((1, 5))}
        if draw.random() < 0.25:
            attributes["rewind_seconds"] = min(3_600, attributes["message_retention_seconds"])
    return attributes


def _ladder(draw: random.Random) -> dict[str, Any]:
    waits = draw.choice(([0.5], [1, 3], [70], [2, 90, 200], [150]))
    return {"policy": "custom", "waits": waits, "jitter": draw.choice((0, 0.5))}


def _cast(draw: random.Random, family: str, orders: dict[str, Any]) -> list[Cast]:
    cast = [Cast(f"sender{n}", "sender", ORDERS, draw.choice((3, 5))) for n in range(2)]
    consumers = draw.choice((2, 3))
    cast += [
        Cast(f"receiver{n}", "receiver", ORDERS, draw.choice((4, 7))) for n in range(consumers)
    ]
    if "dead_letter" in orders:
        cast.append(Cast("undertaker", "receiver", DEAD, 3))
        if draw.random() < 0.5:
            cast.append(Cast("redriver", "redriver", DEAD, 2))
    if orders.get("rewind_seconds"):
        cast.append(Cast("rewinder", "rewinder", ORDERS, 2))
    if draw.random() < 0.12:
        cast.append(Cast("purger", "purger", ORDERS, 1))
    if draw.random() < 0.2:
        cast.append(Cast("changer", "changer", ORDERS, 2))
    cast.append(Cast("sweeper", "sweeper", ORDERS, draw.choice((1, 3))))
    cast.append(Cast("meter", "meter", ORDERS, 0))
    return cast
