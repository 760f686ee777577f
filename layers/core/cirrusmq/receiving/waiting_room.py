"""A bound of the receives of an account that wait at the same time, where a deployment sets one.

One small item an account counts those that wait, by the second at which each wait ends at last:

    end      12:00:05   12:00:07   12:00:21        now 12:00:06: 1 + 5 wait
    waiting         2          1          5        those of 12:00:05 are over, or have crashed

A receive that waits out its time leaves nothing to be done: its second passes. One that ends
before takes itself out. So a wait costs one write unit, two if a message ends it, and nothing
without a bound, or where the wait is short. The bound is exact but for receives that begin in the
same moment as others: those may all be turned away. A count that fails turns nobody away.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key

COUNTED_MS = 1_000
"""Of a wait that is longer than this: others are over before they are counted."""
PAST_SECONDS = 10
"""So long after its end no clock takes a second for one to come."""
_MOST_PAST = 20
_KEPT_SECONDS = 3_600
_EXPIRES = "expires_at"


def waiting_place(account: str) -> tuple[str, str]:
    """Key in the Usage table of the receives of an account that wait."""
    return f"T#{account}", "waiting"


@contextlib.contextmanager
def waiting(core: Core, account: str, until_ms: int) -> Iterator[bool]:
    """Whether one more receive of the account may wait until then; counted while it does."""
    bound = core.settings.account_waiting_receives
    if not bound or until_ms - core.now_ms() <= COUNTED_MS:
        yield True
        return
    end = -(-until_ms // 1000)
    counts = _add(core, account, end, 1)
    admitted = counts is None or _present(counts, core.now_ms()) <= bound
    try:
        yield admitted
    finally:
        if counts is not None:
            if core.now_ms() < end * 1000:
                _add(core, account, end, -1)
            _forget_past(core, account, counts)


def _present(counts: dict[int, int], now_ms: int) -> int:
    return sum(count for end, count in counts.items() if end * 1000 > now_ms)


def _add(core: Core, account: str, end: int, count: int) -> dict[int, int] | None:
    """Count a wait in or out; the counts by their seconds, None where that failed."""
    request = {
        "UpdateExpression": "ADD #end :count SET #expires = :expires",
        "ExpressionAttributeNames": {"#end": str(end), "#expires": _EXPIRES},
        "ExpressionAttributeValues": {
            ":count": {"N": str(count)},
            ":expires": {"N": str(end + _KEPT_SECONDS)},
        },
    }
    item = _update(core, account, request)
    if item is None:
        return None
    return {int(name): int(held["N"]) for name, held in item.items() if name.isdigit()}


def _forget_past(core: Core, account: str, counts: dict[int, int]) -> None:
    """Remove seconds that have passed, some at a time: the item stays within one unit."""
    past = [end for end in counts if end < core.now_ms() // 1000 - PAST_SECONDS]
    if len(past) < _MOST_PAST:
        return
    names = {f"#s{number}": str(end) for number, end in enumerate(past)}
    request = {
        "UpdateExpression": "REMOVE " + ", ".join(names),
        "ExpressionAttributeNames": names,
    }
    _update(core, account, request)


def _update(core: Core, account: str, request: dict[str, Any]) -> Item | None:
    """The item as an update leaves it; None where the store fails, which ends no receive."""
    place = {"TableName": core.tables.usage, "Key": key(*waiting_place(account))}
    try:
        return core.store.write("UpdateItem", {**place, **request, "ReturnValues": "ALL_NEW"}) or {}
    except Exception:
        return None
