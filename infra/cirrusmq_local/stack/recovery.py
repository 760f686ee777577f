"""Recovery after a crash: the leases of the process before this one are released.

    before: holds a subscription's lease ── posts ── killed
    here:   the data folder's lock is ours, so no other process posts ── released

In an account no function can know that an environment is gone, and its lease has to end: after
30 s, since a post may take 15. Those are real seconds, which a time scale makes long ones.
"""

from __future__ import annotations

from cirrusmq.push import poster_lease
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions import delivery_state


def release_posts(core: Core) -> None:
    """End all leases; before anything here posts."""
    for delivery in delivery_state.read_all(core):
        if delivery.holder:
            poster_lease.expire(core, delivery)
