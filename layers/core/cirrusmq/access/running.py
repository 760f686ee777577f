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
from typing import Any, TypeAlias

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key, prefix_request

Place: TypeAlias = tuple[str, str]
"""A key of the Usage table: `pk`, `sk`."""
PAST_SECONDS = 10
"""Seconds after its end at which a second is past by every clock."""
_MAX_PAST = 20
_KEPT_SECONDS = 3_600
_EXPIRES = "expires_at"


def counts_key(account: str, name: str) -> Place:
    """Key in the Usage table of an account's counts of this name."""
    return f"T#{account}", name


def pool_key(pool: str, account: str) -> Place:
    """Key in the Usage table of an account's counts in a pool, beside other accounts' counts."""
    return f"T#*{pool}", account


@contextlib.contextmanager
def counted(core: Core, place: Place, until_ms: int) -> Iterator[int]:
    """Counts one more until then, or until the block ends.

    Returns how many run with this one, or 0 if the count failed.
    """
    end = -(-until_ms // 1000)
    counts = add(core, place, end, 1)
    try:
        yield 0 if counts is None else present(counts, core.now_ms())
    finally:
        if counts is not None:
            if core.now_ms() < end * 1000:
                add(core, place, end, -1)
            forget_past(core, place, counts)


def present(counts: dict[int, int], now_ms: int) -> int:
    """Returns how many have not come to their end."""
    return sum(count for end, count in counts.items() if end * 1000 > now_ms)


def read(core: Core, place: Place) -> dict[int, int]:
    """The counts by their seconds, eventually consistent."""
    item = core.store.get(core.tables.usage, *place, consistent=False)
    return {} if item is None else _counts(item)


def read_pool(core: Core, pool: str, limit: int) -> dict[str, int] | None:
    """How many run in a pool by account, eventually consistent.

    limit: accounts that are read. Returns None if more had something at work within the last hour.
    """
    request = prefix_request(core.tables.usage, pool_key(pool, "")[0], consistent=False)
    items, last, _ = core.store.query(request | {"Limit": limit})
    if last is not None:
        return None
    now_ms = core.now_ms()
    return {item["sk"]["S"]: present(_counts(item), now_ms) for item in items}


def add(core: Core, place: Place, end: int, count: int) -> dict[int, int] | None:
    """Counts in or out. Returns the counts by their seconds, or None if that failed."""
    request = {
        "UpdateExpression": "ADD #end :count SET #expires = :expires",
        "ExpressionAttributeNames": {"#end": str(end), "#expires": _EXPIRES},
        "ExpressionAttributeValues": {
            ":count": {"N": str(count)},
            ":expires": {"N": str(end + _KEPT_SECONDS)},
        },
    }
    item = _update(core, place, request)
    return None if item is None else _counts(item)


def forget(core: Core, place: Place) -> None:
    """Removes the counts of a place whose invocations are certainly over."""
    core.store.write(
        "DeleteItem",
        {"TableName": core.tables.usage, "Key": key(*place)},
    )


def _counts(item: Item) -> dict[int, int]:
    return {int(name): int(held["N"]) for name, held in item.items() if name.isdigit()}


def forget_past(core: Core, place: Place, counts: dict[int, int]) -> None:
    """Removes seconds that have passed, some at a time: the item stays within one unit."""
    past = [end for end in counts if end < core.now_ms() // 1000 - PAST_SECONDS]
    if len(past) < _MAX_PAST:
        return
    names = {f"#s{number}": str(end) for number, end in enumerate(past)}
    request = {
        "UpdateExpression": "REMOVE " + ", ".join(names),
        "ExpressionAttributeNames": names,
    }
    _update(core, place, request)


def _update(core: Core, place: Place, request: dict[str, Any]) -> Item | None:
    """Returns the item after the update, or None if the store fails: the work goes on."""
    item = {"TableName": core.tables.usage, "Key": key(*place)}
    try:
        return core.store.write("UpdateItem", {**item, **request, "ReturnValues": "ALL_NEW"}) or {}
    except Exception:
        return None
