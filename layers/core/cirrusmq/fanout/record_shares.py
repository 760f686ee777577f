"""Fan-out of a log record: a handout for each reader that is to get messages of it.

The key and the content of each parcel depend on the record alone and are put if absent, so a
repeated or re-cut batch of the stream changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cirrusmq.base import ulid
from cirrusmq.base.shapes import decode_packed
from cirrusmq.fanout.reader_parcels import (
    LogEntry,
    ParcelsToPut,
    ReaderDelivery,
    ReaderShare,
    lanes_of,
    parcels_of,
)
from cirrusmq.fanout.topic_shares import topic_handouts
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import compile_filter
from cirrusmq.model.parcel import NOTIFICATION, Parcel
from cirrusmq.publishing.log_reader import came_late, show_again, show_delayed
from cirrusmq.publishing.records import (
    has_delayed,
    holds_messages,
    is_topic_record,
    read_record,
)
from cirrusmq.queues.receivers import Receiver, cached_receivers
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.sending.making import Entry, LogHeader
from cirrusmq.storage.parcels import object_days, purged_before, read_described


class _RecordToShow(ReaderDelivery, frozen=True, kw_only=True):
    """A topic's record that readers of the log would pass by."""

    late: bool
    """True if it came late: readers may be past its place in the log. Else it is only delayed."""

    def give(self, core: Core) -> None:
        """Shows the record to the readers that are past it."""
        if self.late:
            show_again(core, self.entry.item)
        if has_delayed(self.entry.item):
            show_delayed(core, self.entry.item, read_record(self.entry.item))


def handouts_of(core: Core, entry: LogEntry) -> list[ReaderDelivery]:
    """The handouts of a record to the receivers of its queue, or to the subscriptions of its topic.

    A record that was late in a topic's log is handed out to the log itself, too.
    """
    handouts = list[ReaderDelivery]()
    late = came_late(core, entry.item, entry.came_ms)
    if late or has_delayed(entry.item):
        handouts.append(_RecordToShow(reader_id=f"{entry.log_id}.log", entry=entry, late=late))
    if not holds_messages(entry.item):
        return handouts
    if is_topic_record(entry.item):
        return handouts + topic_handouts(core, entry)
    receivers = cached_receivers(core, entry.log_id)
    return handouts + [
        ParcelsToPut(
            reader_id=share.source_id,
            entry=entry,
            share=share,
            purged_ms=purged_before(entry.item),
            lanes=lanes_of(share),
        )
        for share in _shares(entry.item, receivers)
    ]


def receivers_parcels(record: Item, receivers: Sequence[Receiver]) -> list[Parcel]:
    """The parcels that these receivers get of a record of their queue's log."""
    return [parcel for share in _shares(record, receivers) for parcel in parcels_of(share)]


def _shares(record: Item, receivers: Sequence[Receiver]) -> Iterator[ReaderShare]:
    if "h" not in record:  # from before the queue had receivers
        return
    header = decode_packed(record["h"]["B"], LogHeader)
    described = read_described(record)
    # In the order of the header; others may be behind them.
    entries = [
        Entry(
            position=position,
            message=described[position],
            available_ms=available_ms,
            visibility_seconds=visibility_seconds,
        )
        for position, available_ms, visibility_seconds in zip(
            header.positions, header.available_ms, header.visibility_seconds, strict=False
        )
    ]
    _, queue_id, partition = record["pk"]["S"].split("#")
    parcel_id = record["sk"]["S"].partition("#")[2]
    sent_ms = int(record["t"]["N"])
    moved = "." in parcel_id  # keys of messages from another queue have the time of the move
    skew_ms = 0 if moved else ulid.time_of(parcel_id[: ulid.CHARACTERS]) - sent_ms
    for receiver in receivers:
        if sent_ms < receiver.start_ms:
            continue
        selection = compile_filter(receiver.filter, "queue")
        indexes = [
            index
            for index, entry in enumerate(entries)
            if selection.matches(Filterable(entry.message.tags, "", entry.message.attributes))
        ]
        numbers = header.sequences
        yield ReaderShare(
            source_id=receiver.id,
            entries=[entries[index] for index in indexes],
            parcel_id=parcel_id,
            partition=int(partition),
            log=f"{queue_id}#{partition}",
            sent_ms=sent_ms,
            expires_ms=int(record["x"]["N"]),
            skew_ms=skew_ms,
            sequences=None if numbers is None else [numbers[index] for index in indexes],
            group_partitions=header.partitions,
            fair=header.fair,
            priorities=header.priorities,
            inline=False,
            log_is_own=True,
            object_days=object_days(record),
            dead_letter=header.dead_letter,
            others={NOTIFICATION: record[NOTIFICATION]} if NOTIFICATION in record else {},
        )
