"""Long waits for a retry: the message is re-keyed to its due time, out of the partition's head."""

from __future__ import annotations

from cirrusmq.base import limits
from cirrusmq.lifecycle.rekey import rekey, rekeyed
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core


def any_long(parcel: Parcel, now_ms: int) -> bool:
    """Whether a message whose lease ran out has a long wait ahead of it."""
    if not parcel.waits_ms:
        return False
    return any(_long(parcel, place, now_ms) for place in range(parcel.count))


def move_long(core: Core, source: Source, parcel: Parcel, now_ms: int) -> Parcel:
    """Re-key every message of the parcel that has a long wait ahead of it; answers what is left."""
    together: dict[int, list[int]] = {}
    for place in range(parcel.count):
        if _long(parcel, place, now_ms):
            together.setdefault(parcel.ready_ms(place), []).append(place)
    for due_ms, places in together.items():
        moved = rekeyed(core, source, parcel, places, due_ms, due_ms, now_ms)
        left = rekey(core, source, parcel, places, moved, now_ms)
        if left is None:
            break
        parcel = left
    return parcel


def _long(parcel: Parcel, place: int, now_ms: int) -> bool:
    waits = parcel.waiting(place, now_ms)
    return waits and parcel.ready_ms(place) - now_ms > limits.MOVE_WAIT_MS
