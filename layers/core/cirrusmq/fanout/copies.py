"""From a log record to the parcels of one reader: the same ones at every repetition."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cirrusmq.model.envelope import Described
from cirrusmq.model.message import Message, pack
from cirrusmq.model.parcel import Parcel, message_id, sort_key, where_differing
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.recent_ids import Recent
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.sending.parcels import (
    fits,
    group_partition,
    group_prefix,
    in_own_group,
    ordered_sort_key,
)
from cirrusmq.storage.parcels import parcel_item, put_unless_sent


class FannedOut(Recent):
    """Ids of log records that this environment has fanned out."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's share of a record. Sequences are indexed by the messages' numbers in it."""

    source_id: str
    places: Sequence[int]
    """Numbers of the messages that the reader gets."""
    messages: Sequence[Described]
    positions: Sequence[int]
    """The messages' numbers in their send."""
    parcel_id: str
    partition: int
    """The parcels' partition, unless the reader is ordered or fair."""
    log: str
    """`<id>#<partition>` of the log that has the record."""
    sent_ms: int
    expires_ms: int
    available_ms: Sequence[int]
    skew_ms: int
    """The time in the send's id minus `sent_ms`; the parcels' keys have the former."""
    visibility_seconds: Sequence[int]
    sequences: Sequence[int] | None
    """Numbers in the groups' orders; None where the reader is not ordered."""
    unnumbered: bool = False
    """Whether the reader is ordered, and the record from a time when none was: its messages are
    before all that have numbers, in the order of the log."""
    group_partitions: int
    fair: bool = False
    """Whether the reader is fair: its parcels are group by group, too."""
    inline: bool
    """Whether small messages travel in the parcels, so that the log need not be read."""
    log_is_own: bool
    """Whether the reader looks in this log by itself, at its parcel's partition."""
    object_days: int = 0
    """The class of life of the object with the messages; 0: they are in none."""
    dead_letter: dict[str, Any] | None = None
    invokes: bool = False
    """Whether the reader hands its messages to a function."""


def parcels_of(share: Share) -> Iterator[Parcel]:
    """The parcels of a share: by when they become available, or by group."""
    together: dict[Hashable, list[int]] = {}
    for place in share.places:
        lot: Hashable = share.available_ms[place]
        if share.sequences is not None:
            lot = (_group(share, place), share.sequences[place])
        elif share.fair:
            lot = (share.messages[place].group or "", share.available_ms[place])
        together.setdefault(lot, []).append(place)
    for places in together.values():
        parcel = _parcel(share, places)
        if share.inline and not share.object_days:
            whole = (share.messages[place] for place in places)
            packed = pack([each for each in whole if isinstance(each, Message)])
            inline = replace(parcel, content=packed, log=None)
            parcel = inline if fits(parcel_item(inline), retries=True) else parcel
        yield parcel


def lanes_of(share: Share) -> frozenset[str]:
    """The groups of an ordered reader that the share is of; none where the reader is not."""
    if share.sequences is None:
        return frozenset()
    return frozenset(f"{share.source_id}#{_group(share, place)}" for place in share.places)


def put_parcels(core: Core, parcels: Sequence[Parcel], purged_ms: int | None = None) -> None:
    """Put those parcels that are not there yet, one after the other.

    A parcel with the same key that was sent until `purged_ms` was purged, before its send was
    repeated; None: any older one.
    """
    for parcel in parcels:
        _put(core, parcel, purged_ms)


def put_side_by_side(core: Core, parcels: Sequence[Parcel], purged_ms: int | None = None) -> int:
    """As `put_parcels`, in any order; answers how many messages they hold."""
    list(core.in_parallel(lambda parcel: put_parcels(core, [parcel], purged_ms), parcels))
    return sum(parcel.count for parcel in parcels)


def _put(core: Core, parcel: Parcel, purged_ms: int | None) -> None:
    item = parcel_item(parcel)
    until_ms = parcel.sent_ms - 1 if purged_ms is None else purged_ms
    put = put_unless_sent(core.tables.messages, item, until_ms)
    with contextlib.suppress(ConditionFailed):
        core.store.write("PutItem", put)


def _parcel(share: Share, places: Sequence[int]) -> Parcel:
    first = places[0]
    partition = share.partition
    key = sort_key(share.available_ms[first] + share.skew_ms, share.parcel_id)
    if share.sequences is not None:
        group = _group(share, first)
        partition = group_partition(group, share.group_partitions)
        number = ordered_sort_key(group, share.sequences[first])
        # In the order of the log, also where one is for later: its group waits for it.
        published = sort_key(share.sent_ms + share.skew_ms, share.parcel_id)
        key = f"{number}.{published}" if share.unnumbered else number
    elif share.fair:
        prefix = group_prefix(share.messages[first].group)
        partition = zlib.crc32(prefix.encode()) % share.group_partitions
        key = prefix + key
    positions = tuple(share.positions[place] for place in places)
    own = tuple(share.visibility_seconds[place] for place in places)
    found_by_itself = share.log_is_own and share.log.endswith(f"#{partition}")
    unlogged = found_by_itself or bool(share.object_days)
    return Parcel(
        source_id=share.source_id,
        partition=partition,
        sort_key=key,
        parcel_id=share.parcel_id,
        sent_ms=share.sent_ms,
        expires_ms=share.expires_ms,
        visible_ms=tuple(share.available_ms[place] for place in places),
        nonces=(b"",) * len(places),
        receives=(0,) * len(places),
        first_received_ms=(0,) * len(places),
        sizes=tuple(share.messages[place].size_bytes for place in places),
        answer_percent=max(share.messages[place].answer_percent for place in places),
        positions=where_differing(positions),
        visibility_seconds=own if any(own) else (),
        log=None if unlogged else share.log,
        object_days=share.object_days,
        own_group=bool(share.object_days)
        and any(
            in_own_group(share.messages[place], share.parcel_id, share.positions[place])
            for place in places
        ),
        dead_letter=share.dead_letter,
        fanned_out=True,
        invokes=share.invokes,
    )


def _group(share: Share, place: int) -> str:
    """The message's group; one without is its own."""
    group = share.messages[place].group
    return message_id(share.parcel_id, share.positions[place]) if group is None else group
