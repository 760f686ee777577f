"""Recovery after a crash: the leases of the process before this one are released, and its shares.

    before: holds a subscription's lease ── posts ── killed
    here:   the data folder's lock is ours, so no other process posts ── released

In an account no function can know that an environment is gone, and its lease has to end: after
30 s, since a post may take 15. Those are real seconds, which a time scale makes long ones.
"""

from __future__ import annotations

from cirrusmq.access import shares
from cirrusmq.push import poster_lease
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions import delivery_state


def release_posts(core: Core, *accounts: str) -> None:
    """End all leases, and what counts as running for these accounts and those that have URLs.

    Before anything here posts.
    """
    with_urls = set()
    for delivery in delivery_state.read_all(core):
        with_urls.add(delivery.account)
        if delivery.holder:
            poster_lease.expire(core, delivery)
    for account in sorted(with_urls.union(accounts)):
        shares.forget_what_ran(core, account)
