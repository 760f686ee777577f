"""Half messages in the Messages table, and marks that say when each is to be looked at.

| pk | sk | item |
| --- | --- | --- |
| `T#<topic id>#<partition>` | `H#<id>` | the half message |
| the same | `C#<group>#<due>#<id>` | a mark: to be checked from then on |
| the same | `E#<group>#<due>#<id>` | a mark: over from then on |
| `T#groups` | `<topic id>#<group>` | producers that have half messages, for the sweep |

    prepare     mark ──> half message ──> answer
    check       new mark ──> half message: due, checks + 1 ──> the old mark is removed
    decision    half message: state ──> the mark is removed

A mark is always put before the half message names it, so one that waits is never without. A mark
that its half message does not name is left over, or put ahead; once it is older than any call it is
removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.shapes import decode_packed
from cirrusmq.model.envelope import pack_envelopes
from cirrusmq.publishing.half_messages.half import Half, State, Terms
from cirrusmq.publishing.records import Published
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key, put_if_absent
from cirrusmq.storage.parcels import object_days, page_request, read_described, ttl_seconds

_CHECK, _END = "C", "E"
_GROUPS = "T#groups"
_STATES: dict[str, State] = {"P": "prepared", "C": "committed", "R": "rolled_back"}
_KEPT_MS = 3 * limits.HALF_LIFE_MS
"""An undecided half message is kept for this time, so that the sweep finds it."""
_PAGE = 32


class HalfMark(msgspec.Struct, frozen=True, order=True):
    """When a half message is to be looked at."""

    due_ms: int
    id: str
    """The half message's id."""
    group: str
    end: bool
    """True if it is over then; else it is to be checked."""
    pk: str
    """The partition key of the mark, and of its half message."""

    @property
    def sort_key(self) -> str:
        """The mark's sort key."""
        return f"{_prefix(self.group, end=self.end)}{self.due_ms:013d}#{self.id}"


class Producers(msgspec.Struct, frozen=True):
    """A group of a topic's producers that prepared half messages within the last days."""

    topic_id: str
    group: str
    partitions: int
    """The number of partitions of the topic."""


def halves_key(topic_id: str, partition: int) -> str:
    """The pk of a partition's half messages and marks."""
    return f"T#{topic_id}#{partition}"


def place_of(half: Half) -> tuple[str, str]:
    """Key of the half message."""
    return halves_key(half.topic_id, half.partition), f"H#{half.id}"


def mark_of(half: Half) -> HalfMark:
    """The mark that the half message names."""
    pk, _ = place_of(half)
    return HalfMark(half.due_ms, half.id, half.terms.producers, half.is_last, pk)


def half_item(half: Half) -> Item:
    """A new half message as an item."""
    item: Item = {
        **key(*place_of(half)),
        "s": {"S": "P"},
        "t": {"N": str(half.prepared_ms)},
        "x": {"N": str(half.until_ms)},
        "v": {"N": str(half.due_ms)},
        "c": {"N": "0"},
        "h": {"B": msgspec.msgpack.encode(half.terms)},
        "expires_at": {"N": str(ttl_seconds(half.prepared_ms + _KEPT_MS))},
    }
    if half.object_days:
        envelopes = pack_envelopes(half.messages)
        return item | {"e": {"B": envelopes}, "y": {"N": str(half.object_days)}}
    assert half.packed is not None
    return item | {"b": {"B": half.packed}}


def read_half(item: Item) -> Half:
    """The half message in an item."""
    _, topic_id, partition = item["pk"]["S"].split("#")
    return Half(
        topic_id=topic_id,
        partition=int(partition),
        id=item["sk"]["S"].partition("#")[2],
        state=_STATES[item["s"]["S"]],
        prepared_ms=int(item["t"]["N"]),
        until_ms=int(item["x"]["N"]),
        due_ms=int(item["v"]["N"]),
        checks=int(item["c"]["N"]),
        terms=decode_packed(item["h"]["B"], Terms),
        messages=read_described(item) if "b" in item or "e" in item else {},
        packed=item["b"]["B"] if "b" in item else None,
        object_days=object_days(item),
        announced=decode_packed(item["a"]["B"], list[Published]) if "a" in item else (),
        timed_out="o" in item,
    )


def find_half(core: Core, topic_id: str, partition: int, half_id: str) -> Half | None:
    """Returns the half message as it is now, or None if it does not exist, or no longer."""
    item = core.store.get(core.tables.messages, halves_key(topic_id, partition), f"H#{half_id}")
    return None if item is None else read_half(item)


def find_halves(core: Core, marks: list[HalfMark]) -> dict[str, Half]:
    """The half messages of these marks that exist, by their ids; at most 100."""
    keys = dict.fromkeys((mark.pk, f"H#{mark.id}") for mark in marks)
    found = core.store.get_many(core.tables.messages, list(keys), consistent=True)
    return {half.id: half for half in map(read_half, found.values())}


def put_half(core: Core, half: Half) -> None:
    """Writes a new half message. Raises ConditionFailed if its id is taken."""
    core.store.write("PutItem", put_if_absent(core.tables.messages, half_item(half)))


def commit_update(
    core: Core, half: Half, announced: list[Published], now_ms: int
) -> dict[str, Any]:
    """The update to COMMITTED of one that is prepared, and whose time is not over."""
    told = {":told": {"B": msgspec.msgpack.encode(announced)}, ":now": {"N": str(now_ms)}}
    return _decision(core, half, "C", now_ms, "a = :told, ", " AND x > :now", told)


def roll_back_update(core: Core, half: Half, now_ms: int, *, timed_out: bool) -> dict[str, Any]:
    """The update to ROLLED BACK of one that is prepared; `timed_out`: only if its time is over."""
    if not timed_out:
        return _decision(core, half, "R", now_ms)
    over = {":yes": {"BOOL": True}, ":now": {"N": str(now_ms)}}
    return _decision(core, half, "R", now_ms, "o = :yes, ", " AND x <= :now", over)


def check_update(core: Core, before: Half, after: Half, nonce: bytes) -> dict[str, Any]:
    """Returns the update by which a half message is handed out, unless it was decided or taken."""
    return {
        "TableName": core.tables.messages,
        "Key": key(*place_of(before)),
        "UpdateExpression": "SET c = :checks, v = :due, x = :until, k = :nonce",
        "ConditionExpression": "s = :prepared AND c = :seen AND v = :was",
        "ExpressionAttributeValues": {
            ":checks": {"N": str(after.checks)},
            ":due": {"N": str(after.due_ms)},
            ":until": {"N": str(after.until_ms)},
            ":nonce": {"B": nonce},
            ":prepared": {"S": "P"},
            ":seen": {"N": str(before.checks)},
            ":was": {"N": str(before.due_ms)},
        },
    }


def is_own_check(item: Item | None, nonce: bytes) -> bool:
    """Returns True if this very update, whose answer was lost, handed the half message out."""
    return item is not None and "k" in item and bytes(item["k"]["B"]) == nonce


def put_mark(core: Core, mark: HalfMark) -> None:
    """Puts a mark; one write unit."""
    item: Item = {
        **key(mark.pk, mark.sort_key),
        "expires_at": {"N": str(ttl_seconds(mark.due_ms + _KEPT_MS))},
    }
    core.store.write("PutItem", {"TableName": core.tables.messages, "Item": item})


def delete_mark(core: Core, mark: HalfMark) -> None:
    """Removes a mark; one write unit."""
    place = key(mark.pk, mark.sort_key)
    core.store.write("DeleteItem", {"TableName": core.tables.messages, "Key": place})


def read_marks(
    core: Core,
    topic_id: str,
    partition: int,
    group: str,
    from_ms: int,
    until_ms: int,
    *,
    end: bool = False,
) -> Iterator[list[HalfMark]]:
    """Pages of a group's marks that are due from `from_ms` to before `until_ms`, in order."""
    prefix = _prefix(group, end=end)
    request = page_request(
        core.tables.messages,
        halves_key(topic_id, partition),
        f"{prefix}{from_ms:013d}",
        f"{prefix}{until_ms:013d}",
        _PAGE,
        consistent=False,
    )
    for items in core.store.query_by_page(request):
        yield [_read_mark(item) for item in items]


def note_producers(core: Core, producers: Producers, now_ms: int) -> None:
    """Notes a group of producers for the sweep. One write a minute and environment."""
    sk = f"{producers.topic_id}#{producers.group}"

    def put() -> bool:
        item: Item = {
            **key(_GROUPS, sk),
            "n": {"N": str(producers.partitions)},
            "expires_at": {"N": str(ttl_seconds(now_ms + 2 * _KEPT_MS))},
        }
        core.store.write("PutItem", {"TableName": core.tables.messages, "Item": item})
        return True

    core.slow_cache.get((_GROUPS, sk), put)


def read_producers(core: Core) -> Iterator[Producers]:
    """All groups that may have half messages."""
    for item in core.store.query_all(core.tables.messages, _GROUPS):
        topic_id, _, group = item["sk"]["S"].partition("#")
        yield Producers(topic_id, group, int(item["n"]["N"]))


def _prefix(group: str, *, end: bool) -> str:
    return f"{_END if end else _CHECK}#{group}#"


def _read_mark(item: Item) -> HalfMark:
    kind, group, due, half_id = item["sk"]["S"].split("#")
    return HalfMark(int(due), half_id, group, kind == _END, item["pk"]["S"])


def _decision(
    core: Core,
    half: Half,
    state: str,
    now_ms: int,
    also_set: str = "",
    also_if: str = "",
    values: Item | None = None,
) -> dict[str, Any]:
    return {
        "TableName": core.tables.messages,
        "Key": key(*place_of(half)),
        "UpdateExpression": f"SET {also_set}s = :state, expires_at = :end REMOVE b, e, y",
        "ConditionExpression": f"s = :prepared{also_if}",
        "ExpressionAttributeValues": {
            ":state": {"S": state},
            ":prepared": {"S": "P"},
            ":end": {"N": str(ttl_seconds(now_ms + limits.DECIDED_MS))},
            **(values or {}),
        },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
