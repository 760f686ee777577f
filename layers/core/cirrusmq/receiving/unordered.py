"""Taking from the head of a partition of an unordered source."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim import try_claim
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


def take_from_partition(core: Core, source: Source, partition: int, wanted: ReceiveLimits) -> Batch:
    """Claims up to the wanted number from the head of a partition, parcels in parallel."""
    batch = Batch(wanted, partition_key(PARCELS, source.id, partition))
    pages = pages_with_something(core, source, Head(batch.pk), wanted.limit, batch=batch)
    for parcels in pages:
        claim_from(core, source, deque(spread(core, batch.pk, parcels)), batch)
        if batch.claims:
            break
    return batch


def claim_from(core: Core, source: Source, left: deque[Parcel], batch: Batch) -> None:
    """Claims messages of these parcels side by side, until the batch is full."""
    changed: list[Parcel] = []
    while left and not batch.full:
        plans = plan(core, source, left, batch)
        lost = claim_all(core, source, plans, batch)
        changed += [each.left for each in lost if each.left is not None]
    # Once more, for parcels of which a faster receiver may have left some messages.
    again = plan(core, source, deque(changed), batch)
    claim_all(core, source, again, batch)


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
    core: Core, source: Source, plans: Sequence[tuple[Parcel, list[int]]], batch: Batch
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
        core.memory(HeadMemory).contend(batch.pk, core.now_ms())
        left = outcome if isinstance(outcome, Parcel) else None
        lost.append(Lost(parcel=parcel, indexes=indexes, left=left))
    return lost
