"""Recovery after a crash: releases the leases and shares of the process before this one.

    before: holds a subscription's lease ── posts ── killed
    here:   the data folder's lock is ours, so no other process posts ── released

In an account no function can know that an environment is gone, so its lease has to expire: after
30 s, because a post may take 15 s.
"""

from __future__ import annotations

from cirrusmq.access import shares
from cirrusmq.push import poster_lease
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.delivery import items as delivery_items


def release_posts(core: Core, *accounts: str) -> None:
    """Ends all leases of pushers, and the running shares of their accounts and of `accounts`.

    Must be called before anything in this process posts.
    """
    with_urls = set()
    for delivery in delivery_items.read_all(core):
        with_urls.add(delivery.account)
        if delivery.holder:
            poster_lease.expire(core, delivery)
    for account in sorted(with_urls.union(accounts)):
        shares.forget_what_ran(core, account)
