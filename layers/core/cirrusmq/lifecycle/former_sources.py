"""An ordered group that was rewound: nothing new of a group while a former source holds of it.

    rewound to m3     former  m1 m2 | m3 m4 (held)        present  m3 m4 m5
    a receiver        m1 m2 are first ── m4 is held: it waits ── its lease ends ── m3 m4 m5

What a former source keeps was published before the rewind's time, so it is first. What it keeps no
more is ended with its receipts, but who holds it may still be at it: the group waits for the lease.
Nobody claims anything more there, so a group that is done with is so for good.
"""

from __future__ import annotations

from cirrusmq.lifecycle.rewound_groups import group_of
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.scan import LAST_KEY, read_page

_LOOKED_AT = 24
"""Parcels with messages: one receiver, or a few after one another, hold no more of a group."""


def are_done(core: Core, source: Source, parcel: Parcel) -> bool:
    """Whether the source's former ones have nothing of the parcel's group that is first, or held.

    Half a read unit or one for each, once for a group and environment where they are done.
    """
    group = group_of(parcel)
    return all(_is_done(core, former, parcel.partition, group) for former in source.former)


def _is_done(core: Core, former: Source, partition: int, group: str) -> bool:
    known = f"{former.id}#{partition}#{group}"
    if known in core.groups_done:
        return True
    pk, now_ms = partition_key(PARCELS, former.id, partition), core.now_ms()
    after: str | None = f"{group}#"
    passed = 0
    while after is not None and passed < _LOOKED_AT:
        page = read_page(core, pk, after, f"{group}#{LAST_KEY}", _LOOKED_AT, from_exclusive=True)
        left = [each for each in page.parcels if not each.spent() and now_ms < each.expires_ms]
        if any(_blocks(former, each, now_ms) for each in left):
            return False
        passed, after = passed + len(left), page.more_after
    core.groups_done.add(known)
    return True


def _blocks(former: Source, parcel: Parcel, now_ms: int) -> bool:
    held = any(parcel.held(place, now_ms) for place in range(parcel.count))
    return held or former.keeps(parcel)
