"""Dead-lettering by age in a partition of an ordered source, whose keys are group by group.

A group's first messages are its oldest, so that each group is read from its beginning until one is
young enough, and then passed over: the cost follows the groups, never their backlog.
"""

from __future__ import annotations

from cirrusmq.lifecycle.dead_letters.move import dead_letter_queue, give_up
from cirrusmq.lifecycle.dead_letters.policy import too_old
from cirrusmq.lifecycle.transfer import move_to_queue
from cirrusmq.model.parcel import GONE, Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.storage.walk import PartitionScan


def give_up_in_groups(core: Core, source: Source, walk: PartitionScan) -> None:
    """Dead-letters the old messages of each group of a walk."""
    group, blocked, passed = "", False, False
    for parcel in walk:
        if parcel.key_prefix != group:
            group, blocked, passed = parcel.key_prefix, False, False
        if passed:
            continue
        passed = True  # unless this succeeds
        if parcel.spent() or too_old(source, parcel, core.now_ms()):
            with log_and_continue("a message that is too old could not be given up"):
                blocked = _give_up(core, source, parcel, blocked=blocked)
                passed = False
        if passed:
            walk.pass_group()


def _give_up(core: Core, source: Source, parcel: Parcel, *, blocked: bool) -> bool:
    """Dead-letters the old messages of a parcel. Returns True if messages behind it were blocked.

    In a subscription's group, messages behind one that is retried, or has become a dead letter,
    were blocked: they move even if they were never received.
    """
    now_ms = core.now_ms()
    if not source.keeps(parcel):
        return blocked
    left = give_up(core, source, parcel, now_ms)
    blocked = blocked or any(_blocks(left, index, now_ms) for index in range(left.count))
    if source.subscription is not None and blocked:
        _follow(core, source, left, now_ms)
    return blocked


def _blocks(parcel: Parcel, index: int, now_ms: int) -> bool:
    """Returns True if the message at `index` blocks its group, or did so for its life."""
    if parcel.visible_ms[index] == GONE:
        return True
    first_delivery = parcel.tries(index) == 1 and parcel.held(index, now_ms)
    return parcel.live(index) and bool(parcel.tries(index)) and not first_delivery


def _follow(core: Core, source: Source, parcel: Parcel, now_ms: int) -> None:
    """Moves the messages of a parcel that nobody tried to the dead-letter queue."""
    waiting = [
        index for index in range(parcel.count) if parcel.live(index) and not parcel.tries(index)
    ]
    target = dead_letter_queue(core, source) if waiting else None
    if target is None:
        return
    left = parcel
    for index in waiting:
        left = move_to_queue(core, source, left, index, target, "expired", now_ms) or left
