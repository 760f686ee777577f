"""Re-keying messages in their source: to a later place in their partition's order.

    key      t0                        t1 > t0
    before   [a b c]                               b and c are given back, due at t1
    after    [a - -]                   [b c]       the same ids, times and counts; no receipts

Messages that are moved together are one parcel. Keys only grow, so a reader of a partition forward
misses no message that was there when it began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.lifecycle.dead_letters.policy import age_limit_ms
from cirrusmq.lifecycle.moves import move_out, origin
from cirrusmq.model.parcel import MOVED, Parcel
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import under_key
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import age_note, parcel_item, ttl_seconds

SWEPT_MS = 180_000
"""The sweep, which runs each minute, has passed a key by then."""


def turn_ms(parcel: Parcel, indexes: Sequence[int], now_ms: int) -> int:
    """Returns the key time for messages that are given back to be active at once.

        the queue     [2 h ago ... head ............................................ now]
        given back           old key -> behind the head's messages, 3 s or more    (not here: it
                                                                                    would expire)

    They lose their turn, not the day: they are behind messages sent while they were held. The
    wait of a message before its first receive is the queue's lag; a delay is no lag, so never
    more than the age of its key.
    """
    first_ms = min(parcel.first_received_ms[index] for index in indexes)
    lag_ms = min(first_ms - parcel.sent_ms, now_ms - parcel.key_ms)
    turn = now_ms if lag_ms < limits.LAG_MS else now_ms - lag_ms + limits.TURN_MS
    return max(turn, parcel.key_ms + limits.TURN_MS)


def rekeyed(
    core: Core,
    source: Source,
    parcel: Parcel,
    indexes: Sequence[int],
    key_ms: int,
    due_ms: int,
    now_ms: int,
) -> Parcel:
    """Returns the messages at `indexes` in a separate parcel, active at `due_ms`.

    The stream does not announce it: a worker that gives messages back to a source with a function
    knows when they are due.
    """
    came_from = origin(core, source, parcel, indexes, now_ms, MOVED)
    # A key that may not grow would be one that was there before.
    later_ms = max(key_ms, parcel.key_ms + 1)
    return replace(under_key(parcel, indexes, later_ms, due_ms, came_from), invokes=False)


def rekeyed_to_due(
    core: Core, source: Source, parcel: Parcel, index: int, key_ms: int, due_ms: int, now_ms: int
) -> Parcel:
    """Returns the message at `index`, never received, in a separate parcel, whose key may be
    earlier than the old one, but not before now.

    The stream announces it to a source that hands messages to a function.
    """
    came_from = origin(core, source, parcel, [index], now_ms, MOVED)
    return under_key(parcel, [index], key_ms, due_ms, came_from)


def rekey(
    core: Core,
    source: Source,
    parcel: Parcel,
    indexes: Sequence[int],
    moved: Parcel,
    now_ms: int,
    nonces: Mapping[int, bytes] | None = None,
    alongside: Sequence[Item] = (),
) -> Parcel | None:
    """Puts `moved` in the place of the messages at `indexes`, in one transaction.

    Their receipts end. The new key no longer shows when they are too old for a source that
    dead-letters by age, so the sweep gets a note. alongside: items put in the same transaction.
    Returns the rest of the parcel, or None if another worker was faster.
    """
    if source.gives_away(parcel):
        moved = replace(moved, moved_ms=now_ms)
    limit_ms = age_limit_ms(source)
    notes = [*alongside]
    if limit_ms is not None and _needs_note(source, moved, limit_ms):
        notes.append(age_note(moved, limit_ms, source.removable_ms(moved)))
    puts = [{"Put": {"TableName": core.tables.messages, "Item": note}} for note in notes]
    item = parcel_item(moved)
    if any(moved.receives):
        item["expires_at"] = {"N": str(ttl_seconds(source.removable_ms(moved)))}
    return move_out(core, source, parcel, indexes, [item], now_ms, nonces, MOVED, puts)


def _needs_note(source: Source, moved: Parcel, limit_ms: int) -> bool:
    """Returns True if the sweep may pass the new key too late, and find no note there.

    A subscription's limit is most of a day: before it, the sweep notes the parcels that it passes.
    """
    return source.subscription is None or moved.key_ms + SWEPT_MS > moved.sent_ms + limit_ms
