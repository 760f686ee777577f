"""Taking from the head of a partition of an unordered source."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle import chores
from cirrusmq.lifecycle.chore_memory import ChoreMemory
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim import Claim, try_claim
from cirrusmq.receiving.claim_batch import Batch, ReceiveLimits
from cirrusmq.receiving.heads.memory import HeadMemory
from cirrusmq.receiving.heads.scan import Head, claimable_indexes, pages_with_something
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A claim at which another receiver was faster."""

    parcel: Parcel
    indexes: Sequence[int]
    left: Parcel | None
    """The parcel as it is now; None if it is gone."""


def take_from_partition(
    core: Core, source: Source, partition: int, wanted: ReceiveLimits
) -> list[Claim]:
    """Claims up to the wanted number from the head of a partition, parcels in parallel."""
    batch = Batch(wanted)
    pk = partition_key(PARCELS, source.id, partition)
    pages = pages_with_something(core, source, Head(pk), wanted.limit, batch=batch)
    for parcels in pages:
        claim_from(core, source, pk, deque(spread(core, pk, parcels)), batch)
        if batch.claims:
            break
    return claimed_of(core, source, pk, batch)


def claim_from(core: Core, source: Source, pk: str, left: deque[Parcel], batch: Batch) -> None:
    """Claim messages of these parcels side by side, until the batch is full."""
    changed: list[Parcel] = []
    while left and not batch.full:
        plans = plan(core, source, left, batch)
        lost = claim_all(core, source, pk, plans, batch)
        changed += [each.left for each in lost if each.left is not None]
    # Once more, for parcels of which a faster receiver may have left some messages.
    again = plan(core, source, deque(changed), batch)
    claim_all(core, source, pk, again, batch)


def claimed_of(core: Core, source: Source, pk: str, batch: Batch) -> list[Claim]:
    """Returns a batch's claims in a partition, after messages passed over are settled, and the
    cleanup that the scan found is reported."""
    if batch.passed:
        # Few queues have messages that large: the others' cold starts do without.
        from cirrusmq.receiving.passed_over import settle

        settle(core, source, batch)
    if ChoreMemory in core.memories:  # in most environments nothing was ever met
        chores.tell(core, source, pk)
    return batch.claimed()


def spread(core: Core, pk: str, parcels: list[Parcel]) -> list[Parcel]:
    """Returns the parcels in order, or shuffled if other receivers take from the same head."""
    if core.memory(HeadMemory).is_contended(pk, core.now_ms()):
        core.random.shuffle(parcels)
    return parcels


def plan(
    core: Core, source: Source, left: deque[Parcel], batch: Batch
) -> list[tuple[Parcel, list[int]]]:
    """Returns the claims to make next: of parcels from `left` until enough is reserved."""
    plans = []
    while left and not batch.full:
        parcel = left.popleft()
        indexes = claimable_indexes(core, source, parcel, core.now_ms())
        indexes = batch.reserve(parcel, indexes)
        if indexes:
            plans.append((parcel, indexes))
    return plans


def claim_all(
    core: Core,
    source: Source,
    pk: str,
    plans: Sequence[tuple[Parcel, list[int]]],
    batch: Batch,
) -> list[Lost]:
    """Makes the claims. Returns the claims at which another receiver was faster."""
    seconds, nonce_of = batch.wanted.timeout_seconds, batch.wanted.nonce_of
    outcomes = core.in_parallel(
        lambda plan: try_claim(core, source, plan[0], plan[1], seconds, nonce_of), plans
    )
    lost = []
    for (parcel, indexes), outcome in zip(plans, outcomes, strict=True):
        if batch.note(parcel, indexes, outcome) or isinstance(outcome, Unavailable):
            continue
        core.memory(HeadMemory).contend(pk, core.now_ms())
        left = outcome if isinstance(outcome, Parcel) else None
        lost.append(Lost(parcel=parcel, indexes=indexes, left=left))
    return lost
