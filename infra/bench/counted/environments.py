"""Keys that each execution environment of a function reads or writes, at any load.

The engine counts the reads by one environment in `DocumentSeconds`, for a consumer's receive and a
producer's send. The rate of its reports of an account's calls follows from the code's rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from cirrusmq.access.throttle import INTERVALS, next_interval
from cirrusmq.base.limits import DOCUMENT_SECONDS, SLOW_CACHE_MS
from cirrusmq.runtime.cache import Cache
from cirrusmq_local.testing.world import World

from .keys import Keys, Units

ENVIRONMENTS = (100, 1_000, 3_500)
PER_SECOND = 2_000
"""Maximum of environments / `DocumentSeconds`, so that reads do not use up a key's capacity."""
_RATE = 1_000
_FAMILIES = {"T#": "calls of the account", "K#": "access key", "A#": "queue"}


@dataclass(frozen=True)
class Heat:
    """Units per second on a key, by a number of environments."""

    environments: int
    seconds: int
    """`DocumentSeconds`."""
    key: str
    units: Units


def document_seconds(environments: int) -> int:
    """Returns the cache life of documents that a number of environments of one account needs."""
    shortest, longest = DOCUMENT_SECONDS
    return min(max(shortest, -(-environments // PER_SECOND)), longest)


def reports_per_second(environments: int) -> float:
    """Returns reports of one account's calls per second, from environments under constant load."""
    interval = INTERVALS[0]
    while (following := next_interval(interval, environments / interval)) != interval:
        interval = following
    return environments / interval


def heat_by_environments() -> list[Heat]:
    """Returns units per second on each key whose load grows with environments."""
    one = _reads_of_one()
    found = []
    for environments in ENVIRONMENTS:
        seconds = document_seconds(environments)
        for prefix, name in _FAMILIES.items():
            units = one[prefix].times(environments / seconds)
            if prefix == "T#":
                units = Units(writes=one[prefix].writes * reports_per_second(environments))
            found.append(Heat(environments, seconds, name, units))
    return found


def _reads_of_one() -> dict[str, Units]:
    """Returns units of one environment's call after its cached documents expired: the maximum."""
    world = World(shared_caches=False)
    alice = world.client("alice")
    settings = replace(world.core.settings, account_requests_per_second=_RATE)
    cache = Cache(world.clock, 1_000, shared=False)
    world.core = replace(world.core, settings=settings, cache=cache, memories={})
    alice.put("/queues/orders")
    calls: tuple[Callable[[], object], ...] = (
        lambda: alice.receive("orders"),
        lambda: alice.send("orders", "x"),
    )
    keys = Keys(world)
    limit = dict.fromkeys(_FAMILIES, Units())
    for call in calls:
        for _ in range(2):  # documents that are cached for a minute are read only by the first
            world.clock.pass_seconds(SLOW_CACHE_MS / 1_000 / 60 + 0.5)
            keys.take()
            call()
            taken = keys.take()
        for prefix in limit:
            held = [units for pk, units in taken.items() if pk.startswith(prefix)]
            total = sum(held, Units())
            limit[prefix] = max(limit[prefix], total, key=lambda each: (each.writes, each.reads))
    world.engine.close()
    return limit
