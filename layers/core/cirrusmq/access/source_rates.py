"""Rates of queues and receivers: messages a second, in an item that environments take from.

    item, rate 100     10:00:01  n = 0   20   40   60   80   100 ........  10:00:02  n = 20
    environment A                   20        20        20                              20
    environment B                        20        20        refused: none left, to 10:00:02

An environment takes for several messages at a time if it used several in the second before, so that
a take, a write unit, serves up to a twentieth of the rate. The rest of a second is lost at its end.
The condition of each take keeps the sum within the rate:

    pk: `T#rate#<source id>`, sk: `send` or `receive`; `s`: the second, `n`: the part taken of it

The groups of a fair source have an item each, if they have a rate: `T#rate#<source id>#<hash>`.
"""

from __future__ import annotations

import threading
from typing import Any, Literal, TypeAlias

import msgspec

from cirrusmq.base.errors import BatchTooLarge, Throttled
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, key

Direction: TypeAlias = Literal["send", "receive"]
_LARGEST_SHARE, _USED_SHARE = 20, 4
"""A take is at most a twentieth of the rate, and a quarter of the use of the second before."""
_TRIES = 3
_AHEAD_SECONDS = 5
"""A second that is further ahead than clocks differ was written by a wrong clock."""
_KEPT_SECONDS = 3_600
MAX_HELD = 1_000
"""Rates that an environment remembers; what it has left of the others goes, with its second."""


class _Held(msgspec.Struct):
    """The part of a second that an environment has."""

    second: int = 0
    left: int = 0
    used: int = 0
    used_before: int = 0
    begun: bool = False
    """The item is at this second already."""
    full: bool = False
    """Nothing is left for others."""
    long: bool = False
    """Scans pass the group without reading it while it is full: it has more than a page."""


class RateMemory:
    """The part of each rate that this environment has. Safe to share between threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._held: dict[tuple[str, Direction], _Held] = {}

    def of(self, place: tuple[str, Direction], second: int) -> _Held:
        """Returns what it has of a second, made new when the second is."""
        held = self._held.get(place)
        if held is None or held.second != second:
            last = held.used if held is not None and held.second == second - 1 else 0
            # Put at the end, so the first one is the rate whose second began first.
            self._held.pop(place, None)
            if len(self._held) >= MAX_HELD:
                del self._held[next(iter(self._held))]
            held = self._held[place] = _Held(second=second, used_before=last)
        return held

    def is_full(self, place: tuple[str, Direction], second: int) -> bool:
        """Returns True if it is known that nothing is left of a second, here or in the item."""
        held = self._held.get(place)
        return held is not None and held.second == second and held.full and not held.left

    def long_groups(self, source_id: str, second: int) -> list[str]:
        """Returns the hashes of a source's groups that are full and long, in their order."""
        begin = f"{source_id}#"
        return sorted(
            place[0][len(begin) :]
            for place, held in self._held.items()
            if held.long and place[0].startswith(begin) and self.is_full(place, second)
        )


def take_sends(core: Core, queue_id: str, rate: int, count: int) -> None:
    """Takes units of the rate for the messages of one call, for all or none.

    Raises Throttled if this second has no room for them, BatchTooLarge if none has.
    """
    if count > rate:
        raise BatchTooLarge(f"the queue takes at most {rate:,} messages a second (send_rate)")
    if not _take(core, (queue_id, "send"), rate, count, count):
        raise Throttled(f"the queue takes {rate:,} messages a second (send_rate)", 1)


def allow_receives(core: Core, source_id: str, rate: int, limit: int) -> int:
    """Returns how many messages may be received now, 0 to `limit`."""
    return _take(core, (source_id, "receive"), rate, limit, 1)


def second_of(core: Core) -> int:
    """Returns the second that a take begins in, by this environment's clock."""
    return core.now_ms() // 1_000


def give_back(core: Core, source_id: str, count: int, second: int) -> None:
    """Keeps what a receive did not use for the next one of this environment and second.

    second: read before the take. A part of an earlier second would be more than the rate of this:

        10:00:01  takes 5 ──── claims nothing      10:00:02  another takes all ── 5 given back
    """
    if second_of(core) != second:
        return
    memory = core.memory(RateMemory)
    with memory.lock:
        held = memory.of((source_id, "receive"), second)
        if held.used >= count:
            held.left += count
            held.used -= count


def _take(core: Core, place: tuple[str, Direction], rate: int, limit: int, least: int) -> int:
    """Returns for how many of `limit` messages there is room; 0 if for fewer than `least`."""
    memory, second = core.memory(RateMemory), second_of(core)
    with memory.lock:
        held = memory.of(place, second)
        missing = limit - held.left
        usual = min(held.used_before // _USED_SHARE, rate // _LARGEST_SHARE)
        ask = 0 if missing <= 0 or held.full else min(rate, max(missing, usual))
        needed, begun = max(1, least - held.left), held.begun
    got = _take_of_item(core, place, rate, second, ask, needed, begun=begun) if ask else 0
    with memory.lock:
        held = memory.of(place, second)
        held.left += got
        held.begun = True
        # A batch that finds too little does not say that a smaller one would.
        held.full = held.full or (got < ask and (got > 0 or needed == 1))
        held.full = held.full or held.left + held.used >= rate
        given = min(limit, held.left)
        given = given if given >= least else 0
        held.left -= given
        held.used += given
    return given


def _take_of_item(
    core: Core,
    place: tuple[str, Direction],
    rate: int,
    second: int,
    ask: int,
    needed: int,
    *,
    begun: bool,
) -> int:
    """Takes up to `ask` of the item's second; 0 if it has not even `needed`.

    An item that is ahead, by a clock that is, is taken from as it is.
    """
    if not begun:
        stored = _begin(core, place, second, ask)
        if stored is None:
            return ask
        second, ask = stored[0], min(ask, rate - stored[1])
    for _ in range(_TRIES):
        if ask < needed:
            return 0
        stored = _add(core, place, second, ask, rate)
        if stored is None:
            return ask
        second, ask = stored[0], min(ask, rate - stored[1])
    return 0


def _begin(
    core: Core, place: tuple[str, Direction], second: int, count: int
) -> tuple[int, int] | None:
    """Begins a second with this take; returns (second, taken) of the item if it has one."""
    return _write(
        core,
        place,
        "attribute_not_exists(pk) OR s < :s OR s > :far",
        "SET s = :s, n = :n, expires_at = :x",
        {
            ":s": second,
            ":n": count,
            ":far": second + _AHEAD_SECONDS,
            ":x": second + _KEPT_SECONDS,
        },
    )


def _add(
    core: Core, place: tuple[str, Direction], second: int, count: int, rate: int
) -> tuple[int, int] | None:
    """Takes more of a second; returns (second, taken) of the item if it has too little left."""
    return _write(
        core,
        place,
        "s = :s AND n <= :most",
        "SET n = n + :n",
        {":s": second, ":n": count, ":most": rate - count},
    )


def _write(
    core: Core, place: tuple[str, Direction], condition: str, update: str, values: dict[str, int]
) -> tuple[int, int] | None:
    source_id, direction = place
    request: dict[str, Any] = {
        "TableName": core.tables.usage,
        "Key": key(f"T#rate#{source_id}", direction),
        "ConditionExpression": condition,
        "UpdateExpression": update,
        "ExpressionAttributeValues": {name: {"N": str(value)} for name, value in values.items()},
    }
    try:
        core.store.write("UpdateItem", request)
    except ConditionFailed as failed:
        if failed.item is None:
            return 0, 1 << 40  # it went at the end of its life: the next second begins it
        return int(failed.item["s"]["N"]), int(failed.item["n"]["N"])
    return None
