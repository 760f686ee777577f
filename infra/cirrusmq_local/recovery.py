"""After a crash: what the process before this one held is free again.

    before: holds a schedule, leases a message ── posts ── killed
    here:   the data folder's lock is ours, so nobody posts ── both are free

In an account nobody can know that an environment is gone, and their times run out: 30 s, since a
post may take 15. Those are real seconds, which a time scale makes long ones.
"""

from __future__ import annotations

from cirrusmq import schedules
from cirrusmq.attempts import free
from cirrusmq.core import Core
from cirrusmq.pushes import pending, push_of


def release_posts(core: Core) -> None:
    """Free schedules and messages that were being posted; before anything here posts."""
    for schedule in schedules.read_all(core):
        if schedule.holder:
            schedules.release(core, schedule, schedule.holder)
        push = push_of(core, schedule)
        if push is None:
            continue
        for parcel, places in pending(push, schedule):
            leased = [place for place in places if parcel.nonces[place]]
            if leased:
                free(core, parcel, leased)
