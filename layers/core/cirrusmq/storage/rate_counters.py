"""A resource's last hour, in its counter: how many messages of each kind, by intervals.

The meter adds to the interval of the stream's record, in the write by which it changes the counter.
Each kind has a separate attribute for an interval, and a counter of a busy queue has at most 1 KB
with them: the write costs the same as without.

    s4711 = 12   12 messages sent in interval 4711     interval: five minutes since the epoch,
    k4711 = -3   3 messages fewer kept at its end      modulo 10,000 (34 days)

The sweep moves past intervals to their day (`rate_history`), several at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from cirrusmq.base.limits import RATE_INTERVAL_SECONDS, RATE_INTERVALS
from cirrusmq.runtime.store import Item

INTERVAL_MS = RATE_INTERVAL_SECONDS * 1_000
LETTERS: Mapping[str, str] = {
    "sent": "s",
    "received": "r",
    "deleted": "d",
    "expired": "e",
    "dead_lettered": "l",
    "published": "p",
    "delivered": "v",
    "attempts": "a",
    "dropped": "x",
    "rewound": "w",
    "kept": "k",
}
"""The first letter of a kind's attributes; `kept` is the change of the messages that are kept."""
_NAME = re.compile(f"[{''.join(LETTERS.values())}][0-9]{{4}}")
_WRAP = 10_000
_SLACK = 6
"""Intervals that may be past before a write moves them."""
_MOVED = 100
"""Attributes that one write moves: an expression has at most 300 operators."""


def rate_name(kind: str, time_ms: int) -> str:
    """Returns the attribute of a kind and of the interval that has this time."""
    return _name(kind, time_ms // INTERVAL_MS)


def interval_starts(now_ms: int) -> list[int]:
    """Returns when the intervals of the last hour began, in ms; the running one is the last."""
    last = now_ms // INTERVAL_MS
    return [each * INTERVAL_MS for each in range(last + 1 - RATE_INTERVALS, last + 1)]


def read_counts(items: Sequence[Item], kind: str, now_ms: int) -> list[int]:
    """Returns the counters' sum of a kind for each interval of the last hour."""
    names = [rate_name(kind, start) for start in interval_starts(now_ms)]
    return [sum(number_in(item, name) for item in items) for name in names]


def past_rates(names: Iterable[str], now_ms: int) -> list[str]:
    """Returns attributes that nobody reads any more; an empty list while they are few."""
    last = now_ms // INTERVAL_MS
    if not any(map(_NAME.fullmatch, set(names) - _names(last, RATE_INTERVALS + _SLACK))):
        return []
    past = set(names) - _names(last, RATE_INTERVALS)
    return sorted(filter(_NAME.fullmatch, past))[:_MOVED]


def rates_in(item: Item) -> dict[str, int]:
    """Returns the numbers of a counter's intervals, by attribute."""
    return {name: number_in(item, name) for name in item if _NAME.fullmatch(name)}


def interval_of(name: str, now_ms: int) -> int:
    """Returns the interval of an attribute of at most a month ago, counted from the epoch."""
    newest = now_ms // INTERVAL_MS + 1  # the clocks of two functions differ
    return newest - (newest - int(name[1:])) % _WRAP


@lru_cache(maxsize=4)
def _names(last: int, intervals: int) -> frozenset[str]:
    """Returns the attributes of the intervals, and of one more, since two clocks differ."""
    around = range(last + 1 - intervals, last + 2)
    return frozenset(_name(kind, interval) for kind in LETTERS for interval in around)


@lru_cache(maxsize=64)
def _name(kind: str, interval: int) -> str:
    return f"{LETTERS[kind]}{interval % _WRAP:04}"


def number_in(item: Item, name: str) -> int:
    """Returns a number of a counter; 0 if it has none of the name."""
    return int(item[name]["N"]) if name in item else 0
