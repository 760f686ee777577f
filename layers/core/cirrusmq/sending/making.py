"""The items that put messages into a queue: pure, the same for every sender.

A send's messages share one log record, or travel inside their parcel if that is small; a large
send has its messages in an object. Messages that become available at different times, or that are
of different groups, get separate parcels.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits, ulid
from cirrusmq.model.envelope import Described
from cirrusmq.model.message import Message, pack
from cirrusmq.model.parcel import NOTIFICATION, Parcel, message_id, sort_key, where_differing
from cirrusmq.model.priority import level_prefix, priority_of
from cirrusmq.model.queue import Queue
from cirrusmq.model.receipt import NONCE_BYTES
from cirrusmq.model.reply_note import ASKS, life_end_ms
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import log_item, object_log_item, parcel_item, purge_attribute
from cirrusmq.storage.sizes import UNIT_BYTES, attribute_bytes, item_bytes

_CHANGING = frozenset("vkrfw")
_CLAIMED_MS = "1111111111111"
_CLAIMED_WAIT_MS = "11111111"
_CLAIMED_RECEIVES = "111"
_CLAIMED_NONCE = bytes(NONCE_BYTES)
_MOVED_BYTES = attribute_bytes("m", {"S": "twelve digits/removed"})
"""Bytes of the note in a re-keyed parcel."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One message on its way into a queue, with its number in the send."""

    position: int
    message: Described
    """With its body, unless that is in an object."""
    available_ms: int
    visibility_seconds: int = 0


class LogHeader(msgspec.Struct, frozen=True, array_like=True):
    """The header of a log record: all that `fan_out` needs to make parcels for receivers."""

    available_ms: tuple[int, ...]
    visibility_seconds: tuple[int, ...]
    sequences: tuple[int, ...] | None
    """The messages' places in their groups' order; None in unordered queues."""
    positions: tuple[int, ...]
    """The messages' numbers in their send."""
    partitions: int
    """How many the queue had."""
    dead_letter: dict[str, Any] | None = None
    """The note of its source in a dead letter, which is alone in its record."""
    fair: bool = False
    """True if the queue is, or has priorities, and its receivers with it."""
    priorities: int | None = None
    """How many priorities the queue has, if it has any."""


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """The items of one send: a log record or none, and its parcels."""

    log: Item | None
    parcels: tuple[Item, ...]

    @property
    def all(self) -> list[Item]:
        """The parcels, then the log record."""
        return [*self.parcels, *([self.log] if self.log else [])]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The source of messages that were in another queue before."""

    moved_from: str
    dead_letter: dict[str, Any] | None
    back_to: str | None = None
    """The one source of the queue that has them back: its default one or a receiver; None: all."""
    others: Mapping[str, Any] = {}
    """Attributes of their parcel that this release does not know, for a parcel of them alone."""


def group_hash(group: str) -> str:
    """24 hex digits for a group: short, and never the same for two groups in practice."""
    return hashlib.blake2b(group.encode(), digest_size=12).hexdigest()


def group_prefix(group: str | None) -> str:
    """The group's part of the keys of a fair source; messages without a group have one together."""
    return f"{group_hash(group or '')}#"


def queue_prefix(queue: Queue, message: Described) -> str:
    """Returns the beginning of a message's key: its group in a fair queue, or its priority."""
    if queue.attributes.priorities is not None:
        return level_prefix(min(priority_of(message), queue.attributes.priorities))
    return group_prefix(message.group) if queue.attributes.fair else ""


def group_partition(group: str, partitions: int) -> int:
    """The partition of a group; an ordered queue's partitions never change."""
    return zlib.crc32(group_hash(group).encode()) % partitions


def items_for(
    queue: Queue,
    entries: Sequence[Entry],
    *,
    parcel_id: str,
    begun_ms: int,
    now_ms: int,
    take_sequence: Callable[[int, int], int],
    origin: Origin | None = None,
    object_days: int = 0,
    packed: bytes | None = None,
    others: Mapping[str, Any] | None = None,
) -> Items:
    """The items that put `entries` into `queue`.

    `begun_ms` is the time in the send's id: keys are made from it, so that a repeated send finds
    them. `take_sequence(partition, n)` returns the first of n new sequence numbers. `object_days`:
    the class of life of the object with the messages; 0: they are in none. `packed`: all of them,
    if that is known. `others`: further attributes of the parcels; None: `origin.others`.
    """
    if others is None:
        others = origin.others if origin else {}
    retention_ms = queue.attributes.message_retention_seconds * 1000
    expires_ms = now_ms + retention_ms
    if ASKS in others:
        expires_ms = life_end_ms(others, now_ms, expires_ms)
    if queue.attributes.ordered:
        lots = _ordered_lots(queue, entries, take_sequence)
    else:
        lots = _unordered_lots(queue, entries, parcel_id, begun_ms - now_ms)
    parcels = [
        _parcel(queue, lot, parcel_id, (now_ms, expires_ms), origin, object_days, others)
        for lot in lots
    ]
    logged = queue.log_since_ms is not None and not (origin is not None and origin.back_to)
    # Without a header fan_out passes a record by.
    header = _header(queue, entries, lots, origin) if logged else None
    # An earlier try of this send cannot have been before an older purge.
    recent = logged and queue.purged_ms > begun_ms - limits.KEY_SLACK_MS
    beside = purge_attribute(queue.purged_ms if recent else 0)
    if logged and NOTIFICATION in others:
        beside |= {NOTIFICATION: others[NOTIFICATION]}  # for the receivers' parcels
    partition = _log_partition(queue, parcel_id)
    log = f"{queue.id}#{partition}"
    if object_days:
        if not logged:
            return Items(log=None, parcels=tuple(map(parcel_item, parcels)))
        described = {entry.position: entry.message for entry in entries}
        times = now_ms, expires_ms
        record = object_log_item(log, parcel_id, described, object_days, *times, header)
        record |= beside
        return Items(log=record, parcels=_with_log(parcels, log, partition))
    # The messages of a send in one lot are packed only once.
    contents = [packed] if packed and len(lots) == 1 else []
    if not logged:
        contents = contents or [pack_entries(lot.entries) for lot in lots]
        inline = [
            parcel_item(replace(parcel, content=content))
            for parcel, content in zip(parcels, contents, strict=True)
            if len(content) < UNIT_BYTES
        ]
        retries = queue.attributes.retry is not None
        if len(inline) == len(lots) and all(fits(item, retries=retries) for item in inline):
            return Items(log=None, parcels=tuple(inline))
    positions = tuple(entry.position for entry in entries)
    content = contents[0] if len(contents) == 1 else packed or pack_entries(entries)
    return Items(
        log=log_item(log, parcel_id, positions, content, now_ms, expires_ms, header) | beside,
        parcels=_with_log(parcels, log, partition),
    )


def _with_log(parcels: Sequence[Parcel], log: str, partition: int) -> tuple[Item, ...]:
    """The items of parcels that say which log has their record, if another partition's has it."""
    return tuple(
        parcel_item(parcel if parcel.partition == partition else replace(parcel, log=log))
        for parcel in parcels
    )


def pack_entries(entries: Sequence[Entry]) -> bytes:
    """Returns the packed messages of entries, but for messages whose body is in an object."""
    return pack([entry.message for entry in entries if isinstance(entry.message, Message)])


def _log_partition(queue: Queue, parcel_id: str) -> int:
    """The partition of a send's log record.

    All records of an ordered queue with receivers are in one partition: a shard of the stream keeps
    the order of its records, and `fan_out` hands them on in that order. A split of the shard parts
    them at a key, and newer records have later keys (`limits.md` has the seconds around it).
    """
    if queue.attributes.ordered and queue.log_since_ms is not None:
        return 0
    return queue.partition_of(parcel_id[: ulid.CHARACTERS])


class _ParcelDraft(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of one parcel."""

    partition: int
    sort_key: str
    entries: tuple[Entry, ...]
    sequence: int | None = None


def _unordered_lots(
    queue: Queue, entries: Sequence[Entry], parcel_id: str, skew_ms: int
) -> list[_ParcelDraft]:
    together: dict[tuple[str, int], list[Entry]] = {}
    for entry in entries:
        prefix = queue_prefix(queue, entry.message)
        together.setdefault((prefix, entry.available_ms), []).append(entry)
    return [
        _ParcelDraft(
            partition=queue.partition_of(parcel_id[: ulid.CHARACTERS], prefix),
            sort_key=prefix + sort_key(available_ms + skew_ms, parcel_id),
            entries=tuple(held),
        )
        for (prefix, available_ms), held in together.items()
    ]


def _ordered_lots(
    queue: Queue, entries: Sequence[Entry], take_sequence: Callable[[int, int], int]
) -> list[_ParcelDraft]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        assert entry.message.group is not None
        groups.setdefault(entry.message.group, []).append(entry)
    by_partition: dict[int, list[str]] = {}
    for group in groups:
        by_partition.setdefault(group_partition(group, queue.attributes.partitions), []).append(
            group
        )
    lots = []
    for partition, held in by_partition.items():
        first = take_sequence(partition, len(held))
        for sequence, group in enumerate(held, first):
            lots.append(
                _ParcelDraft(
                    partition=partition,
                    sort_key=ordered_sort_key(group, sequence),
                    entries=tuple(groups[group]),
                    sequence=sequence,
                )
            )
    return lots


def ordered_sort_key(group: str, sequence: int) -> str:
    """The key of a parcel in an ordered source: by group, then in order of sending."""
    return f"{group_hash(group)}#{sequence:020d}"


def _parcel(
    queue: Queue,
    lot: _ParcelDraft,
    parcel_id: str,
    times_ms: tuple[int, int],
    origin: Origin | None,
    object_days: int,
    others: Mapping[str, Any],
) -> Parcel:
    return new_parcel(
        lot.entries,
        source_id=(origin.back_to if origin else None) or queue.id,
        partition=lot.partition,
        sort_key=lot.sort_key,
        parcel_id=parcel_id,
        sent_ms=times_ms[0],
        expires_ms=times_ms[1],
        waits_ms=(0,) * len(lot.entries) if queue.attributes.retry else (),
        object_days=object_days,
        moved_from=origin.moved_from if origin else None,
        dead_letter=origin.dead_letter if origin else None,
        invokes=queue.attributes.invoke is not None
        and (origin is None or origin.back_to in (None, queue.id)),
        others=others,
    )


def new_parcel(
    entries: Sequence[Entry], *, parcel_id: str, object_days: int, **fields: Any
) -> Parcel:
    """The parcel of messages that nobody has received; `fields`: what else it has."""
    count = len(entries)
    own = tuple(entry.visibility_seconds for entry in entries)
    return Parcel(
        parcel_id=parcel_id,
        visible_ms=tuple(entry.available_ms for entry in entries),
        nonces=(b"",) * count,
        receives=(0,) * count,
        first_received_ms=(0,) * count,
        sizes=tuple(entry.message.size_bytes for entry in entries),
        answer_percent=max(entry.message.answer_percent for entry in entries),
        positions=where_differing(tuple(entry.position for entry in entries)),
        visibility_seconds=own if any(own) else (),
        object_days=object_days,
        own_group=bool(object_days) and any(_in_own_group(each, parcel_id) for each in entries),
        **fields,
    )


def _in_own_group(entry: Entry, parcel_id: str) -> bool:
    """Returns True if the ordered queue gave the message its id as a group: its object has none."""
    return entry.message.group == message_id(parcel_id[: ulid.CHARACTERS], entry.position)


def fits(item: Item, *, retries: bool) -> bool:
    """Returns True if a new parcel stays in one write unit when its messages are claimed and moved.

    `retries`: True if each claim also writes the wait of a retry.
    """
    kept = sum([attribute_bytes(*each) for each in item.items() if each[0] not in _CHANGING])
    if "m" not in item:
        kept += _MOVED_BYTES
    return kept + _claimed_bytes(len(item["v"]["L"]), retries=retries) <= UNIT_BYTES


@cache
def _claimed_bytes(count: int, *, retries: bool) -> int:
    """Bytes of the lists of a parcel whose messages were claimed often."""
    values: Item = {
        "v": {"N": _CLAIMED_MS},
        "k": {"B": _CLAIMED_NONCE},
        "r": {"N": _CLAIMED_RECEIVES},
        "f": {"N": _CLAIMED_MS},
    }
    if retries:
        values["w"] = {"N": _CLAIMED_WAIT_MS}
    return item_bytes({name: {"L": [value] * count} for name, value in values.items()})


def _header(
    queue: Queue, entries: Sequence[Entry], lots: Sequence[_ParcelDraft], origin: Origin | None
) -> bytes:
    sequences = {
        entry.position: lot.sequence for lot in lots for entry in lot.entries if lot.sequence
    }
    header = LogHeader(
        available_ms=tuple(entry.available_ms for entry in entries),
        visibility_seconds=tuple(entry.visibility_seconds for entry in entries),
        sequences=tuple(sequences[entry.position] for entry in entries) if sequences else None,
        positions=tuple(entry.position for entry in entries),
        partitions=queue.attributes.partitions,
        dead_letter=origin.dead_letter if origin else None,
        fair=queue.attributes.fair or queue.attributes.priorities is not None,
        priorities=queue.attributes.priorities,
    )
    # The last member is there only where it says something: other records are as they were.
    fields = msgspec.structs.astuple(header)
    return msgspec.msgpack.encode(fields if header.priorities is not None else fields[:-1])
