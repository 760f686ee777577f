"""Taking from the head of a partition of an unordered source."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim import claim
from cirrusmq.receiving.claim_batch import Batch
from cirrusmq.receiving.heads.memory import HeadMemory
from cirrusmq.receiving.heads.scan import Claimable, Head, claimable_indexes, pages_with_something
from cirrusmq.runtime.core import Core


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A claim at which another receiver was faster."""

    parcel: Parcel
    indexes: Sequence[int]
    left: Parcel | None
    """The parcel as it is now; None if it is gone."""


def take_from_partition(core: Core, source: Source, batch: Batch) -> None:
    """Claims up to the wanted number from the head of a partition, parcels in parallel."""
    pages = pages_with_something(core, source, Head(batch.pk), batch.wanted.limit, batch=batch)
    for parcels in pages:
        claim_from(core, source, deque(spread(core, batch.pk, parcels)), batch)
        if batch.claims:
            break


def claim_from(core: Core, source: Source, left: deque[Claimable], batch: Batch) -> None:
    """Claims messages of these parcels side by side, until the batch is full."""
    changed = deque[Claimable]()
    while left and not batch.full:
        lost = claim_all(core, source, plan(core, left, batch), batch)
        changed += left_to_claim(core, source, lost)
    # Once more, for parcels of which a faster receiver may have left some messages.
    claim_all(core, source, plan(core, changed, batch), batch)


def left_to_claim(
    core: Core, source: Source, lost: Sequence[Lost], *, chosen: bool = False
) -> list[Claimable]:
    """Returns the parcels of lost claims that still have messages to claim.

    chosen: only messages that the claims were for; else all messages of their parcels.
    """
    now_ms, found = core.now_ms(), list[Claimable]()
    for each in lost:
        if each.left is not None:
            indexes = claimable_indexes(core, source, each.left, now_ms)
            indexes = [one for one in indexes if one in each.indexes] if chosen else indexes
            found += [Claimable(each.left, indexes)] if indexes else []
    return found


def spread(core: Core, pk: str, parcels: list[Claimable]) -> list[Claimable]:
    """Returns the parcels in order, or shuffled if other receivers take from the same head."""
    if core.memory(HeadMemory).is_contended(pk, core.now_ms()):
        core.random.shuffle(parcels)
    return parcels


def plan(core: Core, left: deque[Claimable], batch: Batch) -> list[Claimable]:
    """Returns the claims to make next: of parcels from `left` until enough is reserved.

    A parcel that has expired since it was read is left out.
    """
    plans = []
    while left and not batch.full:
        parcel, indexes = left.popleft()
        if core.now_ms() < parcel.expires_ms and (chosen := batch.reserve(parcel, indexes)):
            plans.append(Claimable(parcel, chosen))
    return plans


def claim_all(core: Core, source: Source, plans: Sequence[Claimable], batch: Batch) -> list[Lost]:
    """Makes the claims. Returns the claims at which another receiver was faster."""
    seconds, nonce_of = batch.wanted.timeout_seconds, batch.wanted.nonce_of
    outcomes = core.in_parallel(
        lambda plan: claim(core, source, plan[0], plan[1], seconds, nonce_of), plans
    )
    lost = []
    for (parcel, indexes), outcome in zip(plans, outcomes, strict=True):
        if batch.note(parcel, indexes, outcome) or isinstance(outcome, Unavailable):
            continue
        core.memory(HeadMemory).contend(batch.pk, core.now_ms())
        left = outcome if isinstance(outcome, Parcel) else None
        lost.append(Lost(parcel=parcel, indexes=indexes, left=left))
    return lost
