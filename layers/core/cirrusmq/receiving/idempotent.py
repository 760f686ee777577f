"""Repeating a receive whose answer was lost: finding the claims that the first one still holds.

The nonces of a receive with an `attempt` derive from it, so the store needs nothing more than the
leases themselves; only a repeat pays for the search, at most `REPEAT_UNITS`, with any backlog. The
order of the partitions derives from the attempt as well, so a repeat searches them in the order of
the first receive, after the partitions that have had wake-ups since.

A small partition is read whole. In a large one first deliveries are in the order of their times:

    key        old ─────────────────────────────────────────────────────────> new
    received   long ago   before the attempt | after the attempt | never
                                       <──── 8   16 units ────>

The place is found by bisecting, half a unit for each step. A message that was given back has a new
key, on either side of it: unless the wanted number is found behind the place, parcels before it
are read as well.

A fair partition is read group by group, each like a partition: only the environment of the first
receive knew the group at which it began. One with priorities is read level by level; each partition
gets its part of the units, since only that environment knew which one was the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cirrusmq.model.parcel import Parcel, key_prefix
from cirrusmq.model.receipt import same_lease
from cirrusmq.model.source import Source
from cirrusmq.queues.wake_ups.follow import partitions_woken_since
from cirrusmq.receiving.claim import Claim, NonceOf
from cirrusmq.receiving.claim_batch import Batch, ReceiveLimits
from cirrusmq.receiving.heads.scan import Head
from cirrusmq.receiving.shuffle import RandomOrder
from cirrusmq.runtime.core import Core
from cirrusmq.storage.bisection import ReadBudget, first_time
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY, behind_group, from_key, until_key

REPEAT_UNITS = 46.0
"""Read units of the search, in all sources of a group; the rest of 50 is for the attributes."""
_HEAD_PARCELS = 16
_UNITS_AFTER, _UNITS_BEFORE = 16.0, 8.0
_EARLIER_MS = 100
"""The attempt has its time from the client's clock, the receive from ours."""


def held_from_attempt(
    core: Core, source: Source, chance: RandomOrder, wanted: ReceiveLimits
) -> list[Claim]:
    """Returns the messages that an earlier receive with the same attempt holds now.

    At most the wanted number, from all partitions, as far as the units go: some of the receive's
    leases may have ended since. From an ordered or fair source all are from one partition, as in
    the answer of its receive. In ordered sources none is behind a message of its group whose lease
    has ended: that message is delivered again, and no consumer may have seen a later one before it.
    """
    budget = ReadBudget(REPEAT_UNITS)
    batch = Batch(wanted)
    for each in source.all:
        for held in _held_in(core, each, chance, wanted, budget):
            if _ends(batch, held) or (batch.claims and source.grouped):
                return batch.claims
    return batch.claims


def _held_in(
    core: Core, source: Source, chance: RandomOrder, wanted: ReceiveLimits, budget: ReadBudget
) -> Iterator[Iterable[Claim]]:
    """Yields the held messages of each partition, as far as the units go."""
    woken = partitions_woken_since(core, source, chance.begun_ms)
    partitions = list(dict.fromkeys([*woken, *chance.partitions(source)]))
    whole = budget
    for number, partition in enumerate(partitions):
        if source.priorities is not None:  # the receive began with the best partition
            budget = whole.portion(whole.left / (len(partitions) - number))
        pk = partition_key(PARCELS, source.id, partition)
        if source.ordered:
            parcels = _around(core, pk, chance.ring_start, budget)
            yield _held_in_groups(source, parcels, chance.nonce_of, core.now_ms())
        elif chance.group is not None:
            head = Head(pk, chance.group.prefix)
            yield _held_behind(core, source, head, chance, wanted.limit, budget)
        elif source.fair:
            yield _held_by_turns(core, source, pk, chance, wanted.limit, budget)
        else:
            yield _held_behind(core, source, Head(pk), chance, wanted.limit, budget)
        if not whole.pays():
            return


def _held_by_turns(
    core: Core, source: Source, pk: str, chance: RandomOrder, limit: int, budget: ReadBudget
) -> list[Claim]:
    """Returns the held messages of a fair partition's groups, as far as the units go."""
    now_ms = core.now_ms()
    found: list[Claim] = []
    after: str | None = FIRST_KEY
    while after is not None and budget.pays():
        page = budget.read(core, pk, after, LAST_KEY, _HEAD_PARCELS, consistent=True)
        cut = None if page.more_after is None else key_prefix(page.more_after)
        whole = [parcel for parcel in page.parcels if parcel.key_prefix != cut]
        found += _held(source, whole, chance.nonce_of, now_ms)
        if cut is not None and budget.pays():
            found += _held_behind(core, source, Head(pk, cut), chance, limit, budget)
        if sum(len(claim.indexes) for claim in found) >= limit:
            break
        after = behind_group(page)
    return found


def _held_behind(
    core: Core, source: Source, head: Head, chance: RandomOrder, limit: int, budget: ReadBudget
) -> list[Claim]:
    now_ms, nonce_of, pk, prefix = core.now_ms(), chance.nonce_of, head.pk, head.prefix
    # The first receive may have had a clock ahead of ours, and claimed keys behind our own end:
    #
    #     its clock  12:00:02   key + 2 s ahead of the sender ──> received
    #     our clock  12:00:00   until 12:00:02                    not read, without the skew
    start = from_key(core, source, now_ms, prefix)
    until = until_key(source, now_ms + core.skew_ms, prefix)
    if until <= start:
        return []
    first = budget.read(core, pk, start, until, _HEAD_PARCELS, consistent=True)
    found = _held(source, first.parcels, nonce_of, now_ms)
    if first.more_after is None:
        return found
    if found:
        more = budget.portion(_UNITS_AFTER).parcels(core, pk, first.more_after, until)
        return [*found, *_held(source, more, nonce_of, now_ms)]

    def since(parcel: Parcel) -> bool:
        """Returns True if it was first received after the attempt began, or never yet."""
        return not all(parcel.receives) or (
            max(parcel.first_received_ms) >= chance.begun_ms - _EARLIER_MS
        )

    place = first_time(core, pk, (first.more_after, until), since, budget, prefix)
    after = budget.portion(_UNITS_AFTER).parcels(core, pk, place, until)
    found = _held(source, after, nonce_of, now_ms)
    if place <= first.more_after or sum(len(claim.indexes) for claim in found) >= limit:
        return found  # else the place is in the head, of which all was read
    earlier = budget.portion(_UNITS_BEFORE)
    before = earlier.parcels(core, pk, place, first.more_after, backwards=True)
    return [*reversed(_held(source, before, nonce_of, now_ms)), *found]


def _held(source: Source, parcels: Iterable[Parcel], nonce_of: NonceOf, now_ms: int) -> list[Claim]:
    held = []
    for parcel in parcels:
        if now_ms < parcel.expires_ms and source.keeps(parcel):
            indexes = [
                index for index in range(parcel.count) if _holds(parcel, index, nonce_of, now_ms)
            ]
            if indexes:
                held.append(Claim(parcel=parcel, indexes=tuple(indexes)))
    return held


def _around(core: Core, pk: str, start: str, budget: ReadBudget) -> Iterator[Parcel]:
    """Yields the parcels of a partition's groups from `start` around, as far as the units go."""
    yield from budget.parcels(core, pk, start, LAST_KEY)
    yield from budget.parcels(core, pk, "!", start)


def _held_in_groups(
    source: Source, parcels: Iterable[Parcel], nonce_of: NonceOf, now_ms: int
) -> Iterator[Claim]:
    broken: set[str] = set()
    for parcel in parcels:
        if source.is_over(parcel, now_ms):
            continue
        group = parcel.sort_key.partition("#")[0]
        live = [index for index in range(parcel.count) if parcel.live(index)]
        indexes = [index for index in live if _holds(parcel, index, nonce_of, now_ms)]
        ahead = zip(live, indexes, strict=False) if group not in broken else ()
        indexes = [index for first, index in ahead if first == index]
        if indexes != live:
            broken.add(group)
        if indexes:
            yield Claim(parcel=parcel, indexes=tuple(indexes))


def _ends(batch: Batch, held: Iterable[Claim]) -> bool:
    """Adds held messages, as far as they are wanted and fit. Returns True if the batch is done."""
    for claim in held:
        indexes = batch.reserve(claim.parcel, claim.indexes)
        if indexes:
            batch.claims.append(Claim(parcel=claim.parcel, indexes=tuple(indexes)))
        if batch.full or len(indexes) < len(claim.indexes):
            return True
    return False


def _holds(parcel: Parcel, index: int, nonce_of: NonceOf, now_ms: int) -> bool:
    if not parcel.held(index, now_ms):
        return False
    return same_lease(parcel.nonces[index], nonce_of(parcel, index, parcel.receives[index]))
