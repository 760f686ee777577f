"""Recovery after a crash: releases the leases, slots and shares of the process before this one.

    before: holds a subscription's lease ── posts ── killed
    here:   the data folder's lock is ours, so no other process posts ── released

In an account no function can know that an environment is gone, so its lease has to expire: after
30 s, because a post may take 15 s; a slot of a function's worker 30 s after the function's timeout.
A message that a dead worker had claimed waits for its own lease, here as there.
"""

from __future__ import annotations

from cirrusmq.access import shares
from cirrusmq.invoking import slots
from cirrusmq.push import poster_lease
from cirrusmq.runtime.core import Core
from cirrusmq.storage.counters import read_all_counters
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.sources import present_source


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


def release_slots(core: Core) -> None:
    """Releases the slots of all functions of queues and groups that have messages.

    Must be called before anything in this process calls a function.
    """
    for counter in read_all_counters(core):
        source = present_source(core, counter.resource_id) if counter.holds else None
        if source is not None and source.invoke is not None:
            slots.release_all(core, source.owner_id)
