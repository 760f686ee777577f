"""Faults and durations of calls: a function of the seed and of the call, of nothing else.

Every store call has a name (actor, step, number of the call in the step). Its fate is computed from
that name, so that leaving out another actor, step or fault does not change it: so a failing run can
be made shorter.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from typing import NamedTuple

from cirrusmq_local.judging.clients import CallName
from cirrusmq_local.judging.history import SECRET

READS = frozenset({"Query", "GetItem", "BatchGetItem"})
HTTP = "HTTP"
"""In place of a store's operation: the call of a client."""
PUT, GET, COPY = "PutObject", "GetObject", "CopyObject"
FAULTS = (
    "deserted",
    "answer lost",
    "throttled",
    "hot",
    "unread",
    "unprocessed",
    "unsent",
    "lost",
    "twice",
    "ghost",
    "conflict",
    "crash before",
    "crash after",
    "stale",
    "short",
    "slow",
    "jump",
)
_OF_CALLS = frozenset({"deserted", "answer lost"})
"""The client gets a 503 from the gateway while the function still runs; or it gets no answer."""
_OF_READS = frozenset(
    {"throttled", "unsent", "lost", "crash before", "stale", "short", "slow", "jump"}
)
_OF_WRITES = frozenset(FAULTS) - _OF_CALLS - {"stale", "short", "unprocessed", "hot", "unread"}
_OF_OBJECTS = _OF_READS - {"stale", "short"}
_POSSIBLE = {
    HTTP: _OF_CALLS,
    SECRET: frozenset({"throttled", "unsent", "lost", "crash before"}),
    GET: _OF_OBJECTS,
    PUT: _OF_OBJECTS | {"twice", "ghost", "crash after"},
    COPY: _OF_OBJECTS | {"twice", "ghost", "crash after"},
    "Query": _OF_READS,
    "GetItem": _OF_READS - {"short"},
    "BatchGetItem": _OF_READS - {"short"} | {"unprocessed", "unread"},
    "BatchWriteItem": _OF_WRITES | {"unprocessed"},
    "UpdateItem": _OF_WRITES | {"hot"},
    "PutItem": _OF_WRITES | {"hot"},
    "DeleteItem": _OF_WRITES | {"hot"},
    "TransactWriteItems": _OF_WRITES | {"hot"},
}
"""`hot`: throttled as `throttled` is, but writes alone, and many of them; `unread`: bodies are."""
_PACES = ((0, 2), (1, 9), (2, 60), (20, 700))
SCALE = 10_000
HOT_MS = 3_000
"""How long a partition stays hot, or does not."""
SDK_MS = 36_000
"""Five tries, each with 2 s to connect and 5 s to read."""


class Fate(NamedTuple):
    """The fate of a call: its fault and its times. `draw` is 32 bits for further choices."""

    fault: str | None
    before_ms: int
    after_ms: int
    draw: int


@dataclass(frozen=True, slots=True)
class Profile:
    """How rough a run is: chances of each fault in 10,000 calls, and how fast the store answers."""

    chances: dict[str, int]
    pace_ms: tuple[int, int]
    hot_percent: int = 0
    """So many of the partitions that are written to are throttled at any time."""


def draw_profile(
    seed: int, *, storm: bool = False, calm: bool = False, slow: bool = False
) -> Profile:
    """Some runs are calm, some have few kinds of fault, some all; in some much is too late.

    In a storm the store refuses a lot, and there is no other fault; in a calm there is none. Slow
    calls and lost answers are the faults of a `slow` one.
    """
    draw = random.Random(f"profile {seed}")
    if calm:
        return Profile({}, draw.choice(_PACES[:2]))
    if storm:
        refused = {draw.choice(("hot", "unread")): draw.choice((500, 2_000))}
        return Profile(refused, (1, 9), draw.choice((0, 20)))
    if slow:
        lost = {"lost": draw.choice((0, 300, 1_500)), "answer lost": draw.choice((300, 3_000))}
        return Profile(lost, (300, 3_000))
    kind = draw.random()
    chances: dict[str, int] = {}
    if kind < 0.35:
        chances = {fault: draw.choice((20, 60, 150)) for fault in FAULTS}
    elif kind < 0.85:
        for fault in draw.sample(FAULTS, draw.choice((1, 2, 3))):
            chances[fault] = draw.choice((50, 200, 800))
    elif kind < 0.93:
        chances = {"slow": 2_000, "ghost": 1_000}
    chances.pop("jump", None)
    chances.pop("hot", None)
    chances.pop("unread", None)
    if "deserted" in chances:
        chances |= {"deserted": 300, "answer lost": 300}
    if draw.random() < 0.2:
        chances["hot"] = draw.choice((300, 1_500))
    if draw.random() < 0.2:
        chances["jump"] = 30
    return Profile(chances, draw.choice(_PACES), draw.choice((0, 0, 0, 0, 10, 30)))


class Chaos:
    """The fates of one run."""

    def __init__(
        self, seed: int, profile: Profile, only: frozenset[CallName] | None = None
    ) -> None:
        self._seed = seed
        self._profile = profile
        self._only = only
        self._keys: dict[str, int] = {}
        self.calm = True
        """Whether there are no faults now, and calls take next to no time."""
        self.unfailing = False
        """Whether nothing fails all along, but takes its time."""
        self.fired: list[tuple[CallName, str]] = []

    def draw(self, actor: str, *numbers: int) -> int:
        """32 bits that belong to this name."""
        key = self._keys.get(actor)
        if key is None:
            key = self._keys[actor] = zlib.crc32(actor.encode(), self._seed & 0xFFFFFFFF)
        # Hashes of tuples of integers are the same in every process.
        mixed = hash((key, self._seed, *numbers)) * 0x9E3779B97F4A7C15
        return (mixed >> 24) & 0xFFFFFFFF

    def rng(self, actor: str, step: int) -> random.Random:
        """The random numbers of an actor's step."""
        return random.Random(self.draw(actor, step, -1))

    def fate(self, name: CallName, operation: str) -> Fate:
        """The fate of a call, by its name."""
        draw = self.draw(*name)
        if self.calm:
            return Fate(None, 1, 0, draw)
        low, high = self._profile.pace_ms
        span = high - low + 1
        wait_ms = low + draw % span
        before = bool(draw & 0x10000)
        fault = self._fault(name, operation)
        if operation == HTTP:
            return Fate(fault, 0, 0, draw)
        if fault == "slow":
            longest_ms = SDK_MS if draw & 0x20000 else SDK_MS // 8
            wait_ms = 200 + (draw >> 4) % longest_ms
        return Fate(fault, wait_ms if before else 0, 0 if before else wait_ms, draw)

    def rough_fate(self, name: CallName, operation: str, percent: int) -> Fate:
        """As `fate`, with one of the operation's faults in so many of a hundred calls at least."""
        fate = self.fate(name, operation)
        left_out = self._only is not None and name not in self._only
        draw = self.draw(*name, 19)
        if fate.fault is not None or self.calm or left_out or draw % 100 >= percent:
            return fate
        possible = sorted(_POSSIBLE[operation] - {"slow", "jump"})
        fault = possible[(draw >> 8) % len(possible)]
        self.fired.append((name, fault))
        return fate._replace(fault=fault)

    def is_hot(self, name: CallName, pk: str, now_ms: int) -> bool:
        """Whether the partition of a key that a call writes to is throttled now."""
        if self.calm or not self._profile.hot_percent:
            return False
        if self._only is not None and name not in self._only:
            return False
        hot = self.draw(pk, now_ms // HOT_MS, 13) % 100 < self._profile.hot_percent
        if hot:
            self.fired.append((name, "hot"))
        return hot

    def _fault(self, name: CallName, operation: str) -> str | None:
        if self._only is not None and name not in self._only:
            return None
        left = self.draw(name.actor, name.step, name.call, 7) % SCALE
        possible = _POSSIBLE.get(operation, _OF_READS)
        for fault in FAULTS:
            left -= self._profile.chances.get(fault, 0)
            if left < 0:
                if fault not in possible:
                    return None
                self.fired.append((name, fault))
                return fault
        return None
