"""Rounds: what waits in a source, by looks of which each goes on where the one before stopped.

A look reads the first parcels of each partition, and on from there as far as its units go. If that
is not all, an item for the partition has the key where the next look goes on, whoever looks, and
what the round has met so far:

    groups   a b c d e | f g h i j | k l m
    looks    ── 1 ────>  ── 2 ────>  ── 3: the round is over, every group was seen

    a worker   nothing to claim ── looks: not all seen ── 3 s later: looks on ── whole: it leaves
    the sweep  each minute: looks, and wakes a worker that goes on

A look reads 64 units, and the next one goes on 3.2 s later at the earliest: 20 units a second. So a
message that no event told of is found within a minute and the time of two rounds, of which each
takes a second for 160 groups or held parcels of 1 KiB. Where nobody but the sweep looks, a round
takes a minute for 512 of them.

The item only has times that were true when they were read. If two look at once the later write
stays, and some groups are read twice, or a round later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from cirrusmq.base.limits import CALLED_BYTES
from cirrusmq.lifecycle.dead_letters.move import leaves
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.turn_memory import TurnMemory
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import HEAD_MARKS, PARCELS, partition_key, ttl_seconds
from cirrusmq.storage.walk import Bounds, Cut, PartitionScan

LOOK_UNITS = 64.0
"""Read units of a look at a source, its first pages aside."""
PARTITION_UNITS = 2.0
"""Of them, the units of a partition, at least."""
UNITS_PER_SECOND = 20
FREE_UNITS = 8.0
"""A look at a partition that costs no more, and is whole, is not waited for by the next one."""
FIRST_PAGES = 1
"""Pages that every look reads from the beginning: if that is all, nothing is stored."""
_SORT_KEY = "W"
_KEPT_MS = 3_600_000


class DueAt(msgspec.Struct, frozen=True, tag="Due"):
    """A message is ready at that time, which may be over; every group was seen."""

    at_ms: int


class Nothing(msgspec.Struct, frozen=True, tag=True):
    """No message waits that nobody holds; every group was seen."""


class NotAllSeen(msgspec.Struct, frozen=True, tag=True):
    """The next look goes on from `again_ms` on, behind the groups that this one saw."""

    again_ms: int
    due_ms: int | None
    """When the first message is ready of the groups that were seen; None: none waits there."""


Answer: TypeAlias = DueAt | Nothing | NotAllSeen


class Met(msgspec.Struct, frozen=True):
    """What a part of a round has met. Times are in milliseconds since the epoch."""

    oldest_ms: int | None = None
    """When the oldest message was sent that can be received."""
    ready_ms: int | None = None
    """When the first message is ready that nobody holds; it may be over."""
    at: str = ""
    """The key behind which its group begins."""

    def with_(self, other: Met) -> Met:
        """Both together."""
        first = min((self, other), key=lambda each: _or_never(each.ready_ms))
        return Met(_earlier(self.oldest_ms, other.oldest_ms), first.ready_ms, first.at)


class SourceLook(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a look at a source."""

    answer: Answer
    oldest_ms: int | None
    """When the oldest message was sent that can be received, as this round and the one before know;
    None if there is none."""
    places: tuple[tuple[str, str], ...] = ()
    """Of each partition in which a message is ready now: its key, and that before the group."""

    @property
    def ready(self) -> bool:
        """Whether a message was ready when it was looked at."""
        return bool(self.places)


class _Round(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's round, as its item has it."""

    behind: str = ""
    """Where the next look goes on; empty: the round is over, and a new one begins."""
    begun_ms: int = 0
    """When the round began."""
    done_ms: int = 0
    """When the last round began that is over."""
    again_ms: int = 0
    """The next look goes on from then on."""
    met: Met = Met()
    """What the round has met behind its first pages."""
    before_ms: int | None = None
    """The oldest message of the last round that is over."""


class _Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a look at one partition."""

    units: float
    unit_ms: float
    """Milliseconds until the next look, for each unit of this one."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a look at one partition."""

    met: Met
    ready: list[str]
    """The keys before groups that were seen now, and have a message that is ready."""
    oldest_ms: int | None
    again_ms: int | None = None
    """When the next look goes on; None: every group was seen."""


def look(core: Core, sources: Sequence[Source], since_ms: int | None = None) -> SourceLook:
    """Look at what waits in sources, as far as the units of a look go.

    since_ms: when the caller was told that there may be something: it has seen every group when a
    round is over that began then, or later. None: now.
    """
    now_ms = core.now_ms()
    since_ms = now_ms if since_ms is None else since_ms
    places = [(each, partition) for each in sources for partition in range(each.partitions)]
    pace = _Pace(
        units=max(PARTITION_UNITS, LOOK_UNITS / max(1, len(places))),
        unit_ms=1000 * len(places) / UNITS_PER_SECOND,
    )
    parts = [_look_at(core, each, partition, pace, since_ms) for each, partition in places]
    due_ms = _earlier(*(part.met.ready_ms for part in parts))
    again_ms = _earlier(*(part.again_ms for part in parts))
    answer: Answer = Nothing() if due_ms is None else DueAt(due_ms)
    return SourceLook(
        answer=answer if again_ms is None else NotAllSeen(again_ms, due_ms),
        oldest_ms=_earlier(*(part.oldest_ms for part in parts)),
        places=tuple(
            (partition_key(PARCELS, each.id, partition), at)
            for (each, partition), part in zip(places, parts, strict=True)
            if (at := _begin(core, part, now_ms)) is not None
        ),
    )


def begin_there(core: Core, seen: SourceLook) -> None:
    """Have this environment's next receive begin at what was ready."""
    for pk, at in seen.places:
        core.memory(TurnMemory).take_turn(pk, at)


def _begin(core: Core, part: _Part, now_ms: int) -> str | None:
    """The key before a group to claim from; None if nothing is ready.

    One by chance: a group may be at its limit in flight, and another one shall not wait for it.
    """
    if part.ready:
        return core.random.choice(part.ready)
    return part.met.at if _or_never(part.met.ready_ms) <= now_ms else None


def _look_at(core: Core, source: Source, partition: int, pace: _Pace, since_ms: int) -> _Part:
    """Look at a partition, of which a round that began before `since_ms` does not count as whole.

    a round    ── a ── b ──────────── c ── d: it is over
    a sender            puts into a      a worker, woken since: another round
    """
    now_ms = core.now_ms()
    first = PartitionScan(core, source, partition, Bounds(pages=FIRST_PAGES))
    met, ready = _meet(core, source, first, now_ms)
    if not isinstance(first.end, Cut):
        return _Part(met=met, ready=ready, oldest_ms=met.oldest_ms)
    found = _read(core, source, partition)
    left = found
    if found.done_ms < since_ms and now_ms >= found.again_ms:
        begun_ms, so_far = (found.begun_ms, found.met) if found.behind else (now_ms, Met())
        behind = max(found.behind, first.end.behind)
        rest = PartitionScan(core, source, partition, Bounds(units=pace.units), behind)
        met_now, ready_now = _meet(core, source, rest, now_ms)
        ready += ready_now
        left = _Round(
            behind=rest.end.behind if isinstance(rest.end, Cut) else "",
            begun_ms=begun_ms,
            done_ms=found.done_ms if isinstance(rest.end, Cut) else begun_ms,
            again_ms=now_ms + int(rest.units * pace.unit_ms),
            met=so_far.with_(met_now),
            before_ms=found.before_ms,
        )
        if not left.behind:
            left = replace(left, before_ms=_earlier(met.oldest_ms, left.met.oldest_ms))
        if left.behind or found != _Round() or rest.units > FREE_UNITS:
            _write(core, source, partition, left)
    met = met.with_(left.met)
    whole = left.done_ms >= since_ms
    return _Part(
        met=met,
        ready=ready,
        oldest_ms=_earlier(met.oldest_ms, left.before_ms if left.behind else None),
        again_ms=None if whole else left.again_ms,
    )


def _meet(core: Core, source: Source, walk: PartitionScan, now_ms: int) -> tuple[Met, list[str]]:
    """What a walk meets, and the keys before groups that have a message ready.

    Of each group it reads to its first message that is ready now, or that is still to come; of an
    ordered source, to its first message.
    """
    met, ready, group, passed = Met(), list[str](), "", False
    for parcel in walk:
        if parcel.key_prefix != group:
            group, passed = parcel.key_prefix, False
        if source.is_over(parcel, now_ms):
            continue
        if source.ordered and passed:
            continue
        of_parcel = _of_parcel(core, source, parcel, now_ms)
        met = met.with_(of_parcel)
        is_ready = _or_never(of_parcel.ready_ms) <= now_ms
        if is_ready and not passed:
            ready.append(group)
        # A clock ahead may have claimed what is still to come here: what is due behind it counts.
        to_come = parcel.key_ms > now_ms and of_parcel.ready_ms is not None
        if is_ready or (not parcel.spent() if source.ordered else to_come):
            walk.pass_group()
            passed = True
    return met, ready


def _of_parcel(core: Core, source: Source, parcel: Parcel, now_ms: int) -> Met:
    """What waits in a parcel; in an ordered source its first message, behind which others wait."""
    places = [place for place in range(parcel.count) if parcel.live(place)]
    if source.ordered:
        places = places[:1]
    active = any(parcel.receivable(each, now_ms) or parcel.awaits_group(each) for each in places)
    oldest_ms = parcel.sent_ms if active else None
    if source.withholds(parcel):
        return Met(oldest_ms)  # whoever rewinds the group wakes a worker when it may be received
    # What is held does not count: its worker asks when it leaves, and if it dies the sweep does.
    ready_ms = min(
        (
            parcel.ready_ms(place)
            for place in places
            if not parcel.held(place, now_ms) and parcel.ready_ms(place) < parcel.expires_ms
            if not _is_passed_over(source, parcel, place)
            # In an order what is behind it waits for the look that moves it.
            if source.ordered or not leaves(core, source, parcel, place, now_ms)
        ),
        default=None,
    )
    return Met(oldest_ms, ready_ms, parcel.key_prefix)


def _is_passed_over(source: Source, parcel: Parcel, place: int) -> bool:
    """Whether no worker can hand a message to the source's function: its event does not hold it."""
    return source.invoke is not None and parcel.answer_bytes(place) > CALLED_BYTES


def _read(core: Core, source: Source, partition: int) -> _Round:
    item = core.store.get(core.tables.messages, *_place(source, partition))
    if item is None:
        return _Round()
    times = {name: int(item[name]["N"]) for name in ("c", "d", "n", "o", "r", "l") if name in item}
    return _Round(
        behind=item["b"]["S"],
        begun_ms=times["c"],
        done_ms=times["d"],
        again_ms=times["n"],
        met=Met(times.get("o"), times.get("r"), item["a"]["S"]),
        before_ms=times.get("l"),
    )


def _write(core: Core, source: Source, partition: int, left: _Round) -> None:
    met = left.met
    times = {
        "c": left.begun_ms,
        "d": left.done_ms,
        "n": left.again_ms,
        "o": met.oldest_ms,
        "r": met.ready_ms,
        "l": left.before_ms,
    }
    item: Item = {
        **key(*_place(source, partition)),
        **{name: {"N": str(ms)} for name, ms in times.items() if ms is not None},
        "b": {"S": left.behind},
        "a": {"S": met.at},
        "expires_at": {"N": str(ttl_seconds(core.now_ms() + _KEPT_MS))},
    }
    core.store.write("PutItem", {"TableName": core.tables.messages, "Item": item})


def _place(source: Source, partition: int) -> tuple[str, str]:
    return partition_key(HEAD_MARKS, source.id, partition), _SORT_KEY


def _earlier(*times: int | None) -> int | None:
    return min((ms for ms in times if ms is not None), default=None)


def _or_never(moment_ms: int | None) -> float:
    return float("inf") if moment_ms is None else moment_ms
