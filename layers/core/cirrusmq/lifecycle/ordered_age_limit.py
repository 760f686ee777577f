"""Giving up by age in a partition of an ordered source, whose keys are group by group.

A group's first messages are its oldest, so that each group is read from its beginning until one is
young enough, and then passed over: the cost follows the groups, never their backlog.
"""

from __future__ import annotations

from cirrusmq.lifecycle.dead_letter_policy import too_old
from cirrusmq.lifecycle.dead_letters import dead_letter_queue, give_up
from cirrusmq.lifecycle.rewound_groups import group_of
from cirrusmq.lifecycle.transfer import move_to_queue
from cirrusmq.model.parcel import GONE, Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import apart_from_others
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.scan import LAST_KEY, read_page

_PAGE_PARCELS = 20


def give_up_in_groups(core: Core, source: Source, partition: int, deadline_ms: int) -> bool:
    """Move what is too old of each group; whether all groups were looked at in time."""
    pk = partition_key(PARCELS, source.id, partition)
    after, group, done_with, blocked = "!", "", "", False
    while True:
        page = read_page(core, pk, after, LAST_KEY, _PAGE_PARCELS, from_exclusive=after != "!")
        for parcel in page.parcels:
            if group_of(parcel) != group:
                group, blocked = group_of(parcel), False
            if group == done_with:
                continue
            if not parcel.spent() and not too_old(source, parcel, core.now_ms()):
                done_with = group
                continue
            done_with = group  # unless this succeeds
            with apart_from_others("a message that is too old could not be given up"):
                blocked = _give_up(core, source, parcel, blocked=blocked)
                done_with = ""
        if page.more_after is None:
            return True
        if core.now_ms() >= deadline_ms:
            return False
        after = page.more_after
        if after.partition("#")[0] == done_with:
            after = f"{done_with}#{LAST_KEY}"


def _give_up(core: Core, source: Source, parcel: Parcel, *, blocked: bool) -> bool:
    """Move what is too old of a parcel; whether what is behind it was blocked for long.

    Of a subscription's group that is so behind a message that is retried, or has become a dead
    letter: there it moves also where it was never received.
    """
    now_ms = core.now_ms()
    if not source.keeps(parcel):
        return blocked
    left = give_up(core, source, parcel, now_ms)
    blocked = blocked or any(_blocks(left, place, now_ms) for place in range(left.count))
    if source.subscription is not None and blocked:
        _follow(core, source, left, now_ms)
    return blocked


def _blocks(parcel: Parcel, place: int, now_ms: int) -> bool:
    """Whether the message at `place` keeps its group from going on, or did so for its life."""
    if parcel.visible_ms[place] == GONE:
        return True
    first_delivery = parcel.receives[place] == 1 and parcel.held(place, now_ms)
    return parcel.live(place) and bool(parcel.receives[place]) and not first_delivery


def _follow(core: Core, source: Source, parcel: Parcel, now_ms: int) -> None:
    """Move the messages of a parcel that were never received to the dead-letter queue."""
    waiting = [
        place for place in range(parcel.count) if parcel.live(place) and not parcel.receives[place]
    ]
    target = dead_letter_queue(core, source) if waiting else None
    if target is None:
        return
    left = parcel
    for place in waiting:
        left = move_to_queue(core, source, left, place, target, "expired", now_ms) or left
