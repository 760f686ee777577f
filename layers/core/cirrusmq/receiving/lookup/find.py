"""Looking a message up by its id, within a bound of read units.

A message that has never moved is under the key that follows from its id and its delay, which is in
its id or its queue's: one read, whatever the backlog. One that was given back, that was sent with
others of other delays, or that came from another queue is under a key that is written nowhere
else. It is looked for behind its first key, and then from the end of its partition backwards; one
whose due time was changed has a note of its present key:

    first key ──> as far as half the units go        ... not read ...        <── the rest ── end

In a fair source all of these reads are in the message's group, which the caller should name; else
every group is searched, as far as the units go.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import MessageNotFound, Unavailable
from cirrusmq.model.delayed_id import delay_in
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import CANCELLED, Parcel, send_and_position, sort_key
from cirrusmq.model.priority import level_prefix
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.sending.making import group_hash, group_partition, group_prefix
from cirrusmq.storage import counters
from cirrusmq.storage.bisection import ReadBudget
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.locations import read_place
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel
from cirrusmq.storage.queries import LAST_KEY

LOOKUP_UNITS = 48.0
"""Most read units of a look-up; two more are left to the record with the body."""
_FIRST_KEYS = 16
"""First keys that are tried, for a unit each: one for each possible partition and delay."""
_PAGE = 64
State: TypeAlias = Literal["active", "inactive", "delayed"]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is in a source, at an index of its parcel."""

    parcel: Parcel
    index: int
    state: State
    message: Message | None
    """None if its body was not asked for."""
    others: tuple[Found, ...] = ()
    """Other messages of this id in the source, without their bodies, which are the same."""


def look_up(
    core: Core,
    queue: Queue,
    source: Source,
    message_id: str,
    *,
    group: str | None = None,
    body: bool = False,
) -> Found:
    """Returns the message in a queue's default source, or in one of its receivers.

    group: the message's group in an ordered or fair source, which limits the search; None searches
    all groups. Raises MessageNotFound if it is not there, or not found within `LOOKUP_UNITS`.
    """
    live = [
        (parcel, index)
        for parcel, index in locate(core, queue, source, message_id, group=group)
        if parcel.live(index)
    ]
    if not live:
        raise MessageNotFound
    (parcel, index), *others = live
    message = None
    if body:
        (messages,) = read_contents(core, source, [(parcel, [index])])
        message = messages.get(index)
        if message is None:
            raise MessageNotFound
    found = found_at(core, parcel, index, message)
    return replace(found, others=tuple(found_at(core, *each) for each in others))


def found_at(core: Core, parcel: Parcel, index: int, message: Message | None = None) -> Found:
    """Returns the message at a parcel's index, in its present state."""
    state = state_of(parcel, index, core.now_ms())
    return Found(parcel=parcel, index=index, state=state, message=message)


def locate(
    core: Core, queue: Queue, source: Source, message_id: str, *, group: str | None = None
) -> list[tuple[Parcel, int]]:
    """Returns the parcels with messages of an id, and their indexes there: at least one.

    Each is live, or was cancelled a moment ago. An id may be several times in a source that it came
    to from others: as a dead letter of two receivers, or redriven. So behind one that came so, the
    search goes on as far as the units go; one in the queue that it was sent to is the only one.

    Raises MessageNotFound as `look_up` does.
    """
    known = send_and_position(message_id)
    if known is None:
        raise MessageNotFound
    send_id, position = known
    budget = ReadBudget(LOOKUP_UNITS)
    if source.ordered:
        parcels = _in_groups(core, source, group, budget)
    else:
        parcels = _by_time(core, queue, source, send_id, position, group, budget)
        if source.fair and group is None:
            parcels = itertools.chain(parcels, _in_groups(core, source, None, budget))
    met: dict[tuple[int, str], tuple[Parcel, int]] = {}
    only = False
    for parcel in parcels:
        if parcel.send_id != send_id or not source.keeps(parcel):
            continue
        for index in range(parcel.count):
            # A place that the message has left is a tombstone.
            if parcel.position(index) == position and _stays(parcel, index):
                met[parcel.partition, parcel.sort_key] = parcel, index
                only = only or not parcel.came_alone
        if only:
            break
    now_ms = core.now_ms()
    found = [each for each in met.values() if now_ms < each[0].expires_ms]
    if not found:
        raise MessageNotFound("There is no such message, or it was not found within 50 read units.")
    return found


def _stays(parcel: Parcel, index: int) -> bool:
    return parcel.live(index) or parcel.visible_ms[index] == CANCELLED


def state_of(parcel: Parcel, index: int, now_ms: int) -> State:
    """Returns the state as `queues.counts` counts it."""
    if parcel.receivable(index, now_ms) or parcel.awaits_group(index):
        return "active"
    return "delayed" if parcel.delayed(index, now_ms) else "inactive"


def _by_time(
    core: Core,
    queue: Queue,
    source: Source,
    send_id: str,
    position: int,
    group: str | None,
    budget: ReadBudget,
) -> Iterator[Parcel]:
    """Yields parcels of an unordered source that may have the message, the likeliest first.

    In a fair source, only parcels of the `group`. With priorities, the first keys of each of them.
    """
    if source.priorities is not None:
        yield from _by_priority(core, queue, source, send_id, position, budget)
        return
    prefix = group_prefix(group) if source.fair else ""
    begun_ms = ulid.time_of(send_id)
    attributes, own = queue.attributes, delay_in(send_id)
    delays = [attributes.delay_seconds, *(seconds for _, seconds in queue.earlier_delays)]
    firsts = [prefix + sort_key(begun_ms + each * 1000, send_id) for each in dict.fromkeys(delays)]
    partition = queue.partition_of(send_id, prefix)
    # A queue that has grown has messages where fewer partitions put them.
    others = [each for each in range(source.partitions) if each != partition]
    pks = [partition_key(PARCELS, source.id, each) for each in (partition, *others)]
    keys = [(pk, first) for pk in pks for first in firsts][:_FIRST_KEYS]
    carried = [] if own is None else [(pks[0], prefix + sort_key(begun_ms + own * 1000, send_id))]
    yield from _at(core, carried, budget)
    yield from _at(core, keys[: len(firsts)], budget)
    budget.spend(1)
    noted = read_place(core, source.id, send_id, position)
    yield from _at(core, [noted] if noted else [], budget)
    yield from _at(core, keys[len(firsts) :], budget)
    from_ms, end = f"{prefix}{begun_ms:013d}", f"{prefix}{LAST_KEY}"
    yield from near_both_ends(core, pks[0], (from_ms, end), budget)
    for pk in pks[1:]:
        yield from budget.parcels(core, pk, from_ms, end, _PAGE)
    # An attempt's time may be ahead: what moves soon after its send is at an earlier one.
    ahead_ms = int(limits.ATTEMPT_AHEAD_MS * core.clock.scale) + core.skew_ms
    for pk in pks:
        yield from budget.parcels(core, pk, f"{prefix}{begun_ms - ahead_ms:013d}", from_ms, _PAGE)


def _by_priority(
    core: Core, queue: Queue, source: Source, send_id: str, position: int, budget: ReadBudget
) -> Iterator[Parcel]:
    """The parcels under the first keys that the message may have, and under its noted one.

    The priorities that have messages by the meter's count come first: a few of many. One that was
    sent a moment ago may not be counted yet. If the queue has grown, its other partitions come
    last: fewer of them were in use then.
    """
    begun_ms, own = ulid.time_of(send_id), delay_in(send_id)
    partition = queue.partition_of(send_id)
    others = [each for each in range(source.partitions) if each != partition]
    levels = [level_prefix(priority) for priority in range(1, (source.priorities or 0) + 1)]
    used = _used_levels(core, source, budget)
    unused = [each for each in levels if each not in used]
    delays = [queue.attributes.delay_seconds if own is None else own]
    delays += [seconds for _, seconds in queue.earlier_delays]
    firsts = [sort_key(begun_ms + each * 1000, send_id) for each in dict.fromkeys(delays)]
    pk = partition_key(PARCELS, source.id, partition)
    for first in firsts:
        yield from _at(core, [(pk, prefix + first) for prefix in used], budget)
    budget.spend(1)
    noted = read_place(core, source.id, send_id, position)
    yield from _at(core, [noted] if noted else [], budget)
    for first in firsts:
        yield from _at(core, [(pk, prefix + first) for prefix in unused], budget)
    for first, other in itertools.product(firsts, others if source.grown else ()):
        pk = partition_key(PARCELS, source.id, other)
        if budget.left < len(levels):
            return
        yield from _at(core, [(pk, prefix + first) for prefix in levels], budget)


def _used_levels(core: Core, source: Source, budget: ReadBudget) -> list[str]:
    """Returns what keys begin with of priorities that have messages, up to a minute ago."""
    budget.spend(0.5)
    item: Item | None = None
    with contextlib.suppress(Unavailable):
        key = counters.counter_key(source.id)
        item = core.store.get(core.tables.usage, *key, consistent=False)
    return [level_prefix(each) for each in counters.levels_in(item or {}) or ()]


def near_both_ends(
    core: Core, pk: str, between: tuple[str, str], budget: ReadBudget
) -> Iterator[Parcel]:
    """Yields parcels between two keys: from the first on for half of the units, then backwards."""
    first, last = between
    yield from budget.portion(budget.left / 2).parcels(core, pk, first, last, _PAGE)
    yield from budget.parcels(core, pk, last, first, _PAGE, backwards=True)


def _at(core: Core, keys: Sequence[tuple[str, str]], budget: ReadBudget) -> Iterable[Parcel]:
    """Returns the parcels under these keys."""
    if not keys:
        return ()
    items = core.store.get_many(core.tables.messages, keys, consistent=True)
    budget.spend(len(keys))
    return map(read_parcel, items.values())


def _in_groups(
    core: Core, source: Source, group: str | None, budget: ReadBudget
) -> Iterator[Parcel]:
    """Yields parcels of a source with groups, as far as the units go.

    group: reads only this group, of an ordered source; None reads all groups."""
    if group is not None:
        pk = partition_key(PARCELS, source.id, group_partition(group, source.partitions))
        prefix = group_hash(group)
        yield from budget.parcels(core, pk, f"{prefix}#", f"{prefix}#{LAST_KEY}", _PAGE)
        return
    for left in range(source.partitions, 0, -1):
        pk = partition_key(PARCELS, source.id, source.partitions - left)
        yield from budget.portion(budget.left / left).parcels(core, pk, "!", LAST_KEY, _PAGE)
