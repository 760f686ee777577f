"""A resource's messages and bytes by the meter's counters: for limits and large counts.

A resource without messages for an hour has no counter: the counters are the list of resources with
messages, and an idle resource costs a reader of all counters nothing. The meter adds to a counter,
whether it exists or not, and a counter of exactly 0 may be removed at any time: that is the same.

    meter   + 1 ──> 1 ...... - 1 ──> 0 ................... + 1, none there ──> 1
    sweep                               an hour: removed

The meter counts up to a minute late, so a sender that finds no counter makes one, with 0, before
it stores its messages.

A counter has the last hour in it, too: how many messages of each kind, by intervals. The meter adds
to the interval of the stream's record, in the write by which it changes the counter. Each kind has
a separate attribute for an interval, and a counter of a busy queue has at most 1 KB with them: the
write costs the same as without.

    s4711 = 12   12 messages sent in interval 4711     interval: five minutes since the epoch,
    k4711 = -3   3 messages fewer kept at its end      modulo 10,000 (34 days)

The sweep moves past intervals to their day (`rate_history`), several at a time.

With priorities a counter has the messages of each level, too: `q16 = 9` is 9 messages of priority
16. They change in the transaction that changes `messages`, so their sum is the same number. The sum
differs only if a meter of an earlier release, which counts no levels, ran in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from cirrusmq.base.limits import PRIORITIES, RATE_INTERVAL_SECONDS, RATE_INTERVALS
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.runtime.store import Item, number_in, set_request, shard_key, shard_keys

COUNTERS = "C"
"""Kind of the partition keys of all counters."""
_TOGETHER = 16
EMPTY_MINUTES = 60
"""A counter that is 0 for this time is removed; one that changes each minute is not made again."""
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
_ZEROS = 22
"""Digits before the last two of a level in a key."""
_LEVEL = re.compile("q[0-9]{2}")
_WRAP = 10_000
_SLACK = 6
"""Intervals that may be past before a write moves them."""
_MOVED = 100
"""Attributes that one write moves: an expression has at most 300 operators."""


class Kept(NamedTuple):
    """Messages not yet deleted, their bytes, and messages that can be rewound."""

    messages: int = 0
    bytes: int = 0
    rewindable: int = 0


class Counter(msgspec.Struct, frozen=True):
    """A resource's counter as it was read."""

    resource_id: str
    kept: Kept
    holds: bool
    """True if messages may be there: some are counted, or none ever were."""
    empty: bool
    """True if it is exactly 0, and has been for `EMPTY_MINUTES`."""
    item: Item = {}
    """The counter as it is stored."""
    past: Sequence[str] = ()
    """Attributes of intervals that nobody reads any more."""


class CounterPlace(msgspec.Struct, frozen=True):
    """A position in a pass through the counters: behind `after` of a shard."""

    shard: int = 0
    after: str = ""


def counter_key(resource_id: str) -> tuple[str, str]:
    """Returns the key of a resource's counter in the Usage table."""
    return shard_key(COUNTERS, resource_id), resource_id


def change_counter(
    core: Core, resource_id: str, step: Mapping[str, int], minute: int
) -> dict[str, Any]:
    """Returns an update, also for a transaction, that adds to a counter; `step` is by attribute.

    The update writes all fields of `Kept`, whether the step has them or not: without them the
    counter would be one of which nothing is known yet.
    """
    numbers = {**dict.fromkeys(Kept._fields, 0), **step}
    changed: Item = {"changed": {"N": str(minute)}}
    return set_request(core.tables.usage, counter_key(resource_id), changed, numbers)


def counter_items(core: Core, resource_ids: Sequence[str]) -> dict[str, Item]:
    """Returns the counters that exist, as they are stored, by id; half a read unit for each."""
    keys = list(map(counter_key, resource_ids))
    items = core.store.get_many(core.tables.usage, keys, consistent=False)
    return {resource_id: item for (_, resource_id), item in items.items()}


def read_kept(core: Core, resource_id: str) -> Kept:
    """Returns the counter of a queue, receiver or subscription, as the meter last left it."""
    return kept_in(core.store.get(core.tables.usage, *counter_key(resource_id)) or {})


def kept(core: Core, resource_id: str) -> int:
    """Returns the messages kept in a queue that is about to get some, at most a minute late."""

    def load() -> int:
        item = core.store.get(core.tables.usage, *counter_key(resource_id))
        if item is None:
            note_use(core, resource_id)
        return kept_in(item or {}).messages

    return core.slow_cache.get(("kept", resource_id), load)


def note_use(core: Core, resource_id: str) -> None:
    """Writes a counter, for an hour at least, since the resource may get messages now."""
    minute: Item = {"changed": {"N": str(core.now_ms() // 60_000)}}
    request = set_request(core.tables.usage, counter_key(resource_id), minute)
    core.store.write("UpdateItem", request)


def read_counters(core: Core, place: CounterPlace) -> tuple[list[Counter], CounterPlace | None]:
    """Returns a page of the counters from `place` on, and the next page's place or None."""
    shards = shard_keys(COUNTERS)
    pk = shards[place.shard]
    request: dict[str, Any] = {
        "TableName": core.tables.usage,
        "KeyConditionExpression": "pk = :pk AND sk > :after",
        "ExpressionAttributeValues": {":pk": {"S": pk}, ":after": {"S": place.after or "!"}},
    }
    items, last, _ = core.store.query(request)
    now_ms = core.now_ms()
    found = [_counter(item, now_ms) for item in items]
    if last is not None:
        return found, CounterPlace(place.shard, last["sk"]["S"])
    following = place.shard + 1
    return found, CounterPlace(following) if following < len(shards) else None


def read_all_counters(core: Core) -> Iterator[Counter]:
    """Yields every counter, page by page."""
    place: CounterPlace | None = CounterPlace()
    while place is not None:
        counters, place = read_counters(core, place)
        yield from counters


def _counter(item: Item, now_ms: int) -> Counter:
    unchanged = now_ms // 60_000 - number_in(item, "changed")
    zero = all(number_in(item, name) == 0 for name in Kept._fields)
    return Counter(
        resource_id=item["sk"]["S"],
        kept=kept_in(item),
        holds="messages" not in item or number_in(item, "messages") != 0,
        empty=zero and unchanged >= EMPTY_MINUTES,
        item=item,
        past=past_rates(item, now_ms),
    )


def kept_in(item: Item) -> Kept:
    """Returns the kept messages of a stored counter; negative numbers count as 0."""
    return Kept(*(max(0, number_in(item, name)) for name in Kept._fields))


def level_name(priority: int) -> str:
    """Returns the attribute of the messages that are kept of a priority."""
    return f"q{priority:02}"


def level_name_of(sort_key: str) -> str | None:
    """Returns the attribute of the level that a parcel's key begins with, or None without one.

    The hash of a group has 96 bits, so it is not below the number of levels.
    """
    digits = sort_key.partition("#")[0]
    above = int(digits, 16) if digits.startswith("0" * _ZEROS) else PRIORITIES[1]
    return level_name(PRIORITIES[1] - above) if above < PRIORITIES[1] else None


def is_exact(name: str) -> bool:
    """Returns True for an attribute that changes in one transaction with the usage record."""
    return name in Kept._fields or _LEVEL.fullmatch(name) is not None


def levels_in(item: Item) -> dict[int, int] | None:
    """Returns the kept messages of a stored counter by priority, without priorities that have none.

    Returns None if their sum is not `messages`: an earlier release has counted some.
    """
    numbers = {int(name[1:]): number_in(item, name) for name in item if _LEVEL.fullmatch(name)}
    if sum(numbers.values()) != number_in(item, "messages") or min(numbers.values(), default=0) < 0:
        return None
    return {level: number for level, number in numbers.items() if number}


def walk(
    core: Core,
    place: CounterPlace,
    deadline_ms: int,
    visit: Callable[[Counter], None],
) -> CounterPlace | None:
    """Visits resources with messages from `place` on, in parallel. Returns the next place or None.

    It visits some at least, also without time. A visit that fails does not stop the others.
    """

    def safely(counter: Counter) -> None:
        with log_and_continue(f"resource {counter.resource_id} could not be tended"):
            visit(counter)

    following: CounterPlace | None = place
    while following is not None:
        place = following
        found, following = read_counters(core, place)
        for first in range(0, len(found), _TOGETHER):
            some = found[first : first + _TOGETHER]
            list(core.in_own_pool(safely, some))
            if core.now_ms() >= deadline_ms:
                return CounterPlace(place.shard, some[-1].resource_id)
    return None


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
