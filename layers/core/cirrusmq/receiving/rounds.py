"""Rounds: scans for waiting messages of a source, each from the end of the scan before.

A scan reads the first parcels of each partition, and on from there as far as its units go. If that
is not all, an item for the partition has the key where the next scan goes on, by any worker, and
the results of the round:

    groups   a b c d e | f g h i j | k l m
    looks    ── 1 ────>  ── 2 ────>  ── 3: the round is over, every group was seen

    a worker   nothing to claim ── scans: not all seen ── 3 s later: scans on ── whole: it leaves
    the sweep  each minute: scans, and wakes a worker that goes on

A scan reads 64 units, and the next one goes on 3.2 s later at the earliest: 20 units a second. So a
message without an event is found within a minute and the time of two rounds, of which each takes a
second for 160 groups or held parcels of 1 KiB. If only the sweep scans, a round takes a minute for
512 of them.

The item only has times that were true when they were read. If two scans overlap, the later write
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
from cirrusmq.storage.walk import Bounds, PartitionScan

LOOK_UNITS = 64.0
"""Read units of a scan of a source, its first pages aside."""
PARTITION_UNITS = 2.0
"""Units of these for a partition, at least."""
UNITS_PER_SECOND = 20
FREE_UNITS = 8.0
"""A complete scan of a partition that costs at most this does not make the next one wait."""
FIRST_PAGES = 1
"""Pages that every scan reads from the beginning: if that is all, nothing is stored."""
_SORT_KEY = "W"
_KEPT_MS = 3_600_000


class DueAt(msgspec.Struct, frozen=True, tag="Due"):
    """A message is ready at that time, which may be over; every group was seen."""

    at_ms: int


class Nothing(msgspec.Struct, frozen=True, tag=True):
    """No unclaimed message waits; every group was seen."""


class NotAllSeen(msgspec.Struct, frozen=True, tag=True):
    """The next scan goes on from `again_ms` on, behind the groups that this one saw."""

    again_ms: int
    due_ms: int | None
    """When the first message of the seen groups is ready; None if none waits there."""


Answer: TypeAlias = DueAt | Nothing | NotAllSeen


class Met(msgspec.Struct, frozen=True):
    """The results of a part of a round. Times are in milliseconds since the epoch."""

    oldest_ms: int | None = None
    """When the oldest receivable message was sent."""
    ready_ms: int | None = None
    """When the first message that nobody holds is ready; may be in the past."""
    at: str = ""
    """The key behind which its group begins."""

    def with_(self, other: Met) -> Met:
        """Returns both results together."""
        first = min((self, other), key=lambda each: _or_never(each.ready_ms))
        return Met(_earlier(self.oldest_ms, other.oldest_ms), first.ready_ms, first.at)


class SourceLook(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a scan of a source."""

    answer: Answer
    oldest_ms: int | None
    """When the oldest receivable message was sent, as this round and the one before know; None if
    there is none."""
    places: tuple[tuple[str, str], ...] = ()
    """For each partition with a ready message: its key, and the key before the message's group."""

    @property
    def ready(self) -> bool:
        """True if a message was ready when the source was scanned."""
        return bool(self.places)


class _Round(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's round, as its item has it."""

    behind: str = ""
    """The key behind which the next scan goes on; empty if the round is over."""
    begun_ms: int = 0
    """When the round began."""
    done_ms: int = 0
    """When the last complete round began."""
    again_ms: int = 0
    """The next scan goes on from then on."""
    met: Met = Met()
    """The results of the round behind its first pages."""
    before_ms: int | None = None
    """When the oldest message of the last complete round was sent."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a scan of one partition."""

    met: Met
    ready: list[str]
    """The keys before groups that were seen now, and have a message that is ready."""
    oldest_ms: int | None
    again_ms: int | None = None
    """When the next scan goes on; None if every group was seen."""


def look(core: Core, sources: Sequence[Source], since_ms: int | None = None) -> SourceLook:
    """Scans sources for waiting messages, as far as the units go.

    since_ms: when the caller learned that there may be messages; None means now. Every group was
    seen only if a complete round began then or later.
    """
    now_ms = core.now_ms()
    since_ms = now_ms if since_ms is None else since_ms
    places = [(each, partition) for each in sources for partition in range(each.partitions)]
    count = len(places)
    parts = [_look_at(core, each, partition, count, since_ms) for each, partition in places]
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
    """Makes this environment's next receive begin at a message that was ready."""
    for pk, at in seen.places:
        core.memory(TurnMemory).take_turn(pk, at)


def _begin(core: Core, part: _Part, now_ms: int) -> str | None:
    """Returns the key before a group to claim from, or None if nothing is ready.

    A random one: a group may be at its limit in flight, and another one shall not wait for it.
    """
    if part.ready:
        return core.random.choice(part.ready)
    return part.met.at if _or_never(part.met.ready_ms) <= now_ms else None


def _look_at(core: Core, source: Source, partition: int, count: int, since_ms: int) -> _Part:
    """Scans a partition; a round that began before `since_ms` does not count as complete.

    count: partitions that are scanned together, which share the units and the pace.

    a round    ── a ── b ──────────── c ── d: it is over
    a sender            puts into a      a worker, woken since: another round
    """
    now_ms = core.now_ms()
    first = PartitionScan(core, source, partition, Bounds(pages=FIRST_PAGES))
    met, ready = _meet(core, source, first, now_ms)
    if first.cut is None:
        return _Part(met=met, ready=ready, oldest_ms=met.oldest_ms)
    found = _read(core, source, partition)
    left = found
    if found.done_ms < since_ms and now_ms >= found.again_ms:
        begun_ms, so_far = (found.begun_ms, found.met) if found.behind else (now_ms, Met())
        behind = max(found.behind, first.cut)
        bounds = Bounds(units=max(PARTITION_UNITS, LOOK_UNITS / count))
        rest = PartitionScan(core, source, partition, bounds, behind)
        met_now, ready_now = _meet(core, source, rest, now_ms)
        ready += ready_now
        left = _Round(
            behind=rest.cut or "",
            begun_ms=begun_ms,
            done_ms=begun_ms if rest.cut is None else found.done_ms,
            again_ms=now_ms + int(rest.units * (1000 * count / UNITS_PER_SECOND)),
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
    """Returns the results of a walk, and the keys before groups that have a message ready.

    Each group is read to its first message that is ready now, or that is due later; in an ordered
    source, to its first message.
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
        # A clock ahead may have claimed a message that is due later here: messages behind it count.
        to_come = parcel.key_ms > now_ms and of_parcel.ready_ms is not None
        if is_ready or (not parcel.spent() if source.ordered else to_come):
            walk.pass_group()
            passed = True
    return met, ready


def _of_parcel(core: Core, source: Source, parcel: Parcel, now_ms: int) -> Met:
    """Returns the results of a parcel; in an ordered source only its first message counts."""
    indexes = [index for index in range(parcel.count) if parcel.live(index)]
    if source.ordered:
        indexes = indexes[:1]
    active = any(parcel.receivable(each, now_ms) or parcel.awaits_group(each) for each in indexes)
    oldest_ms = parcel.sent_ms if active else None
    if source.withholds(parcel):
        return Met(oldest_ms)  # the rewind wakes a worker when it may be received
    # A held message does not count: its worker scans when it leaves, and if it dies the sweep does.
    ready_ms = min(
        (
            parcel.ready_ms(index)
            for index in indexes
            if not parcel.held(index, now_ms) and parcel.ready_ms(index) < parcel.expires_ms
            if not _is_passed_over(source, parcel, index)
            # In an order the messages behind it wait for the receive that moves it.
            if source.ordered or not leaves(core, source, parcel, index, now_ms)
        ),
        default=None,
    )
    return Met(oldest_ms, ready_ms, parcel.key_prefix)


def _is_passed_over(source: Source, parcel: Parcel, index: int) -> bool:
    """Returns True if the event of the source's function cannot hold the message."""
    return source.invoke is not None and parcel.answer_bytes(index) > CALLED_BYTES


def _read(core: Core, source: Source, partition: int) -> _Round:
    item = core.store.get(core.tables.messages, *_item_key(source, partition))
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
        **key(*_item_key(source, partition)),
        **{name: {"N": str(ms)} for name, ms in times.items() if ms is not None},
        "b": {"S": left.behind},
        "a": {"S": met.at},
        "expires_at": {"N": str(ttl_seconds(core.now_ms() + _KEPT_MS))},
    }
    core.store.write("PutItem", {"TableName": core.tables.messages, "Item": item})


def _item_key(source: Source, partition: int) -> tuple[str, str]:
    return partition_key(HEAD_MARKS, source.id, partition), _SORT_KEY


def _earlier(*times: int | None) -> int | None:
    return min((ms for ms in times if ms is not None), default=None)


def _or_never(moment_ms: int | None) -> float:
    return float("inf") if moment_ms is None else moment_ms
