"""Taking from the head of a partition of an unordered source."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from cirrusmq import dead_letters, spent, waiting
from cirrusmq.claims import Claim, NonceOf, try_claim
from cirrusmq.core import Core
from cirrusmq.errors import Unavailable
from cirrusmq.giving_up import reason_to_give_up
from cirrusmq.parcel import Parcel
from cirrusmq.scan import from_key, read_page, until_key
from cirrusmq.source import Source
from cirrusmq.storage.parcels import PARCELS, partition_key

_FEWEST_PER_PAGE = 10
_MOST_PER_PAGE = 2_000


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
    for parcels in _pages_with_something(core, source, pk, wanted.most):
        left = deque(_spread(core, pk, parcels))
        changed: list[Parcel] = []
        while left and not taking.full:
            plans = _plan(core, source, left, taking)
            changed += _claim_all(core, source, pk, plans, taking)
        # Once more, where somebody was faster but may have left something.
        _claim_all(core, source, pk, _plan(core, source, deque(changed), taking), taking)
        if taking.claims:
            break
    return taking.settled()


def receivable_places(source: Source, parcel: Parcel, now_ms: int) -> list[int]:
    """The places of a parcel's messages that a receiver can have now."""
    if parcel.sent_ms <= source.purged_ms:
        return []
    return [place for place in range(parcel.count) if parcel.receivable(place, now_ms)]


def _pages_with_something(core: Core, source: Source, pk: str, most: int) -> Iterator[list[Parcel]]:
    """Pages of parcels, from the first that holds something to take on.

    What lies before it is in flight; the hint keeps the next receive from reading it again. Pages
    grow, so that a long stretch in flight takes few calls.
    """
    now_ms = core.now_ms()
    hint, mark = core.hints.start(pk, now_ms)
    start = max(from_key(core, source, now_ms), hint)
    until, limit, exclusive = until_key(source, now_ms), max(_FEWEST_PER_PAGE, most), bool(hint)
    skipping, skipped_units, ready_ms = True, 0.0, now_ms + 60_000
    while True:
        page = read_page(core, pk, start, until, limit, from_exclusive=exclusive, consistent=False)
        hopeful = []
        for parcel in page.parcels:
            if _tend(core, source, parcel, now_ms):
                hopeful.append(parcel)
            elif not hopeful:
                ready_ms = min(ready_ms, _next_ready(parcel, now_ms))
        if skipping:
            skipped_units += page.units
            before = _last_before(page.parcels, hopeful)
            if before is not None and hint:
                core.hints.extend(pk, mark, before)
            elif before is not None:
                core.hints.skip(pk, mark, before, skipped_units, ready_ms, now_ms)
        if hopeful:
            skipping = False
            yield hopeful
        if page.more_after is None:
            return
        start, exclusive = page.more_after, True
        limit = min(4 * limit, _MOST_PER_PAGE)


def _last_before(parcels: list[Parcel], hopeful: list[Parcel]) -> str | None:
    """The last key in front of the first parcel that has something."""
    if not hopeful:
        return parcels[-1].sort_key if parcels else None
    place = parcels.index(hopeful[0])
    return parcels[place - 1].sort_key if place else None


def _next_ready(parcel: Parcel, now_ms: int) -> int:
    ready = [parcel.ready_ms(place) for place in range(parcel.count) if parcel.live(place)]
    return min((moment for moment in ready if moment > now_ms), default=now_ms + 60_000)


def _tend(core: Core, source: Source, parcel: Parcel, now_ms: int) -> bool:
    """Put a parcel's stale state in order in passing; whether it has something to take."""
    if now_ms >= parcel.expires_ms or parcel.sent_ms <= source.purged_ms:
        return False
    if parcel.spent():
        spent.clear(core, source, parcel, now_ms)
        return False
    if waiting.any_long(parcel, now_ms):
        waiting.move_long(core, source, parcel, now_ms)
    return any(
        parcel.receivable(place, now_ms) or reason_to_give_up(source, parcel, place, now_ms)
        for place in range(parcel.count)
    )


def _spread(core: Core, pk: str, parcels: list[Parcel]) -> list[Parcel]:
    """In order, unless other receivers take from the same head: then shuffled."""
    if core.hints.contended(pk, core.now_ms()):
        core.random.shuffle(parcels)
    return parcels


def _plan(
    core: Core, source: Source, left: deque[Parcel], taking: Taking
) -> list[tuple[Parcel, list[int]]]:
    """What to claim next: parcels from `left` until enough is reserved.

    Messages that are to be given up move on the way.
    """
    plans = []
    while left and not taking.full:
        now_ms = core.now_ms()
        parcel = dead_letters.give_up(core, source, left.popleft(), now_ms)
        places = taking.reserve(parcel, receivable_places(source, parcel, now_ms))
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
    outcomes = core.together(
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
