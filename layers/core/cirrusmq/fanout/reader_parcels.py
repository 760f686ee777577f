"""From a log record to the share of one reader, and to its parcels: the same at each repetition."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cirrusmq.fanout.parked_items import UNKNOWN_PLACE
from cirrusmq.model.parcel import Parcel, message_id, sort_key
from cirrusmq.model.priority import level_prefix, priority_of
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Subscription
from cirrusmq.queues.wake_ups.announce import wake_receivers
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.recent_ids import Recent
from cirrusmq.runtime.store import Item
from cirrusmq.sending.making import (
    Entry,
    fits,
    group_partition,
    group_prefix,
    new_parcel,
    ordered_sort_key,
    pack_entries,
)
from cirrusmq.storage.parcels import parcel_item, put_if_unsent


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a log, as the stream brought it."""

    item: Item
    place: str = UNKNOWN_PLACE
    """Its place in the stream: 40 digits."""
    came_ms: int = 0
    """When the log took it, in whole seconds, rounded down."""

    @property
    def log_id(self) -> str:
        """The id of the queue or topic that has the log."""
        return str(self.item["pk"]["S"].split("#")[1])


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription to notify that parcels wait for a post."""

    subscription: Subscription
    start: str
    """The first sort key that waits."""
    partitions: frozenset[int]
    """The partitions with parcels that wait."""
    posts: int
    """How many messages wait."""
    bytes: int
    """Upper bound of the JSON of these messages, in bytes."""
    delayed: bool
    """True if one of them is not to be posted yet."""

    def merged(self, other: Notice) -> Notice:
        """Returns both notices of one subscription as one."""
        return Notice(
            subscription=self.subscription,
            start=min(self.start, other.start),
            partitions=self.partitions | other.partitions,
            posts=self.posts + other.posts,
            bytes=self.bytes + other.bytes,
            delayed=self.delayed or other.delayed,
        )


class ReaderDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """One reader's share of a record, ready to be handed out."""

    reader_id: str
    entry: LogEntry
    lanes: frozenset[str] = frozenset()
    """A handout must not overtake an earlier one of the same lane; empty: no order is promised."""
    notice: Notice | None = None
    """The notice to the subscription when it is done, if its parcels are pushed."""

    def give(self, core: Core) -> None:
        """Hands the share out; a repetition changes nothing. This class itself writes nothing."""

    @property
    def in_order(self) -> bool:
        """True if the reader is promised an order."""
        return bool(self.lanes)


class FannedOut(Recent):
    """Ids of log records that this environment has fanned out."""


class ReaderShare(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's share of a record."""

    source_id: str
    entries: Sequence[Entry]
    """The messages that the reader gets."""
    parcel_id: str
    partition: int
    """The parcels' partition, unless the reader is ordered or has fair groups."""
    log: str
    """`<id>#<partition>` of the log that has the record."""
    sent_ms: int
    expires_ms: int
    skew_ms: int = 0
    """The time in the send's id minus `sent_ms`; the parcels' keys have the former."""
    sequences: Sequence[int] | None = None
    """Their numbers in the groups' orders, or None if the reader is not ordered."""
    unnumbered: bool = False
    """True if the reader is ordered, and the record older than its order: its messages are before
    all that have numbers, in the order of the log."""
    group_partitions: int
    fair: bool = False
    """True if the reader is fair, or has priorities: its parcels are group by group, too."""
    priorities: int | None = None
    """How many priorities the reader has, if it has any."""
    inline: bool = True
    """True if small messages travel in the parcels, so that the log need not be read."""
    log_is_own: bool = False
    """True if the reader reads this log anyway, at its parcel's partition."""
    object_days: int = 0
    """The class of life of the object with the messages; 0: they are in none."""
    dead_letter: dict[str, Any] | None = None
    invokes: bool = False
    """True if the reader hands its messages to a function."""
    others: Mapping[str, Any] = {}
    """Further attributes of the parcels."""


class ParcelsToPut(ReaderDelivery, frozen=True, kw_only=True):
    """A share that is parcels, put if absent."""

    share: ReaderShare
    parcels: Sequence[Parcel] = ()
    """The parcels of the share, if they are made already."""
    purged_ms: int | None = None
    woken: Queue | None = None
    """The queue whose waiting receivers are woken."""

    def give(self, core: Core) -> None:
        """Puts the parcels, one after the other."""
        begun_ms = 0 if self.woken is None else core.now_ms()
        parcels = self.parcels or list(parcels_of(self.share))
        put_parcels(core, parcels, self.purged_ms)
        if self.woken is not None:
            wake_receivers(core, self.woken, parcels, begun_ms)


def parcels_of(share: ReaderShare) -> Iterator[Parcel]:
    """The parcels of a share: by when they become available, or by group."""
    together: dict[tuple[str, int], list[Entry]] = {}
    for number, entry in enumerate(share.entries):
        lot = ("", entry.available_ms)
        if share.sequences is not None:
            lot = (_group(share, entry), share.sequences[number])
        elif share.fair:
            lot = (_lane(share, entry), entry.available_ms)
        together.setdefault(lot, []).append(entry)
    for (_, sequence), entries in together.items():
        parcel = _parcel(share, entries, sequence)
        if share.inline and not share.object_days:
            inline = replace(parcel, content=pack_entries(entries), log=None)
            parcel = inline if fits(parcel_item(inline), retries=True) else parcel
        yield parcel


def notice_of(
    subscription: Subscription, parcels: Sequence[Parcel], *, delayed: bool = False
) -> Notice:
    """Returns the notice for a URL that gets these parcels.

    A group's consumers poll anyway, or the stream wakes its worker.
    """
    return Notice(
        subscription=subscription,
        start=min((each.sort_key for each in parcels), default=""),
        partitions=frozenset(each.partition for each in parcels),
        posts=sum(each.count for each in parcels),
        bytes=sum(each.answer_bytes(index) for each in parcels for index in range(each.count)),
        delayed=delayed,
    )


def lanes_of(share: ReaderShare) -> frozenset[str]:
    """Returns the groups of the share, or none if the reader is not ordered."""
    if share.sequences is None:
        return frozenset()
    return frozenset(f"{share.source_id}#{_group(share, each)}" for each in share.entries)


def put_parcels(core: Core, parcels: Sequence[Parcel], purged_ms: int | None = None) -> None:
    """Puts the parcels that do not exist yet, one after the other.

    A parcel with the same key that was sent until `purged_ms` was purged, before its send was
    repeated; None: any older one.
    """
    for parcel in parcels:
        until_ms = parcel.sent_ms - 1 if purged_ms is None else purged_ms
        put = put_if_unsent(core.tables.messages, parcel_item(parcel), until_ms)
        core.store.try_write("PutItem", put)


def put_side_by_side(core: Core, parcels: Sequence[Parcel], purged_ms: int | None = None) -> int:
    """Puts parcels as `put_parcels`, in parallel. Returns how many messages they hold."""
    list(core.in_parallel(lambda parcel: put_parcels(core, [parcel], purged_ms), parcels))
    return sum(parcel.count for parcel in parcels)


def _parcel(share: ReaderShare, entries: Sequence[Entry], sequence: int) -> Parcel:
    """Returns the parcel of entries; `sequence`: their number in the group of an ordered reader."""
    first = entries[0]
    partition = share.partition
    key = sort_key(first.available_ms + share.skew_ms, share.parcel_id)
    if share.sequences is not None:
        group = _group(share, first)
        partition = group_partition(group, share.group_partitions)
        number = ordered_sort_key(group, sequence)
        # In the order of the log, even if a message is for later: its group waits for it.
        published = sort_key(share.sent_ms + share.skew_ms, share.parcel_id)
        key = f"{number}.{published}" if share.unnumbered else number
    elif share.fair:
        prefix = _lane(share, first)
        if share.priorities is None:
            partition = zlib.crc32(prefix.encode()) % share.group_partitions
        key = prefix + key
    found_by_itself = share.log_is_own and share.log.endswith(f"#{partition}")
    return new_parcel(
        entries,
        source_id=share.source_id,
        partition=partition,
        sort_key=key,
        parcel_id=share.parcel_id,
        sent_ms=share.sent_ms,
        expires_ms=share.expires_ms,
        log=None if found_by_itself or share.object_days else share.log,
        object_days=share.object_days,
        dead_letter=share.dead_letter,
        fanned_out=True,
        invokes=share.invokes,
        others=share.others,
    )


def _lane(share: ReaderShare, entry: Entry) -> str:
    """Returns the beginning of the message's key: its group, or its priority."""
    if share.priorities is not None:
        return level_prefix(min(priority_of(entry.message), share.priorities))
    return group_prefix(entry.message.group)


def _group(share: ReaderShare, entry: Entry) -> str:
    """Returns the message's group; a message without one is its own group."""
    group = entry.message.group
    return message_id(share.parcel_id, entry.position) if group is None else group


def levels(handouts: Iterable[ReaderDelivery]) -> list[list[ReaderDelivery]]:
    """Returns the handouts in steps: a step is handed out in parallel, after the step before it.

    a1  b1  c1      side by side
    a2  b2          behind a1, b1
    a3
    """
    behind: dict[str, int] = {}
    steps: list[list[ReaderDelivery]] = []
    for handout in handouts:
        level = max((behind.get(lane, 0) for lane in handout.lanes), default=0)
        behind.update(dict.fromkeys(handout.lanes, level + 1))
        if level == len(steps):
            steps.append([])
        steps[level].append(handout)
    return steps
