"""Claiming from groups of a fair partition: the share of each, and then more of the larger ones.

    wanted 8, a share is 2      loud 6: 2     red 1: 1     blue 3: 2      then loud: 2, blue: 1

A claim takes from the rate of its group first, if groups have one.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from cirrusmq.model.source import Source
from cirrusmq.receiving.claim_batch import Batch
from cirrusmq.receiving.heads.scan import Claimable, Head, pages_with_something
from cirrusmq.receiving.unordered import Lost, claim_all, left_to_claim, plan, spread
from cirrusmq.runtime.core import Core

if TYPE_CHECKING:
    from cirrusmq.receiving.group_rates import GroupRate

_SHARES = 4
"""A receive takes from this number of groups, if there are as many."""


class GroupSlice(msgspec.Struct):
    """Parcels of one group with messages to claim, and the number that may be claimed."""

    prefix: str
    """The group's part of the keys."""
    room: int
    rate: GroupRate | None
    """The rate of the group; None if it has none."""
    parcels: deque[Claimable] = msgspec.field(default_factory=deque)

    def count(self, limit: int) -> int:
        """Returns the number of its messages to claim, at most `limit`."""
        return min(limit, self.room, sum(len(each.indexes) for each in self.parcels))

    def allow(self, quota: int) -> int:
        """Returns how many of a quota of messages may be claimed now, by the group's rate."""
        if self.rate is None:
            return quota
        allowed = self.rate.allow(quota)
        if allowed < quota:
            self.room = allowed
        return allowed

    def give_back(self, count: int, second: int) -> None:
        """Returns to the rate what a claim that was allowed in `second` did not get."""
        if self.rate is not None:
            self.rate.give_back(count, second)


def fill(core: Core, pk: str, lot: GroupSlice, parcels: list[Claimable]) -> GroupSlice:
    """Gives a slice its parcels: in order, or shuffled if others take from the same partition."""
    lot.parcels = deque(spread(core, pk, parcels))
    return lot


def fair_share(limit: int) -> int:
    """Returns the number of messages that a receive first takes from a group."""
    return -(-limit // _SHARES)


def quotas(counts: list[int], limit: int) -> list[int]:
    """Returns the messages to take from groups that have `counts`: their shares, then the rest."""
    share = fair_share(limit)
    taken = [0] * len(counts)
    while limit and taken != counts:
        for number, count in enumerate(counts):
            more = min(share, count - taken[number], limit)
            taken[number] += more
            limit -= more
    return taken


def take_from(core: Core, source: Source, lots: list[GroupSlice], batch: Batch) -> None:
    """Claims parcels of all lots in parallel, until the batch is full or nothing is left.

    If others were faster at all of them, their groups are read further, as the head of a plain
    partition is:

        this receive   reads a page of g ─────────────────── claims it: refused    reads on in g
        others              read it, too ──── claim it
    """
    lost = _claim_shares(core, source, lots, batch)
    if lost and not batch.full:
        # Once more, for parcels of which a faster receiver may have left some messages.
        _claim_shares(core, source, lots, batch)
    for prefix, lot in lost.items():
        head, limit = Head(batch.pk, prefix), batch.wanted.limit
        pages = pages_with_something(core, source, head, limit, batch=batch)
        while lot.room > 0 and not batch.ends and (parcels := next(pages, None)):
            _claim_shares(core, source, [fill(core, batch.pk, lot, parcels)], batch)


def _claim_shares(
    core: Core, source: Source, lots: list[GroupSlice], batch: Batch
) -> dict[str, GroupSlice]:
    """Claims the share of each lot, and then more of them, until the batch is full.

    Returns the lots in which others were faster, by the prefix of their group, with the parcels
    that still have messages.
    """
    by_group = {lot.prefix: lot for lot in lots}
    lost: list[Lost] = []
    while any(lot.parcels for lot in lots) and not batch.full:
        now_ms, limit = core.now_ms(), batch.wanted.limit - batch.count
        second = now_ms // 1_000
        shares = quotas([lot.count(limit) for lot in lots], limit)
        allowed = _allowed(core, source, lots, shares)
        plans = list[Claimable]()
        for lot, quota in zip(lots, allowed, strict=True):
            before = batch.count
            batch.limit = before + quota
            plans += plan(core, lot.parcels, batch)
            lot.room -= batch.count - before
            lot.give_back(quota - (batch.count - before), second)
        batch.limit = batch.wanted.limit
        if not plans and allowed == shares:
            break
        lost_now = claim_all(core, source, plans, batch)
        for each in lost_now:
            lot = by_group[each.parcel.key_prefix]
            lot.room += _released(source, each, now_ms)
            lot.give_back(len(each.indexes), second)
        lost += lost_now
    for left in left_to_claim(core, source, lost):
        by_group[left.parcel.key_prefix].parcels.append(left)
    return {each.parcel.key_prefix: by_group[each.parcel.key_prefix] for each in lost}


def _allowed(core: Core, source: Source, lots: list[GroupSlice], shares: list[int]) -> list[int]:
    """Returns the part of each share that the rate of its group has room for."""
    if source.group_rate is None:
        return shares
    pairs = zip(lots, shares, strict=True)
    return list(core.in_parallel(lambda pair: pair[0].allow(pair[1]), list(pairs)))


def _released(source: Source, lost: Lost, now_ms: int) -> int:
    """Returns how many messages of a lost claim nobody else holds, so that they have room again."""
    if source.max_in_flight is None or lost.left is None:
        return len(lost.indexes)
    return sum(not lost.left.held(index, now_ms) for index in lost.indexes)
