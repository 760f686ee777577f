"""Moving messages out of a parcel, in the transaction that puts them into another one.

    one transaction:  the messages are marked gone in their parcel (if they still are as read)
                      they are put into a separate parcel           (if that key is free)

So at every moment each is in exactly one place, through failures and races.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cirrusmq.lifecycle.tombstones import clear, may_vanish
from cirrusmq.model.parcel import GONE, Parcel, tombstone_until
from cirrusmq.model.source import Source, is_kept
from cirrusmq.model.transitions import Changes, changed, moved
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, TransactionRefused, put_if_absent
from cirrusmq.storage.changes import Condition, all_of, as_read, change, having, removal
from cirrusmq.storage.parcels import parcel_key

_ANSWER_OLD = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
VANISHED = "/removed"
REWOUND = "rewound"
"""In the place of a source's id: the parcel was restored from the archive."""


def origin(
    core: Core,
    source: Source,
    parcel: Parcel,
    indexes: Sequence[int],
    now_ms: int,
    mark: int = GONE,
) -> str:
    """Returns the origin of messages, for their new parcel: the id of their source.

    If the old parcel vanishes with the move, its removal looks like a delete to the meter, and the
    mark behind the id shows that it is a move.
    """
    after = changed(parcel, dict.fromkeys(indexes, moved(mark)))
    vanishes = _vanishes(core, source, parcel, after, now_ms)
    return parcel.source_id + (VANISHED if vanishes else "")


def move_out(
    core: Core,
    source: Source,
    parcel: Parcel,
    indexes: Sequence[int],
    arrivals: Sequence[Item],
    now_ms: int,
    nonces: Mapping[int, bytes] | None = None,
    mark: int = GONE,
    alongside: Sequence[Mapping[str, Any]] = (),
) -> Parcel | None:
    """Writes `arrivals` and takes the messages at `indexes` out of their parcel, all or nothing.

    nonces: receipts' nonces by index, for a move by their holders; None for any other. mark: the
    messages' state in the old parcel, if that stays. alongside: writes of the same transaction that
    note the move. Returns the parcel after the move, or None if another worker was faster.
    """
    noted_ms = now_ms if source.gives_away(parcel) else None
    changes = dict.fromkeys(indexes, moved(mark, noted_ms))
    after = changed(parcel, changes)
    vanishes = _vanishes(core, source, parcel, after, now_ms)
    # A move that removes the parcel compares all of it: a neighbour may be rewound at that time.
    seen = as_read(parcel, range(parcel.count) if vanishes else indexes, "visible_ms")
    still = all_of([seen, having("nonces", nonces or {})])
    try:
        core.store.transact(
            [
                _departure(core, source, parcel, changes, still, vanishes=vanishes),
                *({"Put": put_if_absent(core.tables.messages, item)} for item in arrivals),
                *alongside,
            ]
        )
    except TransactionRefused as refused:
        # An earlier try of this very move leaves both: the messages gone, and the arrivals' keys
        # taken. One of them alone is another worker's change, and nothing was moved.
        arrived = any(1 <= write <= len(arrivals) for write in refused.failed)
        if 0 not in refused.failed or not arrived:
            return None
    if after.spent() and not vanishes:
        clear(core, source, after, now_ms)
    return after


def _vanishes(core: Core, source: Source, parcel: Parcel, after: Parcel, now_ms: int) -> bool:
    """Returns True if the move removes the parcel: no message and no trace is left in it."""
    scale = core.clock.scale
    if not after.spent() or not may_vanish(source, after.visible_ms, parcel, now_ms, scale):
        return False
    return not is_kept(source, after)


def _departure(
    core: Core,
    source: Source,
    parcel: Parcel,
    changes: Changes,
    still: Condition,
    *,
    vanishes: bool,
) -> dict[str, Any]:
    table, place = core.tables.messages, parcel_key(parcel)
    if vanishes:
        return {"Delete": {**removal(table, place, still), **_ANSWER_OLD}}
    ends_ms = None
    if parcel.first_key:
        # A message that moved outlives the ones it was sent with, and TTL would free their key.
        ends_ms = tombstone_until(parcel, core.clock.scale) + 1
        if not _is_mere_tombstone(source, changed(parcel, changes)):
            ends_ms = max(ends_ms, source.removable_ms(parcel))
    return {"Update": {**change(table, place, changes, still, ends_ms=ends_ms), **_ANSWER_OLD}}


def _is_mere_tombstone(source: Source, after: Parcel) -> bool:
    """Returns True if a parcel is kept only for its key, so that TTL may take it early."""
    return after.spent() and not source.traced and not is_kept(source, after)
