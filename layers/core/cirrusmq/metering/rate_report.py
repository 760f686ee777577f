"""The last hour, or the last hours, of some resources, as the meter counted them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import msgspec

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage.counters import LETTERS, counter_items, kept_in, read_counts
from cirrusmq.storage.rate_history import read_hours


class Rates(msgspec.Struct, frozen=True):
    """Numbers by interval, the oldest first."""

    happened: Mapping[str, Sequence[int]]
    """Messages of each kind of usage, and `attempts`: posts."""
    kept: Sequence[int]
    """Messages kept at each interval's end, or now."""


def read_rates(core: Core, sources: Sequence[Sequence[str]], now_ms: int) -> list[Rates]:
    """Returns the last hour of each resource, by its sources' ids; half a read unit for each id.

    The sums are the same as in usage records: a batch that the stream repeats is counted once. A
    count that is taken back later than its interval, as for a claim that was undone, can make an
    interval smaller than 0; it is 0 then.
    """
    items = counter_items(core, [each for ids in sources for each in ids])

    def rates(ids: Sequence[str]) -> Rates:
        some = [items[each] for each in ids if each in items]
        return _rates(some, lambda kind: read_counts(some, kind, now_ms))

    return list(map(rates, sources))


def read_hourly_rates(
    core: Core, sources: Sequence[Sequence[str]], hours: int, now_ms: int
) -> list[Rates]:
    """Does what `read_rates` does, hour by hour; half a read unit more for each id and day."""
    resource_ids = [each for ids in sources for each in ids]
    items = counter_items(core, resource_ids)
    read = read_hours(core, items, resource_ids, hours, now_ms)

    def rates(ids: Sequence[str]) -> Rates:
        some = [items[each] for each in ids if each in items]
        return _rates(
            some,
            lambda kind: [sum(read[each][kind][hour] for each in ids) for hour in range(hours)],
        )

    return list(map(rates, sources))


def _rates(items: Sequence[Item], counts: Callable[[str], Sequence[int]]) -> Rates:
    """Returns the rates of counters `items`; `counts` returns a kind's numbers by interval."""
    happened = {
        kind: [max(0, number) for number in counts(kind)] for kind in LETTERS if kind != "kept"
    }
    # Back from the messages kept now, by the changes of each later interval.
    now = sum(kept_in(item).messages for item in items)
    changes = counts("kept")
    back = accumulate(reversed(changes[1:]), lambda kept, change: kept - change, initial=now)
    return Rates(happened, [max(0, number) for number in back][::-1])
