"""Fan-out: from a log record, the parcels of everyone who is to get it.

The key and the content of each parcel come from the record alone and are put if absent, so a
repeated or re-cut batch of the stream changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cirrusmq import ulid
from cirrusmq.core import Core
from cirrusmq.decoding import decode_packed
from cirrusmq.enqueue import LogHeader
from cirrusmq.filters.selection import compile_filter
from cirrusmq.message import unpack
from cirrusmq.receivers import Receiver, cached_receivers
from cirrusmq.shares import Share, parcels_of, put_parcels
from cirrusmq.storage.store import Item
from cirrusmq.topic_fan_out import deliver_topic_record
from cirrusmq.topic_records import holds_messages, is_topic_record


def fan_out(core: Core, record: Item) -> None:
    """Deliver a log record to all receivers of its queue, or subscriptions of its topic."""
    if not holds_messages(record):
        return
    if is_topic_record(record):
        deliver_topic_record(core, record)
    else:
        deliver_record(core, record, cached_receivers(core, record["pk"]["S"].split("#")[1]))


def deliver_record(core: Core, record: Item, receivers: Sequence[Receiver]) -> int:
    """Make the parcels of these receivers; answers how many messages they hold together."""
    if "h" not in record:  # from before the queue had receivers
        return 0
    sent_ms = int(record["t"]["N"])
    parcels = [
        parcel
        for share in _shares(record, [each for each in receivers if sent_ms >= each.start_ms])
        for parcel in parcels_of(share)
    ]
    put_parcels(core, parcels)
    return sum(parcel.count for parcel in parcels)


def _shares(record: Item, receivers: Sequence[Receiver]) -> Iterator[Share]:
    header = decode_packed(record["h"]["B"], LogHeader)
    messages = unpack(record["b"]["B"])
    _, queue_id, partition = record["pk"]["S"].split("#")
    parcel_id = record["sk"]["S"].partition("#")[2]
    sent_ms = int(record["t"]["N"])
    moved = "." in parcel_id  # keys of messages from another queue have the time of the move
    skew_ms = 0 if moved else ulid.time_of(parcel_id[: ulid.CHARACTERS]) - sent_ms
    for receiver in receivers:
        selection = compile_filter(receiver.filter, "queue")
        yield Share(
            source_id=receiver.id,
            places=[
                place
                for place, message in enumerate(messages[: len(header.positions)])
                if selection.matches(message.tags, "", message.attributes)
            ],
            messages=messages,
            positions=header.positions,
            parcel_id=parcel_id,
            partition=int(partition),
            log=f"{queue_id}#{partition}",
            sent_ms=sent_ms,
            expires_ms=int(record["x"]["N"]),
            available_ms=header.available_ms,
            skew_ms=skew_ms,
            visibility_seconds=header.visibility_seconds,
            sequences=header.sequences,
            group_partitions=header.partitions,
            inline=False,
            log_is_own=True,
            dead_letter=header.dead_letter,
        )
