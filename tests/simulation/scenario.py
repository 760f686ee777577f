"""A scenario: its queues, the actors that use them, and each actor's steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.simulation.places import Place

from cirrusmq.storage.bodies.object import DAY_MS


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
    """Of the queue `orders`."""
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the topic `news`."""
    cast: tuple[Cast, ...]
    pause_ms: int
    """How long an actor waits between its steps, about."""
    big_bodies: bool
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
    """Whether consumers take one at a time and fail at most."""
    in_flight: int = 0
    """How many parcels are held in `orders` from the beginning to the end of their lives."""
    quiet: bool = False
    """Whether nothing fails but the functions that queues name, and no sweep runs."""
    turned_over_ms: tuple[int, ...] = ()
    """When the secret is turned over, counted from the beginning of the run; before it: below 0."""
    late: dict[str, Any] = field(default_factory=dict)
    """The group `late` of the topic `news`, made in the middle of the run; empty: there is none."""
    rewound: bool = False
    """Whether groups are rewound; none of their members gives a message up."""
    longer_retries: bool = False
    """Whether consumers give no message up, also where no group is rewound."""
    halves: bool = False
    """Whether producers publish by half messages."""
    delayed: bool = False
    """Whether messages are published for later."""
    early: bool = False
    """Whether the receiver `late` of `orders` is made in the middle of the run, with what is there
    then."""
    purged: bool = False
    """Whether `orders` is purged again and again while the store takes long."""
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
    redrives: tuple[str, ...] = ("all",)
    """What a redrive may name: all, ids, receipts, or a reason."""
    waits: tuple[float, ...] = (0, 0, 0.3, 2)
    """How many seconds a receive may wait."""
    sleep_ms: int = 0
    """How long nobody does anything, before checks of half messages and the drain."""
    fan_out_after_ms: int = 0
    """How long the stream that is fanned out is not read, from the beginning on."""
    check_after: tuple[int, ...] = (1, 1, 5, 20)
    """After how many seconds a producer may have its half message checked."""
    small_pages: bool = False
    """Whether pages have a few parcels, and looks a unit: there is more than they hold."""
    untried: float = 0.0
    """The share of give-backs that say that nothing was tried."""
    tenants: tuple[str | None, ...] = ()
    """The groups that senders draw from, where `orders` is fair."""
    slow_until_ms: int = 0
    """Until when URLs answer after 14 s and may fail, from the beginning of the run on."""
    slow_pushes: int = 0
    """Invocations that post to slow URLs at once, which accounts share; 0: nothing bounds them."""
    workers: int = 0
    """Workers of functions at once, which accounts share; 0: nothing bounds them."""
    notified: bool = False
    """Whether the topic's copies in `orders` are shown as SNS's notifications."""
    unfailing: bool = False
    """Whether no call of the store or of a function fails."""
    paused_ms: int = 0
    """How much longer than others a pause is."""
    choices: float = 0.0
    """The share of receives that choose: a group where there are groups, else an attribute."""
    repeats: float = 0.2
    """The share of receives with an attempt that are repeated though they were answered."""

    @property
    def kinds(self) -> frozenset[str]:
        """The family, those that meet, and what else may be special: `turned over`, `purged`,
        `objects`."""
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
        """What is paused and resumed."""
        return tuple(cast.place for cast in self.cast if cast.part == "pauser")

    @property
    def grouped(self) -> bool:
        """Whether every message has a group: some place is ordered."""
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


TURNED_OVER = "turned over"
PURGED = "purged"
"""The scenarios of any family in which the secret is turned over."""
OBJECTS = "objects"
"""The scenarios of any family in which messages are in the bucket."""
REWOUND = "rewound groups"
"""The family whose groups are rewound, or begin with what was before."""
TRIGGERS = "triggers"
"""The family whose queues or groups name a function."""
HALF = "half"
"""The family whose producers publish by half messages."""
CANCELLED = "cancelled"
"""The family whose senders cancel and reschedule."""
EARLY = "early receivers"
"""The family whose queue gets a receiver that begins with the earliest message."""
FAIR = "fair"
"""The family whose queue is fair."""
FLOW = "flow"
"""The family of URLs with a rate."""
DELAYED = "delayed"
"""The family of messages that are published to be delivered later."""
SLOW = "slow"
"""The family of URLs that are slow, of two accounts."""
PAUSED, REDRIVEN, REDELIVERED = "paused", "redriven", "redelivered"
"""The pairs whose subscriptions are paused, those whose dead letters are redriven by chance, ids,
receipts or reasons, and those whose messages are delivered again by their ids."""
GRANTED = "granted"
"""The pairs in which another account sends, by a grant."""
PRIORITY = "priority"
"""The pairs whose queue has priorities."""
CHOSEN = "chosen"
"""The pairs in which receives choose a group, or an attribute."""
UNTRIED = "untried"
"""The scenarios of any pair in which consumers give back what they did not try."""
FIRST_SEEDS = {
    HALF: 1_000_000,
    REWOUND: 2_000_000,
    CANCELLED: 3_000_000,
    FLOW: 4_000_000,
    DELAYED: 5_000_000,
    FAIR: 6_000_000,
    EARLY: 7_000_000,
    SLOW: 7_500_000,
}
"""Of the families that have seeds of their own, each up to the first one of the next."""
PAIRS: dict[str, tuple[str, ...]] = {
    "rewound functions": (REWOUND, TRIGGERS),
    "fair functions": (FAIR, TRIGGERS),
    "operated functions": (TRIGGERS,),
    "delayed functions": (DELAYED, TRIGGERS),
    "half functions": (HALF, TRIGGERS),
    "early fair": (EARLY, FAIR),
    "cancelled fair": (CANCELLED, FAIR),
    "cancelled letters": (CANCELLED,),
    "cancelled receivers": (CANCELLED,),
    "cancelled operated": (CANCELLED,),
    "delayed rewound": (DELAYED, REWOUND),
    "delayed flow": (DELAYED, FLOW),
    "half rewound": (HALF, REWOUND),
    "fair ages": (FAIR,),
    "purged duplicates": (),
    "paused groups": (PAUSED,),
    "paused URLs": (PAUSED,),
    "paused functions": (PAUSED, TRIGGERS),
    "redriven queues": (REDRIVEN,),
    "redriven groups": (REDRIVEN,),
    "redriven functions": (REDRIVEN, TRIGGERS),
    "redriven URLs": (REDRIVEN,),
    "late objects": (OBJECTS,),
    "overdue halves": (HALF,),
    "untried letters": (UNTRIED,),
    "untried groups": (UNTRIED,),
    "rewound letters": (),
    "shared functions": (TRIGGERS,),
    "redelivered groups": (REDELIVERED,),
    "redelivered rewound": (REDELIVERED, REWOUND),
    "redelivered URLs": (REDELIVERED,),
    "granted queues": (GRANTED,),
    "granted topics": (GRANTED,),
    "chosen groups": (CHOSEN,),
    "chosen fair": (CHOSEN, FAIR),
    "chosen attributes": (CHOSEN,),
    "paused queues": (PAUSED,),
    "paused ages": (PAUSED,),
    "priority queues": (PRIORITY,),
    "priority letters": (PRIORITY,),
    "priority copies": (PRIORITY,),
    "notified copies": (REDRIVEN,),
    "rated queues": (),
}
"""Name -> the families of which it has something."""
FIRST_SEEDS_OF_PAIRS = {name: 8_000_000 + 10_000 * number for number, name in enumerate(PAIRS)}
ORDERS, DEAD = Place("orders"), Place("dead")
LATE = Place("orders/late")
NEWS = Place("news", topic=True)
