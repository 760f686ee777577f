"""Moving one message out of a parcel, in the transaction that puts it where it goes.

    one transaction:  the message is marked gone in its parcel  (if it still is as it was read)
                      the message stands in a parcel of its own (if that key is free)

So at every moment it is in exactly one place, whatever fails and whoever races.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cirrusmq.core import Core
from cirrusmq.parcel import GONE, Parcel
from cirrusmq.source import Source
from cirrusmq.spent import clear, may_vanish, parcel_key
from cirrusmq.storage.store import Item, TransactionRefused, put_if_absent

VANISHED = "/removed"
REWOUND = "rewound"
"""In the place of a source's id: the parcel came back from the archive."""


def origin(core: Core, source: Source, parcel: Parcel, now_ms: int, mark: int = GONE) -> str:
    """What a message's new parcel says of where it came from: the source's id.

    Where the old parcel vanishes with the move its removal looks like a delete to the meter, and
    the mark behind the id tells it so.
    """
    return parcel.source_id + (VANISHED if _vanishes(core, source, parcel, now_ms, mark) else "")


def _vanishes(core: Core, source: Source, parcel: Parcel, now_ms: int, mark: int) -> bool:
    return parcel.count == 1 and may_vanish(source, (mark,), parcel, now_ms, core.clock.scale)


def move_out(
    core: Core,
    source: Source,
    parcel: Parcel,
    place: int,
    arrivals: Sequence[Item],
    now_ms: int,
    nonce: bytes | None = None,
    mark: int = GONE,
    alongside: Sequence[Mapping[str, Any]] = (),
) -> Parcel | None:
    """Write `arrivals` and take the message at `place` out of its parcel, both or neither.

    With `nonce` only its newest receipt's holder may. `mark` is what it leaves in its place, where
    the parcel stays. `alongside`: writes of the same transaction that note the move. Answers the
    parcel as the move leaves it; None where somebody was faster.
    """
    after = _without(parcel, place, mark)
    try:
        core.store.transact(
            [
                _departure(core, source, parcel, place, now_ms, nonce, mark),
                *({"Put": put_if_absent(core.tables.messages, item)} for item in arrivals),
                *alongside,
            ]
        )
    except TransactionRefused as refused:
        # An earlier try of this very move leaves both: the message gone, and the arrivals' keys
        # taken. One of them alone is somebody else's doing, and nothing was moved.
        arrived = any(1 <= write <= len(arrivals) for write in refused.failed)
        if 0 not in refused.failed or not arrived:
            return None
    if parcel.count > 1 and after.spent():
        clear(core, source, after, now_ms)
    return after


def _without(parcel: Parcel, place: int, mark: int) -> Parcel:
    visible = list(parcel.visible_ms)
    visible[place] = mark
    return replace(parcel, visible_ms=tuple(visible))


def _departure(
    core: Core,
    source: Source,
    parcel: Parcel,
    place: int,
    now_ms: int,
    nonce: bytes | None,
    mark: int,
) -> dict[str, Any]:
    condition = f"v[{place}] = :seen"
    values: dict[str, Any] = {":seen": {"N": str(parcel.visible_ms[place])}}
    if nonce is not None:
        condition += f" AND k[{place}] = :nonce"
        values[":nonce"] = {"B": nonce}
    request: dict[str, Any] = {
        "TableName": core.tables.messages,
        "Key": parcel_key(parcel),
        "ConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if _vanishes(core, source, parcel, now_ms, mark):
        return {"Delete": request}
    request["UpdateExpression"] = f"SET v[{place}] = :mark"
    values[":mark"] = {"N": str(mark)}
    return {"Update": request}
