"""Redrive: gives a dead letter back to the subscription that gave it up, and to no other one.

The message has a new expiry, in a new parcel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cirrusmq.fanout.lone_parcels import items_of, lone_parcel
from cirrusmq.fanout.push_triggers import Notices
from cirrusmq.fanout.reader_parcels import notice_of
from cirrusmq.lifecycle.moves import move_out, origin
from cirrusmq.model.parcel import MOVED, Parcel, others_of
from cirrusmq.model.source import Source
from cirrusmq.model.topic import Subscription
from cirrusmq.receiving.lookup.find import LOOKUP_UNITS, near_both_ends
from cirrusmq.runtime.core import Core
from cirrusmq.storage.bisection import ReadBudget
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import LAST_KEY


def move_back(
    core: Core,
    source: Source,
    parcel: Parcel,
    index: int,
    subscription: Subscription,
    now_ms: int,
    notices: Notices,
    *,
    nonce: bytes | None = None,
    alongside: Sequence[Mapping[str, Any]] = (),
) -> Parcel | None:
    """Moves the message at `index` to a group or a URL, as `move_to_queue` does to a queue.

    A URL is noted in `notices`, which the caller sends.
    """
    (messages,) = read_contents(core, source, [(parcel, [index])])
    if index not in messages:
        return None
    seconds = parcel.visibility_seconds
    lone = lone_parcel(
        core,
        subscription,
        messages[index],
        (parcel.send_id, parcel.position(index)),
        f"{source.id}#{parcel.sort_key}",
        now_ms,
        others=others_of(parcel, [index]),
        object_days=parcel.object_days,
        visibility_seconds=seconds[index] if seconds else 0,
    )
    if lone is None:
        return None
    arrived = replace(
        lone,
        fanned_out=False,
        moved_from=origin(core, source, parcel, [index], now_ms),
    )
    items = items_of(arrived, messages[index])
    nonces = {} if nonce is None else {index: nonce}
    left = move_out(core, source, parcel, [index], items, now_ms, nonces, alongside=alongside)
    if left is not None and subscription.protocol == "http":
        notices.note(notice_of(subscription, [arrived]))
    return left


def given_back(core: Core, subscription: Subscription, made: Parcel, index: int) -> Parcel | None:
    """Returns the newest parcel of a dead letter that came back to its subscription, or None if it
    did not, or within `LOOKUP_UNITS` none is found: a group's parcel is gone when it is deleted.

    `made`: the parcel that fan-out made, with the message at `index`.
    """
    source_ids = [subscription.present_id, *(epoch.id for epoch in reversed(subscription.epochs))]
    partition, between = subscription.partition_of(made.send_id), (made.sort_key, LAST_KEY)
    if subscription.ordered and subscription.protocol == "pull":
        group, _, _ = made.sort_key.partition("#")
        partition, between = made.partition, (f"{group}#", f"{group}#{LAST_KEY}")
    budget = ReadBudget(LOOKUP_UNITS)
    for number, source_id in enumerate(source_ids):
        share = budget.portion(budget.left / (len(source_ids) - number))
        pk = partition_key(PARCELS, source_id, partition)
        found = [
            parcel
            for parcel in near_both_ends(core, pk, between, share)
            if parcel.send_id == made.send_id
            and parcel.came_alone
            and parcel.position(0) == made.position(index)
            and parcel.visible_ms[0] != MOVED
        ]
        if found:
            return max(found, key=lambda each: (each.live(0), each.sort_key))
    return None
