"""A resource's messages and bytes by the meter's counters: for limits and large counts.

A resource without messages for an hour has no counter: the counters are the list of resources with
messages, and an idle resource costs a reader of all counters nothing. The meter adds to a counter,
whether it exists or not, and a counter of exactly 0 may be removed at any time: that is the same.

    meter   + 1 ──> 1 ...... - 1 ──> 0 ................... + 1, none there ──> 1
    sweep                               an hour: removed

The meter counts up to a minute late, so a sender that finds no counter makes one, with 0, before
it stores its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.runtime.store import Item, key, shard_key, shard_keys
from cirrusmq.storage.rate_counters import number_in, past_rates, rates_in

COUNTERS = "C"
"""Kind of the partition keys of all counters."""
_TOGETHER = 16
EMPTY_MINUTES = 60
"""A counter that is 0 for this time is removed; one that changes each minute is not made again."""


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

    @property
    def rates(self) -> dict[str, int]:
        """Its numbers of intervals, by their attributes."""
        return rates_in(self.item)


class CounterPlace(msgspec.Struct, frozen=True):
    """A position in a pass through the counters: behind `after` of a shard."""

    shard: int = 0
    after: str = ""


def counter_place(resource_id: str) -> tuple[str, str]:
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
    return {
        "TableName": core.tables.usage,
        "Key": key(*counter_place(resource_id)),
        "UpdateExpression": "ADD "
        + ", ".join(f"#{name} :{name}" for name in numbers)
        + " SET changed = :minute",
        "ExpressionAttributeNames": {f"#{name}": name for name in numbers},
        "ExpressionAttributeValues": {
            ":minute": {"N": str(minute)},
            **{f":{name}": {"N": str(number)} for name, number in numbers.items()},
        },
    }


def counter_items(core: Core, resource_ids: Sequence[str]) -> dict[str, Item]:
    """Returns the counters that exist, as they are stored, by id; half a read unit for each."""
    found: dict[str, Item] = {}
    for first in range(0, len(resource_ids), _TOGETHER):
        places = list(map(counter_place, resource_ids[first : first + _TOGETHER]))
        items = core.store.get_many(core.tables.usage, places, consistent=False)
        found |= {resource_id: item for (_, resource_id), item in items.items()}
    return found


def read_kept(core: Core, resource_id: str) -> Kept:
    """Returns the counter of a queue, receiver or subscription, as the meter last left it."""
    return kept_in(core.store.get(core.tables.usage, *counter_place(resource_id)) or {})


def kept(core: Core, resource_id: str) -> int:
    """Returns the messages kept in a queue that is about to get some, at most a minute late."""

    def load() -> int:
        item = core.store.get(core.tables.usage, *counter_place(resource_id))
        if item is None:
            note_use(core, resource_id)
        return kept_in(item or {}).messages

    return core.slow_cache.get(("kept", resource_id), load)


def note_use(core: Core, resource_id: str) -> None:
    """Writes a counter, for an hour at least, since the resource may get messages now."""
    minute = {":minute": {"N": str(core.now_ms() // 60_000)}}
    request = {
        "TableName": core.tables.usage,
        "Key": key(*counter_place(resource_id)),
        "UpdateExpression": "SET changed = :minute",
        "ExpressionAttributeValues": minute,
    }
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
