"""A resource's last week hour by hour: an item for each day, from past intervals of its counter.

pk `V#<resource id>`, sk the day (since the epoch): `s07 = 40`, 40 messages sent from 07:00 to 08:00
UTC. Each has at most 4 KB, mostly below 1 KB; TTL removes it when it is eight days old. No other
table has this letter: the reports' jobs, also of the release before, refuse an export with it.

The sweep moves past intervals into their day, both in one transaction:

    counter   s4711 = 12, s4712 = 3 ──> removed, if they are still 12 and 3
    day       s07 = 40              ──> s07 = 55

    the meter adds late to s4711: refused, and the next sweep moves the new number
    the answer is lost, the SDK tries again: refused, for s4711 is gone
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import (
    ConditionFailed,
    Item,
    TransactionRefused,
    key,
    number_in,
    set_request,
)
from cirrusmq.storage.counters import (
    EMPTY_MINUTES,
    INTERVAL_MS,
    LETTERS,
    Counter,
    Kept,
    counter_key,
    interval_of,
    rates_in,
)

HOUR_MS = 3_600_000
_DAY_HOURS = 24
_INTERVALS = HOUR_MS // INTERVAL_MS
_KEPT_DAYS = 8
_REFUSED = (ConditionFailed, TransactionRefused)

Hours = Mapping[str, Sequence[int]]
"""Kind → its number in each hour, the oldest first."""


def move_past(core: Core, counter: Counter) -> None:
    """Moves the intervals of the oldest day that nobody reads any more into that day's item.

    Four write units, or five if the day has more than 1 KB.
    """
    now_ms, rates = core.now_ms(), rates_in(counter.item)
    days = {name: _hour(name, now_ms) // _DAY_HOURS for name in counter.past}
    oldest = min(days.values())
    moved = {name: rates[name] for name, day in days.items() if day == oldest}
    update = {
        "TableName": core.tables.usage,
        "Key": key(*counter_key(counter.resource_id)),
        "UpdateExpression": "REMOVE " + ", ".join(f"#{name}" for name in moved),
        "ConditionExpression": " AND ".join(f"#{name} = :{name}" for name in moved),
        "ExpressionAttributeNames": {f"#{name}": name for name in moved},
        "ExpressionAttributeValues": {f":{name}": _number(rate) for name, rate in moved.items()},
    }
    with contextlib.suppress(*_REFUSED):
        core.store.transact(
            [{"Update": update}, *_additions(core, counter.resource_id, moved, now_ms)]
        )


def remove_empty(core: Core, counter: Counter) -> None:
    """Removes a counter that has been exactly 0 for an hour; its day keeps its rates."""
    now_ms = core.now_ms()
    delete: dict[str, Any] = {
        "TableName": core.tables.usage,
        "Key": key(*counter_key(counter.resource_id)),
        # A writer that adds to it after the read writes a later minute.
        "ConditionExpression": " AND ".join(
            f"(attribute_not_exists(#{name[0]}) OR #{name[0]} = :none)" for name in Kept._fields
        )
        + " AND changed <= :minute",
        "ExpressionAttributeNames": {f"#{name[0]}": name for name in Kept._fields},
        "ExpressionAttributeValues": {
            ":none": _number(0),
            ":minute": _number(now_ms // 60_000 - EMPTY_MINUTES),
        },
    }
    additions = _additions(core, counter.resource_id, rates_in(counter.item), now_ms)
    with contextlib.suppress(*_REFUSED):
        if additions:
            core.store.transact([{"Delete": delete}, *additions])
        else:
            core.store.write("DeleteItem", delete)


def read_hours(
    core: Core, counters: Mapping[str, Item], resource_ids: Sequence[str], hours: int, now_ms: int
) -> dict[str, Hours]:
    """Returns the last hours of each resource, with its counter's numbers; the last one still runs.

    counters: the existing ones, as they are stored. Half a read unit a resource and day.
    """
    first = now_ms // HOUR_MS + 1 - hours
    days = range(first // _DAY_HOURS, now_ms // HOUR_MS // _DAY_HOURS + 1)
    keys = [_item_key(each, day) for each in resource_ids for day in days]
    found = core.store.get_many(core.tables.usage, keys, consistent=False)
    read: dict[str, Hours] = {}
    for resource_id in resource_ids:
        sums: dict[tuple[str, int], int] = defaultdict(int)
        for day in days:
            item = found.get(_item_key(resource_id, day), {})
            for letter in LETTERS.values():
                for hour in range(_DAY_HOURS):
                    number = number_in(item, f"{letter}{hour:02}")
                    sums[letter, day * _DAY_HOURS + hour] += number
        for name, number in rates_in(counters.get(resource_id, {})).items():
            sums[name[0], _hour(name, now_ms)] += number
        read[resource_id] = {
            kind: [sums[letter, first + each] for each in range(hours)]
            for kind, letter in LETTERS.items()
        }
    return read


def _additions(
    core: Core, resource_id: str, rates: Mapping[str, int], now_ms: int
) -> list[dict[str, Any]]:
    """Returns updates that add intervals of a counter to their days."""
    by_day: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, number in rates.items():
        day, hour = divmod(_hour(name, now_ms), _DAY_HOURS)
        by_day[day][f"{name[0]}{hour:02}"] += number
    updates = []
    for day, sums in by_day.items():
        expires: Item = {"expires_at": _number((day + 1 + _KEPT_DAYS) * _DAY_HOURS * 3_600)}
        place = _item_key(resource_id, day)
        updates.append({"Update": set_request(core.tables.usage, place, expires, sums)})
    return updates


def _hour(name: str, now_ms: int) -> int:
    """Returns the hour, since the epoch, of an interval's attribute."""
    return interval_of(name, now_ms) // _INTERVALS


def _item_key(resource_id: str, day: int) -> tuple[str, str]:
    return f"V#{resource_id}", f"{day:05}"


def _number(value: int) -> Item:
    return {"N": str(value)}
