"""Parcels and log records in the Messages table: between values and items, and reading pages.

They are converted here attribute by attribute, without PynamoDB, which takes ten times as long, and
a receive reads many. `storage.models` describes the attributes, and a test compares the two.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cirrusmq.base import limits, ulid
from cirrusmq.model.envelope import Described, pack_envelopes, unpack_envelopes
from cirrusmq.model.message import Message, pack, unpack
from cirrusmq.model.parcel import Parcel, where_differing
from cirrusmq.runtime.store import Item, key, put_if_absent

PARCELS, ARCHIVE, LOG = "Q", "R", "L"
AGE_NOTES, HEAD_MARKS = "A", "H"
INVOKES = "1"
HISTORIES = {f"a{place}": place for place in range(limits.BATCH_MESSAGES)}
"""Attributes of a URL's parcel: the latest posts of each message, packed. They are no list, since a
post changes only its message; `with_post` of `changes.py` has them fit in."""
UNTRIED = {f"g{place}": place for place in range(limits.BATCH_MESSAGES)}
"""For each message, how often it was given back untried."""
ERRORS = {f"e{place}": place for place in range(limits.BATCH_MESSAGES)}
"""For messages posted before histories were kept: the error of the newest post."""
_OF_ALL = frozenset(["pk", "sk", "expires_at"])
KNOWN = _OF_ALL.union("bcdfijklmnoprstuvwxyz", HISTORIES, UNTRIED, ERRORS)
"""The attributes of a parcel that this release reads. It writes all others back as they are."""
KNOWN_OF_RECORDS = _OF_ALL.union("beghpqtxy")
"""The same of a log record."""
LOG_TTL_MARGIN_MS = 130_000
"""A repeated send may store its parcel that much later than the log record it finds."""


class ParcelPage(msgspec.Struct, frozen=True):
    """One page of a query: the parcels, the last key read (None at the end), its read units."""

    parcels: list[Parcel]
    more_after: str | None
    units: float


def partition_key(kind: str, source_id: str, partition: int) -> str:
    """Returns the pk of a source's parcels (Q), archive (R), log (L), ages (A) or marks (H)."""
    return f"{kind}#{source_id}#{partition}"


def parcel_key(parcel: Parcel) -> Item:
    """Returns the key of a parcel's item among its source's parcels."""
    return key(partition_key(PARCELS, parcel.source_id, parcel.partition), parcel.sort_key)


def ttl_seconds(expires_ms: int) -> int:
    """Returns epoch seconds for the TTL attribute: never before `expires_ms`."""
    return -(-expires_ms // 1000)


def parcel_item(parcel: Parcel) -> Item:
    """Returns the parcel as an item under its key, with unknown attributes of a later release."""
    item: Item = {
        "pk": {"S": partition_key(PARCELS, parcel.source_id, parcel.partition)},
        "sk": {"S": parcel.sort_key},
        "v": _number_list(parcel.visible_ms),
        "k": {"L": [{"B": nonce} for nonce in parcel.nonces]},
        "r": _number_list(parcel.receives),
        "f": _number_list(parcel.first_received_ms),
        "z": _number_list(parcel.sizes),
        "t": {"N": str(parcel.sent_ms)},
        "x": {"N": str(parcel.expires_ms)},
        "j": {"N": str(parcel.answer_percent)},
        "expires_at": {"N": str(ttl_seconds(parcel.expires_ms))},
    }
    if parcel.waits_ms:
        item["w"] = _number_list(parcel.waits_ms)
    if parcel.positions:
        item["p"] = {"B": bytes(parcel.positions)}
    if any(parcel.visibility_seconds):
        item["o"] = {"B": _pack_numbers(parcel.visibility_seconds)}
    if parcel.content is not None:
        item["b"] = {"B": parcel.content}
    if parcel.log is not None:
        item["l"] = {"S": parcel.log}
    if parcel.object_days:
        item["y"] = {"N": str(parcel.object_days)}
    if parcel.own_group:
        item["u"] = {"BOOL": True}
    if not parcel.sort_key.endswith(parcel.parcel_id):
        item["i"] = {"S": parcel.parcel_id}
    if parcel.moved_from is not None:
        item["m"] = {"S": parcel.moved_from}
    if parcel.moved_ms:
        item["n"] = {"N": str(parcel.moved_ms)}
    if parcel.dead_letter:
        item["d"] = {"B": msgspec.msgpack.encode(parcel.dead_letter)}
    if parcel.fanned_out:
        item["s"] = {"BOOL": True}
    if parcel.invokes:
        item["c"] = {"S": INVOKES}
    for index, count in parcel.untried.items():
        if count:
            item[f"g{index}"] = {"N": str(count)}
    if parcel.others:
        item.update(parcel.others)
    return item


def put_if_unsent(table: str, item: Item, purged_ms: int) -> dict[str, Any]:
    """Returns a put under a key that is free, or that has a parcel sent until `purged_ms`.

        send (attempt), t = 1 ──> purge, floor 2 ──> the same send again, t = 3
        the store  t = 1 .......................... still there: the purge's steps are later

    If the purged parcel stayed, it would swallow the message sent after it.
    """
    put = put_if_absent(table, item)
    if purged_ms:
        put["ConditionExpression"] += " OR t <= :purged"
        put["ExpressionAttributeValues"] = {":purged": {"N": str(purged_ms)}}
    return put


def archive_item(parcel: Parcel, expires_ms: int) -> Item:
    """Returns the parcel as an item of its source's archive, kept until `expires_ms`."""
    item = parcel_item(parcel)
    return item | {
        "pk": {"S": partition_key(ARCHIVE, parcel.source_id, parcel.partition)},
        "sk": {"S": archive_sort_key(parcel)},
        "expires_at": {"N": str(ttl_seconds(expires_ms))},
    }


def sort_key(parcel: Parcel) -> str:
    """Returns the sort key of a parcel among its source's parcels."""
    return parcel.sort_key


def archive_sort_key(parcel: Parcel) -> str:
    """Returns `<sent at>#<sort key>`: a rewind reads the archive in order of sending.

    The parcel's id would not do: the parcels of one send share it.
    """
    return f"{parcel.sent_ms:013d}#{parcel.sort_key}"


def read_parcel(item: Item) -> Parcel:
    """Returns the parcel in an item of a source's parcels or archive."""
    kind, source_id, partition = item["pk"]["S"].split("#")
    sort_key: str = item["sk"]["S"]
    if kind == ARCHIVE:
        sort_key = sort_key.partition("#")[2]
    note = _held(item, "d", "B")
    return Parcel(
        source_id=source_id,
        partition=int(partition),
        sort_key=sort_key,
        parcel_id=_held(item, "i", "S") or sort_key.rpartition("#")[2],
        sent_ms=int(item["t"]["N"]),
        expires_ms=int(item["x"]["N"]),
        visible_ms=_integers(item["v"]),
        nonces=tuple([nonce["B"] for nonce in item["k"]["L"]]),
        receives=_integers(item["r"]),
        first_received_ms=_integers(item["f"]),
        sizes=_integers(item["z"]),
        waits_ms=_integers(item["w"]) if "w" in item else (),
        answer_percent=int(item["j"]["N"]),
        positions=tuple(_held(item, "p", "B") or b""),
        visibility_seconds=_unpack_numbers(_held(item, "o", "B")),
        content=_held(item, "b", "B"),
        log=_held(item, "l", "S"),
        object_days=object_days(item),
        own_group=_held(item, "u", "BOOL") or False,
        moved_from=_held(item, "m", "S"),
        moved_ms=int(item["n"]["N"]) if "n" in item else 0,
        dead_letter=msgspec.msgpack.decode(note) if note else None,
        fanned_out=_held(item, "s", "BOOL") or False,
        invokes="c" in item,
        histories=_by_place(item, HISTORIES, "B"),
        untried=_counts_by_place(item),
        errors=_by_place(item, ERRORS, "S"),
        others={} if KNOWN.issuperset(item) else _unknown(item, KNOWN),
    )


def age_note(parcel: Parcel, max_age_ms: int, ends_ms: int) -> Item:
    """Returns a note for the sweep of when a re-keyed parcel is too old, unlike its key.

    It is kept until `ends_ms`, as the parcel is.

    sk: `<when that is, 13 digits of ms>#<sort key of the parcel>`; pk as the parcel's, but `A`.
    """
    due_ms = parcel.sent_ms + max_age_ms
    return {
        **key(
            partition_key(AGE_NOTES, parcel.source_id, parcel.partition),
            f"{due_ms:013d}#{parcel.sort_key}",
        ),
        "t": {"N": str(parcel.sent_ms)},
        "expires_at": {"N": str(ttl_seconds(ends_ms))},
    }


def log_key(log: str, record_id: str) -> tuple[str, str]:
    """Returns the key of a log record: `log` is `<id>#<partition>`; its time is the send's."""
    sent_ms = ulid.time_of(record_id[: ulid.CHARACTERS])
    return f"{LOG}#{log}", f"{sent_ms:013d}#{record_id}"


def log_item(
    log: str,
    record_id: str,
    positions: tuple[int, ...],
    content: bytes,
    sent_ms: int,
    expires_ms: int,
    header: bytes | None,
) -> Item:
    """Returns a log record as an item: the packed messages, and their numbers in their send."""
    item = _log_item(log, record_id, sent_ms, expires_ms, header) | {"b": {"B": content}}
    if differing := where_differing(positions):
        item["p"] = {"B": bytes(differing)}
    return item


def object_log_item(
    log: str,
    record_id: str,
    messages: Mapping[int, Described],
    days: int,
    sent_ms: int,
    expires_ms: int,
    header: bytes | None,
) -> Item:
    """Returns a log record as an item, of messages in an object with this class of life.

    messages: by their numbers in their send.
    """
    return _log_item(log, record_id, sent_ms, expires_ms, header) | {
        "e": {"B": pack_envelopes(messages)},
        "y": {"N": str(days)},
    }


def _log_item(
    log: str, record_id: str, sent_ms: int, expires_ms: int, header: bytes | None
) -> Item:
    pk, sk = log_key(log, record_id)
    item: Item = {
        "pk": {"S": pk},
        "sk": {"S": sk},
        "t": {"N": str(sent_ms)},
        "x": {"N": str(expires_ms)},
        "expires_at": {"N": str(ttl_seconds(expires_ms + LOG_TTL_MARGIN_MS))},
    }
    return item if header is None else item | {"h": {"B": header}}


def purge_attribute(purged_ms: int) -> Item:
    """Returns a record's attribute for a purge just before its send, of which an earlier try may
    be stored; empty for 0."""
    return {"q": {"N": str(purged_ms)}} if purged_ms else {}


def purged_before(record: Item) -> int:
    """Returns until when an earlier try of the record's send may have been purged, or 0."""
    return int(record["q"]["N"]) if "q" in record else 0


def join_log_items(item: Item, other: Item) -> Item:
    """Returns a log record with another one's further messages of the same send behind its own.

    The other record's parcels need its messages, also if the messages of this one are in an
    object.
    """
    end = max(item["expires_at"], other["expires_at"], key=lambda each: int(each["N"]))
    joined = _unknown(other, KNOWN_OF_RECORDS) | item | {"expires_at": end}
    if "b" not in item:
        return joined | {name: other[name] for name in ("b", "p") if name in other}
    own = read_messages(item)
    messages = read_messages(other) | own
    beside = messages.keys() - own.keys()
    if beside:
        ordered = [*own, *sorted(beside)]
        joined["b"] = {"B": pack([messages[position] for position in ordered])}
        positions = where_differing(tuple(ordered))
        joined |= {"p": {"B": bytes(positions)}} if positions else {}
    return joined


def read_messages(log: Item) -> dict[int, Message]:
    """Returns the messages that a log record holds, by their numbers in their send."""
    messages = unpack(log["b"]["B"])
    positions = log["p"]["B"] if "p" in log else range(len(messages))
    return dict(zip(positions, messages, strict=True))


def read_positions(item: Item) -> Sequence[int]:
    """Returns the numbers, in their send, of the messages in a parcel's or log record's item."""
    if "e" in item:
        return tuple(unpack_envelopes(item["e"]["B"]))
    if "p" in item:
        return tuple(item["p"]["B"])
    return range(len(item["v"]["L"])) if "v" in item else tuple(read_messages(item))


def read_described(log: Item) -> Mapping[int, Described]:
    """Returns the messages of a log record, by their numbers in their send; without their bodies
    if they are in an object."""
    return unpack_envelopes(log["e"]["B"]) if "e" in log else read_messages(log)


def object_days(item: Item) -> int:
    """Returns the class of life of the object with a parcel's or record's messages; 0 without."""
    return int(item["y"]["N"]) if "y" in item else 0


def page_request(
    table: str, pk: str, after: str, until: str, limit: int | None, *, consistent: bool
) -> dict[str, Any]:
    """Returns a query for the items of `pk` with `after` < sk < `until`, in order."""
    request: dict[str, Any] = {
        "TableName": table,
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :after AND :until",
        "ExpressionAttributeValues": {
            ":pk": {"S": pk},
            ":after": {"S": after},
            ":until": {"S": until},
        },
        "ConsistentRead": consistent,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if limit is not None:
        request["Limit"] = limit
    return request


def _held(item: Item, name: str, kind: str) -> Any:
    """Returns the value of an attribute that not every parcel has, or None."""
    value = item.get(name)
    return None if value is None else value[kind]


def _unknown(item: Item, known: frozenset[str]) -> Item:
    """Returns the attributes that a later release wrote and this one does not know."""
    return {name: value for name, value in item.items() if name not in known}


def _by_place(item: Item, places: Mapping[str, int], kind: str) -> dict[int, Any]:
    """Returns the values of attributes that each message has separately, by their indexes."""
    if places.keys().isdisjoint(item):
        return {}
    return {places[name]: item[name][kind] for name in item if name in places}


def _counts_by_place(item: Item) -> dict[int, int]:
    return {index: int(count) for index, count in _by_place(item, UNTRIED, "N").items()}


def _integers(held: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple([int(value["N"]) for value in held["L"]])


def _number_list(numbers: Sequence[int]) -> Item:
    return {"L": [{"N": str(number)} for number in numbers]}


def _pack_numbers(numbers: tuple[int, ...]) -> bytes:
    return struct.pack(f">{len(numbers)}H", *numbers)


def _unpack_numbers(packed: bytes | None) -> tuple[int, ...]:
    return struct.unpack(f">{len(packed) // 2}H", packed) if packed else ()
