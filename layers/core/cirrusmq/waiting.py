"""Long waits for a retry: the message is re-keyed to its due time, out of the partition's head."""

from __future__ import annotations

from msgspec.structs import replace

from cirrusmq import limits
from cirrusmq.core import Core
from cirrusmq.giving_up import age_limit_ms
from cirrusmq.message import pack, unpack
from cirrusmq.moves import move_out, origin
from cirrusmq.parcel import MOVED, Parcel, sort_key
from cirrusmq.source import Source
from cirrusmq.storage.parcels import PARCELS, parcel_item, partition_key


def any_long(parcel: Parcel, now_ms: int) -> bool:
    """Whether a message whose lease ran out has a long wait ahead of it."""
    return any(_long(parcel, place, now_ms) for place in range(parcel.count))


def move_long(core: Core, source: Source, parcel: Parcel, now_ms: int) -> None:
    """Re-key every message of the parcel that has a long wait ahead of it."""
    current: Parcel | None = parcel
    for place in range(parcel.count):
        if current is not None and _long(current, place, now_ms):
            current = move_to_due(core, source, current, place, current.ready_ms(place), now_ms)


def move_to_due(
    core: Core,
    source: Source,
    parcel: Parcel,
    place: int,
    due_ms: int,
    now_ms: int,
    nonce: bytes | None = None,
) -> Parcel | None:
    """Give the message at `place` a parcel of its own, available at `due_ms`.

    Its id, times and counts stay; its receipt ends. Answers what is left of the parcel, None where
    somebody was faster.
    """
    single = _single(core, source, parcel, place, due_ms, now_ms)
    left = move_out(core, source, parcel, place, [parcel_item(single)], now_ms, nonce, mark=MOVED)
    if left is not None:
        core.hints.forget(
            partition_key(PARCELS, single.source_id, single.partition), single.sort_key
        )
    return left


def _single(
    core: Core, source: Source, parcel: Parcel, place: int, due_ms: int, now_ms: int
) -> Parcel:
    position = parcel.position(place)
    parcel_id = parcel.parcel_id if "." in parcel.parcel_id else f"{parcel.parcel_id}.{position:X}"
    content = parcel.content and pack([unpack(parcel.content)[place]])
    return replace(
        parcel,
        sort_key=sort_key(_key_ms(source, parcel, due_ms), parcel_id),
        parcel_id=parcel_id,
        visible_ms=(due_ms,),
        waits_ms=(0,) if parcel.waits_ms else (),
        nonces=(b"",),
        receives=(parcel.receives[place],),
        first_received_ms=(parcel.first_received_ms[place],),
        sizes=(parcel.sizes[place],),
        positions=(position,) if position else (),
        visibility_seconds=parcel.visibility_seconds[place : place + 1],
        content=content,
        moved_from=origin(core, source, parcel, now_ms, MOVED),
    )


def _key_ms(source: Source, parcel: Parcel, due_ms: int) -> int:
    """Where the parcel stands: at its due time, or earlier where it grows too old before that."""
    limit_ms = age_limit_ms(source)
    return due_ms if limit_ms is None else min(due_ms, parcel.sent_ms + limit_ms)


def _long(parcel: Parcel, place: int, now_ms: int) -> bool:
    waits = parcel.waiting(place, now_ms)
    return waits and parcel.ready_ms(place) - now_ms > limits.MOVE_WAIT_MS
