"""Peeking: seeing active messages without taking them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from cirrusmq.base.limits import ANSWER_BYTES
from cirrusmq.lifecycle.contents import read_contents
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.receive import show_received
from cirrusmq.receiving.search import receivable_places
from cirrusmq.runtime.core import Core
from cirrusmq.storage.scan import scan_partition


class PeekRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a peek."""

    max: Annotated[int, Meta(ge=1, le=16, description="an integer from 1 to 16")] = 1


def peek(core: Core, source: Source, request: PeekRequest) -> list[dict[str, Any]]:
    """Up to `max` active messages, without receipts; their state stays as it is."""
    now_ms = core.now_ms()
    found: list[tuple[Parcel, list[int]]] = []
    wanted, size = request.max, 0
    partitions = list(range(source.partitions))
    core.random.shuffle(partitions)
    for partition in partitions:
        for parcel in scan_partition(core, source, partition, now_ms):
            places = receivable_places(source, parcel, now_ms)[:wanted]
            if places:
                size += sum(map(parcel.answer_bytes, places))
                if found and size > ANSWER_BYTES:
                    return _show(core, source, found)
                found.append((parcel, places))
                wanted -= len(places)
            if not wanted:
                return _show(core, source, found)
    return _show(core, source, found)


def _show(
    core: Core, source: Source, found: list[tuple[Parcel, list[int]]]
) -> list[dict[str, Any]]:
    return [
        show_received(parcel, place, messages[place])
        for (parcel, places), messages in zip(
            found, read_contents(core, source, found), strict=True
        )
        for place in places
        if place in messages
    ]
