"""The last hour of some resources, as the meter counted it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage.counters import counter_items, kept_in
from cirrusmq.storage.rate_counters import LETTERS, read_counts


class Rates(msgspec.Struct, frozen=True):
    """Numbers by interval, the oldest first."""

    happened: Mapping[str, Sequence[int]]
    """Messages of each kind of usage, and `attempts`: posts."""
    kept: Sequence[int]
    """Messages kept at each interval's end, or now."""


def read_rates(core: Core, sources: Sequence[Sequence[str]], now_ms: int) -> list[Rates]:
    """The last hour of each resource, by the ids of its sources; half a read unit for each id.

    The sums are those of usage records: a batch that the stream repeats is counted once. What is
    taken back later than its interval, as a claim that was undone, can make one smaller than 0;
    it is 0 then.
    """
    items = counter_items(core, [each for ids in sources for each in ids])
    return [_rates([items[each] for each in ids if each in items], now_ms) for ids in sources]


def _rates(items: Sequence[Item], now_ms: int) -> Rates:
    happened = {
        kind: [max(0, number) for number in read_counts(items, kind, now_ms)]
        for kind in LETTERS
        if kind != "kept"
    }
    return Rates(happened, _kept(items, now_ms))


def _kept(items: Sequence[Item], now_ms: int) -> list[int]:
    """Back from what is kept now, by the changes of each later interval."""
    now = sum(kept_in(item).messages for item in items)
    changes = read_counts(items, "kept", now_ms)
    back = accumulate(reversed(changes[1:]), lambda kept, change: kept - change, initial=now)
    return [max(0, number) for number in back][::-1]
