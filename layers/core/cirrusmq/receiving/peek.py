"""Peeking: seeing active messages without taking them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from cirrusmq.base.limits import ANSWER_BYTES
from cirrusmq.lifecycle.contents import read_contents
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.search import receivable_places
from cirrusmq.runtime.core import Core
from cirrusmq.storage.scan import scan_partition


class PeekRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a peek."""

    max: Annotated[int, Meta(ge=1, le=16, description="an integer from 1 to 16")] = 1


class Peeked(msgspec.Struct, frozen=True, kw_only=True):
    """An active message at a place of its parcel, which is not claimed."""

    parcel: Parcel
    place: int
    message: Message


def peek(core: Core, source: Source, request: PeekRequest) -> list[Peeked]:
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
                    return _with_contents(core, source, found)
                found.append((parcel, places))
                wanted -= len(places)
            if not wanted:
                return _with_contents(core, source, found)
    return _with_contents(core, source, found)


def _with_contents(
    core: Core, source: Source, found: list[tuple[Parcel, list[int]]]
) -> list[Peeked]:
    return [
        Peeked(parcel=parcel, place=place, message=messages[place])
        for (parcel, places), messages in zip(
            found, read_contents(core, source, found), strict=True
        )
        for place in places
        if place in messages
    ]
