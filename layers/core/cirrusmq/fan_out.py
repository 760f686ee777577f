"""Fan-out: from a log record of a queue, the parcels of its receivers.

The key and the content of each parcel come from the record alone and are put if absent, so a
repeated or re-cut batch of the stream changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import msgspec

from cirrusmq import ulid
from cirrusmq.core import Core
from cirrusmq.enqueue import LogHeader, answer_percent, group_partition, ordered_sort_key
from cirrusmq.filters import compile_filter
from cirrusmq.message import Message, unpack
from cirrusmq.parcel import Parcel, sort_key
from cirrusmq.receivers import Receiver, cached_receivers
from cirrusmq.storage.parcels import parcel_item
from cirrusmq.storage.store import ConditionFailed, Item


def fan_out(core: Core, record: Item) -> None:
    """Deliver a log record to all receivers of its queue."""
    deliver_record(core, record, cached_receivers(core, record["pk"]["S"].split("#")[1]))


def deliver_record(core: Core, record: Item, receivers: Sequence[Receiver]) -> int:
    """Make the parcels of these receivers; answers how many messages they hold together."""
    if "h" not in record:  # from before the queue had receivers
        return 0
    header = msgspec.msgpack.decode(record["h"]["B"], type=LogHeader)
    messages = unpack(record["b"]["B"])
    sent_ms = int(record["t"]["N"])
    parcels = [
        parcel
        for receiver in receivers
        if sent_ms >= receiver.start_ms
        for parcel in _parcels(record, header, messages, receiver)
    ]
    list(core.together(lambda parcel: _put(core, parcel), parcels))
    return sum(parcel.count for parcel in parcels)


def _put(core: Core, parcel: Parcel) -> None:
    item = parcel_item(parcel)
    try:
        core.store.put_if_absent(core.tables.messages, item)
    except ConditionFailed:
        return
    core.hints.forget(item["pk"]["S"], item["sk"]["S"])


def _parcels(
    record: Item, header: LogHeader, messages: Sequence[Message], receiver: Receiver
) -> Iterator[Parcel]:
    selection = compile_filter(receiver.filter, "queue")
    together: dict[Hashable, list[int]] = {}
    for place, message in enumerate(messages):
        if selection.matches(message.tags, "", message.attributes):
            lot: Hashable = header.available_ms[place]
            if header.sequences:
                lot = (message.group, header.sequences[place])
            together.setdefault(lot, []).append(place)
    for places in together.values():
        yield _parcel(record, header, messages, places, receiver)


def _parcel(
    record: Item,
    header: LogHeader,
    messages: Sequence[Message],
    places: Sequence[int],
    receiver: Receiver,
) -> Parcel:
    _, queue_id, log_partition = record["pk"]["S"].split("#")
    parcel_id = record["sk"]["S"].partition("#")[2]
    sent_ms = int(record["t"]["N"])
    first = places[0]
    if header.sequences:
        group = messages[first].group or ""
        partition = group_partition(group, header.partitions)
        place_key = ordered_sort_key(group, header.sequences[first])
    else:
        partition = int(log_partition)
        skew_ms = ulid.time_of(parcel_id[: ulid.CHARACTERS]) - sent_ms
        skew_ms = 0 if "." in parcel_id else skew_ms
        place_key = sort_key(header.available_ms[first] + skew_ms, parcel_id)
    positions = tuple(header.positions[place] for place in places)
    own = tuple(header.visibility_seconds[place] for place in places)
    return Parcel(
        source_id=receiver.id,
        partition=partition,
        sort_key=place_key,
        parcel_id=parcel_id,
        sent_ms=sent_ms,
        expires_ms=int(record["x"]["N"]),
        visible_ms=tuple(header.available_ms[place] for place in places),
        nonces=(b"",) * len(places),
        receives=(0,) * len(places),
        first_received_ms=(0,) * len(places),
        sizes=tuple(messages[place].size_bytes for place in places),
        answer_percent=max(answer_percent(messages[place]) for place in places),
        positions=() if positions == tuple(range(len(places))) else positions,
        visibility_seconds=own if any(own) else (),
        log=None if partition == int(log_partition) else f"{queue_id}#{log_partition}",
        own_record="." in parcel_id,
    )
