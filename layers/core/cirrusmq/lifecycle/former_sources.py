"""An ordered group that was rewound: nothing new is received while a former source holds of it.

    rewound to m3     former  m1 m2 | m3 m4 (held)        present  m3 m4 m5
    a receiver        m1 m2 are first ── m4 is held: it waits ── its lease ends ── m3 m4 m5

A message that a former source keeps was published before the rewind's time, so it is first. Other
messages there ended with their receipts, but their holders may still handle them: the group waits
for the leases. Nobody claims them again, so a group that is done with is done for good.

Only if clocks differ is a kept message not first. The group's order is by keys, as the publishes
took their numbers; the time that divides the sources is the publishing function's:

    clocks      m7 at 12:00:01.2 (fast) ── m8, published behind it, at 11:59:59.5 (slow)
    rewound to 12:00:00      former  … m8        present  m7 m9
    a receiver               of the two sources' first ones the lower key: m7 m8 m9

The present source has m7 when m8 is read: m8 is withheld until m7 is done. As the clocks differ by
a bounded time, nothing else changes places. One source's first message is ahead of all others' for
every receiver, so that no two are taken at once, nor does each wait for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from cirrusmq.lifecycle.rewound_groups import group_of
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.recent_ids import Recent
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import LAST_KEY, scan_pages

_LOOKED_AT = 24
"""Parcels with messages: one receiver, or a few after one another, hold at most as many."""


class GroupsDone(Recent):
    """Groups that the former sources of a rewound subscription are done with."""


def is_first(core: Core, source: Source, parcel: Parcel) -> bool:
    """Returns True if the source's former and later ones have no message of the parcel's group that
    is first, or held since before a rewind.

    Costs half a read unit or one for each former source, once for a group and environment if it is
    done, and one for each later source if the message is from a former source's last seconds.
    """
    group = group_of(parcel)
    ahead: Parcel | None = None
    for former in source.former:
        held, kept = _left(core, former, parcel.partition, group)
        if held:
            return False
        if kept is not None and (ahead is None or _overtakes(core, kept, ahead)):
            ahead = kept
    if ahead is not None:
        if not _overtakes(core, parcel, ahead):
            return False
        if any(_holds(core, former, parcel.partition, group) for former in source.former):
            return False
    if source.ends_ms is None or parcel.sent_ms < source.ends_ms - core.skew_ms:
        return True
    return not any(_has_earlier(core, later, parcel, group) for later in source.later)


def _left(core: Core, former: Source, partition: int, group: str) -> tuple[bool, Parcel | None]:
    """Returns True if a former source holds of a group, else its first kept parcel, or None."""
    known = f"{former.id}#{partition}#{group}"
    if known in core.memory(GroupsDone):
        return False, None
    now_ms = core.now_ms()
    for each in islice(_live(core, former, partition, group), _LOOKED_AT):
        if _is_held(each, now_ms):
            return True, None
        if former.keeps(each):
            return False, each
    core.memory(GroupsDone).add(known)
    return False, None


def _holds(core: Core, former: Source, partition: int, group: str) -> bool:
    now_ms = core.now_ms()
    live = islice(_live(core, former, partition, group), _LOOKED_AT)
    return any(_is_held(each, now_ms) for each in live)


def _is_held(parcel: Parcel, now_ms: int) -> bool:
    return any(parcel.held(index, now_ms) for index in range(parcel.count))


def _has_earlier(core: Core, later: Source, parcel: Parcel, group: str) -> bool:
    """Returns True if the first message of a group in a later source is before the parcel."""
    live = _live(core, later, parcel.partition, group, parcel.sort_key)
    first = next((each for each in live if later.keeps(each)), None)
    return first is not None and _overtakes(core, first, parcel)


def _overtakes(core: Core, later: Parcel, former: Parcel) -> bool:
    """Returns True if a parcel is before one of a former source, by the group's order.

    No parcel is before a dead letter that was given back there separately.
    """
    within_ms = later.sent_ms - former.sent_ms
    in_front = later.sort_key < former.sort_key and within_ms <= core.skew_ms
    return in_front and not former.came_alone


def _live(
    core: Core, source: Source, partition: int, group: str, until: str = ""
) -> Iterator[Parcel]:
    """Yields the parcels of a group that have messages, in its order, with keys up to `until`."""
    pk, now_ms = partition_key(PARCELS, source.id, partition), core.now_ms()
    last = until or f"{group}#{LAST_KEY}"
    for page in scan_pages(core, pk, until=last, behind=f"{group}#", limit=_LOOKED_AT):
        yield from (each for each in page.parcels if not each.spent() and now_ms < each.expires_ms)
