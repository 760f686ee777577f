"""Fetching what a parcel's messages say, from the parcel itself or from the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cirrusmq.model.message import Message, unpack
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import log_key, read_messages


def read_contents(
    core: Core, source: Source, wanted: Iterable[tuple[Parcel, Sequence[int]]]
) -> list[dict[int, Message]]:
    """For each (parcel, places) the messages at those places; one that cannot be read is absent.

    A record that the cheap read does not see yet is asked for once more, strongly consistent.
    """
    parcels = list(wanted)
    keys = {_log_key(source, parcel) for parcel, _ in parcels if parcel.content is None}
    table = core.tables.messages
    records = core.store.get_many(table, sorted(keys), consistent=False)
    missing = keys - records.keys()
    if missing:
        records |= core.store.get_many(table, sorted(missing), consistent=True)
    found = []
    for parcel, places in parcels:
        if parcel.content is not None:
            messages = unpack(parcel.content)
            found.append({place: messages[place] for place in places})
            continue
        record = records.get(_log_key(source, parcel))
        if record is None:
            found.append({})
            continue
        sent = read_messages(record)
        found.append({place: _pick(sent, parcel.position(place)) for place in places})
    return found


def _pick(messages: dict[int, Message], position: int) -> Message:
    # A record of one message may be a copy of one that was sent among others.
    return messages[position] if len(messages) > 1 else next(iter(messages.values()))


def _log_key(source: Source, parcel: Parcel) -> tuple[str, str]:
    log = parcel.log or f"{source.log_id}#{parcel.partition}"
    return log_key(log, parcel.record_id)
