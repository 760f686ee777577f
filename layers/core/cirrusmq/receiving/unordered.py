"""Taking from the head of a partition of an unordered source."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle import dead_letters
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving import cleanup
from cirrusmq.receiving.claim import Claim, NonceOf, try_claim
from cirrusmq.receiving.search import pages_with_something, takeable_places
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What one receive asks for."""

    most: int
    timeout_seconds: int | None
    nonce_of: NonceOf
    answer_bytes: int


class Taking(msgspec.Struct):
    """What a receive has taken or is about to take, and how much more it may."""

    wanted: Wanted
    claims: list[Claim] = []
    count: int = 0
    bytes: int = 0
    refused: Unavailable | None = None
    """That a store refused something, if it did."""

    def reserve(self, parcel: Parcel, places: Sequence[int]) -> list[int]:
        """The first of `places` that still fit into the answer; they count as taken from now."""
        chosen: list[int] = []
        for place in places[: self.wanted.most - self.count]:
            size = parcel.answer_bytes(place)
            if self.bytes + size > self.wanted.answer_bytes and (chosen or self.count):
                break
            chosen.append(place)
            self.bytes += size
        self.count += len(chosen)
        return chosen

    def give_up(self, parcel: Parcel, places: Sequence[int]) -> None:
        """What was reserved was not to be had."""
        self.count -= len(places)
        self.bytes -= sum(map(parcel.answer_bytes, places))

    def settled(self) -> list[Claim]:
        """What was claimed. Raises Unavailable where that is nothing, and the store refused."""
        if self.refused is not None and not self.claims:
            raise self.refused
        return self.claims

    @property
    def full(self) -> bool:
        """Whether nothing more is wanted."""
        return self.count >= self.wanted.most or self.bytes >= self.wanted.answer_bytes


def take_from_partition(core: Core, source: Source, partition: int, wanted: Wanted) -> list[Claim]:
    """Claim from the head of a partition up to what is wanted, parcels side by side."""
    taking = Taking(wanted)
    pk = partition_key(PARCELS, source.id, partition)
    gives_up = cache(lambda: dead_letters.has_place(core, source))
    for parcels in pages_with_something(core, source, pk, wanted.most, gives_up):
        left = deque(_spread(core, pk, parcels))
        changed: list[Parcel] = []
        while left and not taking.full:
            plans = _plan(core, source, left, taking, gives_up)
            changed += _claim_all(core, source, pk, plans, taking)
        # Once more, where somebody was faster but may have left something.
        again = _plan(core, source, deque(changed), taking, gives_up)
        _claim_all(core, source, pk, again, taking)
        if taking.claims:
            break
    if taking.refused is None:
        cleanup.do_some(core, source, pk)
    return taking.settled()


def _spread(core: Core, pk: str, parcels: list[Parcel]) -> list[Parcel]:
    """In order, unless other receivers take from the same head: then shuffled."""
    if core.hints.contended(pk, core.now_ms()):
        core.random.shuffle(parcels)
    return parcels


def _plan(
    core: Core,
    source: Source,
    left: deque[Parcel],
    taking: Taking,
    gives_up: Callable[[], bool],
) -> list[tuple[Parcel, list[int]]]:
    """What to claim next: parcels from `left` until enough is reserved."""
    plans = []
    while left and not taking.full:
        parcel = left.popleft()
        places = takeable_places(source, parcel, core.now_ms(), gives_up)
        places = taking.reserve(parcel, places)
        if places:
            plans.append((parcel, places))
    return plans


def _claim_all(
    core: Core,
    source: Source,
    pk: str,
    plans: Sequence[tuple[Parcel, list[int]]],
    taking: Taking,
) -> list[Parcel]:
    """Claim what was planned; answers parcels as they stand where somebody was faster."""
    seconds, nonce_of = taking.wanted.timeout_seconds, taking.wanted.nonce_of
    outcomes = core.in_parallel(
        lambda plan: try_claim(core, source, plan[0], plan[1], seconds, nonce_of), plans
    )
    changed = []
    for (parcel, places), outcome in zip(plans, outcomes, strict=True):
        if isinstance(outcome, Claim):
            taking.claims.append(outcome)
            continue
        taking.give_up(parcel, places)
        if isinstance(outcome, Unavailable):
            taking.refused = outcome
            continue
        core.hints.contend(pk, core.now_ms())
        if outcome is not None:
            changed.append(outcome)
    return changed
