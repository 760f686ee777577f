"""Receiving from the groups of a partition of an ordered source.

Keys are group by group, in order of sending. If all groups of a partition are on one page, the one
whose first message waits longest is first, and if all of them fit into the answer they come in that
order; where other receivers were faster lately, each starts at a random group instead:

    sent           a1   b1   a2   c1
    receives       a1 a2 ──────────────── 30 s: a's lease is over ── b1: waits longest   c1   a1 a2

In a larger partition a receiver starts at a random group. If a group's first live message cannot be
claimed it jumps past the group, so that the cost depends on the number of groups, never on their
backlog. If many groups are held a scan ends when it has cost
enough, and the next scan of its environment goes on there, in this receive or, with half of its
units, in another one. So all scans of an environment together see every group: one that is free
among 1,000 of 1 KiB after 16 scans of its partition that get nothing, or 32 by a receive each.

Groups that are held are skipped by eventually consistent reads. From the first group with a
message to claim, reads are strongly consistent and begin with the group: one that missed an
earlier message, which a rewind made receivable again, could hand out a later one.
"""

from __future__ import annotations

import logging
import sys
from typing import TypeAlias

from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle import chores
from cirrusmq.lifecycle.dead_letters.policy import dead_letter_reason
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim import claim
from cirrusmq.receiving.claim_batch import Batch
from cirrusmq.receiving.heads.ended import LONG, Beginning, first_left
from cirrusmq.receiving.ordered_pages import GroupLooks, MoveBudget, Pages
from cirrusmq.receiving.turn_memory import TurnMemory
from cirrusmq.runtime.core import Core
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY

_logger = logging.getLogger(__name__)
_FreeGroups: TypeAlias = dict[str, tuple[int, str]]
"""Hash of a group -> since when its first message waits, in ms, and that one's sequence number."""
_LAST = (sys.maxsize, "")


def take_from_groups(core: Core, source: Source, batch: Batch, walk: GroupLooks) -> None:
    """Claims up to the wanted number of messages, of each group its first ones in order."""
    pages = Pages(core, batch.pk, walk, batch.wanted.limit)
    turns = core.memory(TurnMemory)
    turn = turns.turn(batch.pk)
    free: _FreeGroups = {}
    if not turn or batch.pk not in walk.looked_at:
        walk.looked_at.add(batch.pk)
        first = pages.read(FIRST_KEY, LAST_KEY, turns.at_once(batch.pk))
        free, _ = _free_groups(core, source, first, "")
        if pages.behind is None:  # these are all groups of the partition
            _take_of(core, source, pages, free, batch)
            pages.remember(turns, barren=not batch.claims, cut=False)
            return
        pages.passed = 0
        kept = walk.units_left / 2 if turn else 0.0
        walk.units_left -= kept
        _look_around(core, source, pages, walk.start, batch)
        turn = "" if pages.paid else turn
        walk.units_left += kept
    if turn and not batch.claims:
        _look_around(core, source, pages, turn, batch)
    pages.remember(turns, barren=not batch.claims, cut=walk.units_left <= 0)
    if not batch.claims:
        # The only messages may be in front of the scan's start.
        _take_of(core, source, pages, free, batch)


def take_of_group(core: Core, source: Source, batch: Batch, walk: GroupLooks) -> None:
    """Claims the first messages of the group whose hash `walk` begins with, in order."""
    pages = Pages(core, batch.pk, walk, batch.wanted.limit)
    until = f"{walk.start}#{LAST_KEY}"
    free, long = _find_free(core, source, pages, walk.start, until)
    if free is not None:
        _take_between(core, source, pages, free, until, batch, long=long)


def _take_of(core: Core, source: Source, pages: Pages, free: _FreeGroups, batch: Batch) -> None:
    """Takes from these groups of a small partition, in the order in which they wait.

    If other receivers take from them, too, it begins at the start of the walk and goes around.
    """
    if not free:
        return
    lowest = min(free)
    if core.memory(TurnMemory).is_contended(pages.pk, core.now_ms()):
        first = min((group for group in free if group >= pages.start), default=lowest)
    elif pages.fits_one_page and len(free) > 1 and batch.limit > 1:
        _take_between(core, source, pages, lowest, LAST_KEY, batch, order=free)
        return
    else:
        first = min(free, key=free.__getitem__)
    _take_between(core, source, pages, first, LAST_KEY, batch)
    if not batch.full and lowest < first:
        _take_between(core, source, pages, FIRST_KEY, first, batch)


def _look_around(core: Core, source: Source, pages: Pages, begin: str, batch: Batch) -> None:
    """Scans the groups from `begin` around, and takes from the first free one on."""
    for after, until in ((begin, LAST_KEY), (FIRST_KEY, begin)):
        free, long = (
            (_begin_of(after), False)
            if pages.consistent
            else _find_free(core, source, pages, after, until)
        )
        if free is not None:
            _take_between(core, source, pages, free, until, batch, long=long)
        if batch.full or not pages.paid:
            return


def _begin_of(key: str) -> str:
    """Returns the key before the group that a key is within, or a key between groups itself."""
    return key if key.endswith(LAST_KEY) else _group(key)


def _find_free(
    core: Core, source: Source, pages: Pages, after: str, until: str
) -> tuple[str | None, bool]:
    """Returns the first group that may have something to take, as far as the units go, and True if
    a whole page of the group has ended.
    """
    passed = ""
    behind: str | None = after
    while behind is not None:
        parcels = pages.read(behind, until)
        free, passed = _free_groups(core, source, parcels, passed)
        if free:
            return next(iter(free)), False
        if pages.behind is not None and (group := _long_ended(core, source, parcels)):
            return group, True
        behind = pages.go_on(passed)
    return None, False


def _long_ended(core: Core, source: Source, parcels: list[Parcel]) -> str:
    """Returns the last group of a page, if enough parcels of it have ended that more may follow."""
    group, now_ms = _group(parcels[-1].sort_key) if parcels else "", core.now_ms()
    count = 0
    for parcel in reversed(parcels):
        if _group(parcel.sort_key) != group or not source.has_ended(parcel, now_ms):
            break
        count += 1
    return group if count and count >= min(LONG, len(parcels)) else ""


def _free_groups(
    core: Core, source: Source, parcels: list[Parcel], passed: str
) -> tuple[_FreeGroups, str]:
    """Returns the groups that may have a message to claim or dead-letter, and the last one seen.

    passed: the group at which the page before ended, if that group is held.
    """
    now_ms = core.now_ms()
    free: _FreeGroups = {}
    for parcel in parcels:
        group = _group(parcel.sort_key)
        if group == passed or source.has_ended(parcel, now_ms):
            continue
        passed = group
        if source.withholds(parcel):
            continue
        first = next(index for index in range(parcel.count) if parcel.live(index))
        given_up = _is_given_up(source, parcel, first, now_ms)
        if given_up or parcel.receivable(first, now_ms) or parcel.awaits_group(first):
            free[group] = (parcel.ready_ms(first), parcel.sort_key.partition("#")[2])
    return free, passed


def _take_between(
    core: Core,
    source: Source,
    pages: Pages,
    after: str,
    until: str,
    batch: Batch,
    *,
    long: bool = False,
    order: _FreeGroups | None = None,
) -> None:
    """Takes from the groups between two keys, of which the first one is not within a group.

    long: True if many parcels have ended at the beginning of the first group, which `after` names.
    order: groups to take from in this order, if one page has all of them; others follow.
    """
    done_with, beginning = "", Beginning()
    if not long:
        parcels = pages.read_to_take(after, until, whole=order is not None)
        # On several pages, a group that ends one would go on behind another.
        if order is not None and pages.behind is None:
            parcels.sort(key=lambda each: order.get(_group(each.sort_key), _LAST))
    else:
        parcels = _first_left(core, source, pages, after)
        beginning.close(after)
    while True:
        for parcel in parcels:
            group = _group(parcel.sort_key)
            if group == done_with:
                continue
            now_ms = core.now_ms()
            ended = source.has_ended(parcel, now_ms)
            beginning.meet(group, ended=ended)
            if ended:
                chores.note(core, source, pages.pk, [parcel], now_ms)
            elif not _take_first(core, source, parcel, batch, pages):
                done_with = group
            if batch.full:
                return
        if beginning.goes_on(pages):
            parcels = _first_left(core, source, pages, beginning.group)
            beginning.close(beginning.group)
            if parcels:
                continue
        behind = pages.go_on(done_with)
        if behind is None:
            return
        parcels = pages.read(behind, until)


def _first_left(core: Core, source: Source, pages: Pages, group: str) -> list[Parcel]:
    """Returns the parcels of a group behind its many ended ones."""
    left, passed = first_left(core, source, pages, group)
    chores.note(core, source, pages.pk, passed, core.now_ms())
    return left


def _take_first(core: Core, source: Source, parcel: Parcel, batch: Batch, pages: Pages) -> bool:
    """Claims from a group's next parcel. Returns True if the parcel behind it may follow."""
    now_ms = core.now_ms()
    if source.withholds(parcel):
        return False
    if source.former or source.later:
        # Few groups are rewound: the others' cold starts do without.
        from cirrusmq.lifecycle import former_sources

        if not former_sources.is_first(core, source, parcel):
            return False
    first = next((index for index in range(parcel.count) if parcel.live(index)), None)
    if first is not None and _is_given_up(source, parcel, first, now_ms):
        left = _advance(core, source, parcel, now_ms, pages.budget)
        if left is None:
            return False
        parcel = left
    if any(map(parcel.awaits_group, range(parcel.count))):
        from cirrusmq.lifecycle import rewound_groups  # of few groups, too

        parcel = rewound_groups.let_in(core, parcel, now_ms)
    live = [index for index in range(parcel.count) if parcel.live(index)]
    free: list[int] = []
    for index in live:
        # Behind a rewound message one may be used up: it is dead-lettered when it is the first.
        used_up = free and _is_given_up(source, parcel, index, now_ms)
        if used_up or not parcel.receivable(index, now_ms):
            break
        free.append(index)
    indexes = batch.reserve(parcel, free)
    if not indexes:
        return not live
    outcome = claim(
        core, source, parcel, indexes, batch.wanted.timeout_seconds, batch.wanted.nonce_of
    )
    if batch.note(parcel, indexes, outcome):
        return indexes == live
    if not isinstance(outcome, Unavailable):
        core.memory(TurnMemory).contend(pages.pk, core.now_ms())
    return False


def _is_given_up(source: Source, parcel: Parcel, index: int, now_ms: int) -> bool:
    """Returns True if a message is dead-lettered instead of received."""
    return source.gives_up and dead_letter_reason(source, parcel, index, now_ms) is not None


def _advance(
    core: Core, source: Source, parcel: Parcel, now_ms: int, budget: MoveBudget
) -> Parcel | None:
    """Dead-letters the parcel's first messages. Returns the rest, or None if that must wait."""
    # Few messages are given up: the cold starts of other receives do without.
    from cirrusmq.lifecycle.dead_letters.move import advance

    try:
        return advance(core, source, parcel, now_ms, budget.spend)
    except Unavailable as error:
        _logger.warning("a message of %s is not given up: %r", source.id, error.__cause__)
        budget.end()
        return None


def _group(sort_key: str) -> str:
    return sort_key.partition("#")[0]
