"""After a crash: what the process before this one held is free again.

    before: holds a schedule ── posts ── killed
    here:   the data folder's lock is ours, so nobody posts ── it is free

In an account nobody can know that an environment is gone, and its time runs out: 30 s, since a
post may take 15. Those are real seconds, which a time scale makes long ones.
"""

from __future__ import annotations

from cirrusmq.push import poster_lease
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions import delivery_state


def release_posts(core: Core) -> None:
    """Have all holds lapse; before anything here posts."""
    for schedule in delivery_state.read_all(core):
        if schedule.holder:
            poster_lease.end_hold(core, schedule)
