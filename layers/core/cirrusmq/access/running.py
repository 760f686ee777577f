"""Counts of an account's work that runs at the same time, each a small item of the Usage table.

An item counts by the second at which work ends at last:

    end      12:00:05   12:00:07   12:00:21        now 12:00:06: 1 + 5 run
    running         2          1          5        those of 12:00:05 are over, or have crashed

Work that lasts to its end leaves nothing to be done: its second passes. Work that ends before takes
itself out. So it costs one write unit, two if it ends before. A bound by such a count is exact but
for work that begins in the same moment as other work: that may all be turned away. A count that
fails turns nothing away.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key

PAST_SECONDS = 10
"""So long after its end no clock takes a second for one to come."""
_MOST_PAST = 20
_KEPT_SECONDS = 3_600
_EXPIRES = "expires_at"


def counts_place(account: str, name: str) -> tuple[str, str]:
    """Key in the Usage table of an account's counts of this name."""
    return f"T#{account}", name


@contextlib.contextmanager
def counted(core: Core, account: str, name: str, until_ms: int, bound: int) -> Iterator[bool]:
    """Whether one more may run until then beside `bound` - 1 others; counted while it does."""
    end = -(-until_ms // 1000)
    counts = add(core, account, name, end, 1)
    admitted = counts is None or present(counts, core.now_ms()) <= bound
    try:
        yield admitted
    finally:
        if counts is not None:
            if core.now_ms() < end * 1000:
                add(core, account, name, end, -1)
            forget_past(core, account, name, counts)


def present(counts: dict[int, int], now_ms: int) -> int:
    """How many have not come to their end."""
    return sum(count for end, count in counts.items() if end * 1000 > now_ms)


def read(core: Core, account: str, name: str) -> dict[int, int]:
    """The counts by their seconds, eventually consistent."""
    item = core.store.get(core.tables.usage, *counts_place(account, name), consistent=False)
    return {} if item is None else _counts(item)


def add(core: Core, account: str, name: str, end: int, count: int) -> dict[int, int] | None:
    """Count in or out; the counts by their seconds, None where that failed."""
    request = {
        "UpdateExpression": "ADD #end :count SET #expires = :expires",
        "ExpressionAttributeNames": {"#end": str(end), "#expires": _EXPIRES},
        "ExpressionAttributeValues": {
            ":count": {"N": str(count)},
            ":expires": {"N": str(end + _KEPT_SECONDS)},
        },
    }
    item = _update(core, account, name, request)
    return None if item is None else _counts(item)


def forget(core: Core, account: str, name: str) -> None:
    """Count nothing any more: what ran is certainly over."""
    core.store.write(
        "DeleteItem",
        {"TableName": core.tables.usage, "Key": key(*counts_place(account, name))},
    )


def _counts(item: Item) -> dict[int, int]:
    return {int(name): int(held["N"]) for name, held in item.items() if name.isdigit()}


def forget_past(core: Core, account: str, name: str, counts: dict[int, int]) -> None:
    """Remove seconds that have passed, some at a time: the item stays within one unit."""
    past = [end for end in counts if end < core.now_ms() // 1000 - PAST_SECONDS]
    if len(past) < _MOST_PAST:
        return
    names = {f"#s{number}": str(end) for number, end in enumerate(past)}
    request = {
        "UpdateExpression": "REMOVE " + ", ".join(names),
        "ExpressionAttributeNames": names,
    }
    _update(core, account, name, request)


def _update(core: Core, account: str, name: str, request: dict[str, Any]) -> Item | None:
    """The item as an update leaves it; None where the store fails, which ends no work."""
    place = {"TableName": core.tables.usage, "Key": key(*counts_place(account, name))}
    try:
        return core.store.write("UpdateItem", {**place, **request, "ReturnValues": "ALL_NEW"}) or {}
    except Exception:
        return None
