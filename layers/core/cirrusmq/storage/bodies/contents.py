"""Reading the messages of parcels: from the parcel itself, from the log or from an object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from cirrusmq.model.message import Message, unpack
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.bodies.objects import BucketUnavailable, WantedObject, read_objects
from cirrusmq.storage.parcels import log_key, read_messages


def read_contents(
    core: Core, source: Source, wanted: Iterable[tuple[Parcel, Sequence[int]]]
) -> list[dict[int, Message]]:
    """Returns for each (parcel, places) the messages at the places; unreadable ones are absent.

    A record that the cheap read does not see yet is read once more, strongly consistent. Raises
    Unavailable if the store or the bucket refuses any of them.
    """
    found, refused = read_what_can_be(core, source, wanted)
    if refused is not None:
        raise refused
    return found


def read_what_can_be(
    core: Core, source: Source, wanted: Iterable[tuple[Parcel, Sequence[int]]]
) -> tuple[list[dict[int, Message]], BucketUnavailable | None]:
    """Does what `read_contents` does, but leaves out refused bodies, and returns the refusal."""
    parcels = list(wanted)
    keys = {_log_key(source, parcel) for parcel, _ in parcels if _in_log(parcel)}
    table = core.tables.messages
    records = core.store.get_many(table, sorted(keys), consistent=False)
    missing = keys - records.keys()
    if missing:
        records |= core.store.get_many(table, sorted(missing), consistent=True)
    objects = _read_objects(core, parcels)
    found: list[dict[int, Message]] = []
    for parcel, indexes in parcels:
        if parcel.object_days:
            found.append(_in_object(parcel, indexes, objects[_object_of(parcel)]))
            continue
        if parcel.content is not None:
            messages = unpack(parcel.content)
            found.append({index: messages[index] for index in indexes})
            continue
        record = records.get(_log_key(source, parcel))
        if record is None:
            found.append({})
            continue
        sent = read_messages(record)
        found.append({index: _pick(sent, parcel.position(index)) for index in indexes})
    errors = (each for each in objects.values() if isinstance(each, BucketUnavailable))
    return found, next(errors, None)


def _in_log(parcel: Parcel) -> bool:
    return parcel.content is None and not parcel.object_days


def _object_of(parcel: Parcel) -> tuple[str, int]:
    return parcel.send_id, parcel.object_days


def _read_objects(
    core: Core, parcels: Iterable[tuple[Parcel, Sequence[int]]]
) -> dict[tuple[str, int], dict[int, Message] | BucketUnavailable]:
    """Returns the messages in each object, by their numbers in their send."""
    wanted: dict[tuple[str, int], WantedObject] = {}
    for parcel, indexes in parcels:
        if parcel.object_days:
            send_id, days = _object_of(parcel)
            if (send_id, days) not in wanted:
                wanted[send_id, days] = WantedObject(send_id=send_id, days=days)
            wanted[send_id, days].add(parcel, indexes)
    if not wanted:
        return {}
    return dict(zip(wanted, read_objects(core, list(wanted.values())), strict=True))


def _in_object(
    parcel: Parcel, indexes: Sequence[int], there: dict[int, Message] | BucketUnavailable
) -> dict[int, Message]:
    if isinstance(there, BucketUnavailable):
        return {}
    found = {}
    for index in indexes:
        message = there.get(parcel.position(index))
        if message is not None:
            if parcel.own_group and message.group is None:
                message = replace(message, group=parcel.message_id(index))
            found[index] = message
    return found


def _pick(messages: dict[int, Message], position: int) -> Message:
    # A record of one message may be a copy of one that was sent among others.
    return messages[position] if len(messages) > 1 else next(iter(messages.values()))


def _log_key(source: Source, parcel: Parcel) -> tuple[str, str]:
    log = parcel.log or f"{source.log_id}#{parcel.partition}"
    return log_key(log, parcel.record_id)
