"""A scenario: its queues, the actors that use them, and each actor's steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cirrusmq.storage.bodies.object import DAY_MS
from cirrusmq_local.judging.places import Place

TURNED_OVER, PURGED, OBJECTS, UNTRIED = "turned over", "purged", "objects", "untried"
"""Kinds of scenarios of any family: the secret is turned over; the queue is purged again and again;
messages are in the bucket; consumers give back messages that they did not try."""
ORDERS, DEAD = Place("orders"), Place("dead")
LATE = Place("orders/late")
NEWS = Place("news", topic=True)


@dataclass(frozen=True, slots=True)
class Cast:
    """An actor: its part (`sender`, `receiver`, …), its place, and its number of steps."""

    name: str
    part: str
    place: Place
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run's resources and actors."""

    family: str
    """Its family, or the name of its pair."""
    features: tuple[str, ...] = ()
    """The families that meet in it, of a pair."""
    queues: dict[str, dict[str, Any]]
    """Name -> attributes; in the order of creation."""
    receivers: tuple[str, ...] = ()
    """The receivers of the queue `orders`."""
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The subscriptions of the topic `news`, by name."""
    cast: tuple[Cast, ...]
    pause_ms: int
    """How long an actor waits between its steps, about."""
    big_bodies: bool
    """True if most messages have a long body."""
    paddings: tuple[int, ...] = (1,)
    """How long: in parts of 3,200 characters that do not compress to a half."""
    attempts: float
    """The share of sends that can be repeated."""
    repeated: float = 0.3
    """The share of these that are repeated though they were answered."""
    outage_ms: tuple[int, int] = (0, 0)
    """From when to when endpoints fail, from the beginning of the run on."""
    failing: float = 0.0
    """The share of posts that fail at any other time, and of messages that functions fail at."""
    deduplication: float
    """The share of sends with deduplication ids."""
    poisoned: bool = False
    """True if consumers take one message at a time and mostly fail."""
    in_flight: int = 0
    """How many parcels are held in `orders` from the beginning to the end of their lives."""
    quiet: bool = False
    """True if nothing fails but the functions that queues name, and no sweep runs."""
    turned_over_ms: tuple[int, ...] = ()
    """When the secret is turned over, counted from the beginning of the run; before it: below 0."""
    late: dict[str, Any] = field(default_factory=dict)
    """The group `late` of the topic `news`, made in the middle of the run; empty: there is none."""
    rewound: bool = False
    """True if groups are rewound; none of their members dead-letters a message."""
    longer_retries: bool = False
    """True if consumers dead-letter no message, even if no group is rewound."""
    halves: bool = False
    """True if producers publish by half messages."""
    delayed: bool = False
    """True if messages are published for later."""
    delays: tuple[int, ...] = (1, 3, 20, 70)
    """By how many seconds."""
    early: bool = False
    """True if the receiver `late` of `orders` is made in the middle of the run, with the queue's
    backlog."""
    purged: bool = False
    """True if `orders` is purged again and again while the store takes long."""
    objects_from: int = 0
    """Packed bytes of a send from which its messages are in the bucket; 0: never."""
    object_day_ms: int = DAY_MS
    """How long a day of the bucket is."""
    object_faults: int = 0
    """In how many of a hundred calls of the bucket something fails, at least."""
    attempted: float = 0.3
    """The share of receives with an attempt."""
    takes: tuple[int, ...] = (1, 2, 4, 16)
    """How many messages a receive may ask for."""
    rewinds_ms: tuple[int, ...] = (100, 2_000, 20_000, 60_000)
    """How far back a group is rewound."""
    redrives: tuple[str, ...] = ("all",)
    """The ways of a redrive: all, ids, receipts, or a reason."""
    waits: tuple[float, ...] = (0, 0, 0.3, 2)
    """How many seconds a receive may wait."""
    sleep_ms: int = 0
    """How long nobody does anything, before checks of half messages and the drain."""
    fan_out_after_ms: int = 0
    """How long the stream that is fanned out is not read, from the beginning on."""
    check_after: tuple[int, ...] = (1, 1, 5, 20)
    """After how many seconds a producer may have its half message checked."""
    small_pages: bool = False
    """True if pages have a few parcels, and scans a unit: there is more than they hold."""
    untried: float = 0.0
    """The share of give-backs that say that nothing was tried."""
    tenants: tuple[str | None, ...] = ()
    """The groups that senders draw from, if `orders` is fair."""
    slow_until_ms: int = 0
    """Until when URLs answer after 14 s and may fail, from the beginning of the run on."""
    slow_pushes: int = 0
    """Invocations that post to slow URLs at once, which accounts share; 0: nothing bounds them."""
    workers: int = 0
    """Workers of functions at once, which accounts share; 0: nothing bounds them."""
    clock_set: tuple[int, int] = (0, 0)
    """When the clocks of a zone of schedules are set, in ms from the beginning of the run, and by
    how many minutes; 0 minutes: never."""
    scheduled_topic: bool = False
    """True if schedules may publish to a topic, whose copies are in the queue of their messages."""
    notified: bool = False
    """True if the topic's copies in `orders` are shown as SNS's notifications."""
    unfailing: bool = False
    """True if no call of the store or of a function fails."""
    paused_ms: int = 0
    """How much longer than others a pause is."""
    pauses_ms: tuple[int, ...] = (100, 3_000, 15_000, 40_000)
    """How long a pause is, besides."""
    replacing: float = 0.0
    """The share of sends of one message that takes the place of another one under its key."""
    asking: float = 0.0
    """The share of sends of one message that asks for a reply."""
    asked_seconds: tuple[int, ...] = (5, 20, 20, 60, 600)
    """For how many seconds a request waits for its reply."""
    choices: float = 0.0
    """The share of receives that choose: a group if the place has groups, else an attribute."""
    thinks_ms: tuple[int, ...] = (0, 5, 100, 900, 1_100, 4_000)
    """How long a consumer is at what it received."""
    timeouts: tuple[int, ...] = (1, 1, 2, 3, 8, 30)
    """The visibility timeouts that receives ask for, in seconds."""
    held: tuple[int, ...] = (0, 1, 5, 100)
    """For how many seconds a consumer may hold a message on."""
    given_back: tuple[int | None, ...] = (None, None, 0, 3, 70)
    """After how many seconds a message that is given back may come again; None: by its queue."""
    repeats_after_ms: tuple[int, ...] = (0, 500, 3_000, 30_000, 100_000, 119_000)
    """How long after a send it may be repeated."""
    decided_after_ms: tuple[int, ...] = (0, 300, 2_000, 9_000, 30_000, 70_000)
    """How long after a half message its producer may decide it."""
    repeats: float = 0.2
    """The share of receives with an attempt that are repeated though they were answered."""

    @property
    def kinds(self) -> frozenset[str]:
        """The family, the families that meet, and special kinds: `turned over`, `purged`,
        `objects`, `untried`."""
        special = {
            TURNED_OVER: bool(self.turned_over_ms),
            PURGED: self.purged,
            OBJECTS: bool(self.objects_from),
            UNTRIED: bool(self.untried),
        }
        kinds = {self.family, *self.features}
        return frozenset(kinds.union(kind for kind, holds in special.items() if holds))

    @property
    def paused(self) -> tuple[Place, ...]:
        """The places that are paused and resumed."""
        return tuple(cast.place for cast in self.cast if cast.part == "pauser")

    @property
    def grouped(self) -> bool:
        """True if every message has a group: some place is ordered."""
        return any(
            attributes.get("ordered")
            for attributes in (*self.queues.values(), *self.subscriptions.values(), self.late)
        )

    @property
    def invoked(self) -> dict[str, dict[str, Any]]:
        """The names of places whose messages a function gets, with their attributes."""
        held = self.queues | {f"news/{name}": each for name, each in self.subscriptions.items()}
        return {name: attributes for name, attributes in held.items() if "invoke" in attributes}

    @property
    def places(self) -> list[Place]:
        """All places that messages can be received from."""
        queues = [Place(name) for name in self.queues]
        receivers = [Place(f"orders/{name}") for name in self.receivers]
        pulled = [
            Place(f"news/{name}", topic=True)
            for name, attributes in self.subscriptions.items()
            if attributes["protocol"] == "pull"
        ]
        late = [Place("news/late", topic=True)] if self.late else []
        return queues + receivers + ([LATE] if self.early else []) + pulled + late
