"""Removing a parcel without messages, by the first worker that reads it; else a tombstone."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import CANCELLED, DROPPED, GONE, MOVED, Parcel, tombstone_until
from cirrusmq.model.source import Source, is_kept, kept_until
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, TransactionRefused
from cirrusmq.storage.changes import none_live, removal
from cirrusmq.storage.parcels import archive_item, parcel_key

_logger = logging.getLogger(__name__)


def may_vanish(
    source: Source, states: Sequence[int], parcel: Parcel, now_ms: int, scale: float
) -> bool:
    """Returns True if a parcel whose messages ended in these states may be removed.

        client    send (attempt) ──> answer lost ............ the same send again
        store     stored ──> received ──> moved to a retry    key taken? else a second copy

    Until no attempt can be that old, and no batch of the stream is repeated, the empty parcel stays
    and keeps the key taken: a tombstone. No send repeats the key of a parcel that was re-keyed. A
    parcel with the end of a published message stays for the message's trace, until TTL removes it.
    """
    if source.traced and (GONE in states or DROPPED in states):
        return False
    moved = GONE in states or MOVED in states or CANCELLED in states
    if moved and parcel.first_key and now_ms <= tombstone_until(parcel, scale):
        return False
    return now_ms > _told_until(parcel, states, scale)


def cancelled_end_ms(source: Source, parcel: Parcel, scale: float) -> int | None:
    """Returns the expiry of a parcel that a cancellation left empty; None: its own stays."""
    if not parcel.spent() or is_kept(source, parcel):
        return None
    taken_until_ms = tombstone_until(parcel, scale) if parcel.first_key else 0
    return max(taken_until_ms, _told_until(parcel, parcel.visible_ms, scale)) + 1


def _told_until(parcel: Parcel, states: Sequence[int], scale: float) -> int:
    """Returns until when the parcel must show that messages were cancelled; 0 if none was.

    A call that is repeated because its answer was lost finds that it is done.
    """
    times = [parcel.first_received_ms[index] for index, at in enumerate(states) if at == CANCELLED]
    return max(times) + int(limits.CANCELLATION_TOLD_MS * scale) if times else 0


def clear(core: Core, source: Source, parcel: Parcel, now_ms: int) -> None:
    """Removes a spent parcel, into the archive if its messages may still be wanted.

    That is clean-up: if the store refuses, a later receive or the sweep does it.
    """
    if not may_vanish(source, parcel.visible_ms, parcel, now_ms, core.clock.scale):
        return
    request = removal(core.tables.messages, parcel_key(parcel), none_live(parcel.count))
    until_ms = kept_until(source, parcel)
    try:
        if is_kept(source, parcel) and until_ms > now_ms:
            put = {
                "TableName": core.tables.messages,
                "Item": archive_item(parcel, until_ms),
            }
            core.store.transact([{"Delete": request}, {"Put": put}])
        else:
            core.store.write("DeleteItem", request)
    except (ConditionFailed, TransactionRefused):
        return  # another worker has removed it, or rewound it
    except Unavailable:
        _logger.warning("parcel %s is spent and could not be removed", parcel.sort_key)
