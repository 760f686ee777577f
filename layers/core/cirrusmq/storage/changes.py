"""Writing the changes of a transition to a parcel's messages, under its condition.

A change writes `v[place]`, `k[place]` … of its messages only, never a whole list:

    A: deletes the message at 0 ── v[0] = 0 ──┐
    B: holds the one at 1 ──────── v[1] = 35 ─┴──> v = [0, 35], whichever is first

A message's history of posts is kept as long as it fits into its parcel's write units:

    parcel   keys, times, content of 16 messages ── room ──│ 1 KB
    room     an equal share for each message: what one writes takes nothing of another's
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.post_history import POSTS_KEPT, Post, pack_posts
from cirrusmq.model.receipt import NONCE_BYTES
from cirrusmq.model.transitions import Changes, MessageChange
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import parcel_item, ttl_seconds
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes

Values: TypeAlias = Literal["visible_ms", "nonces", "receives", "first_received_ms"]
_LETTERS: Mapping[Values, str] = {
    "visible_ms": "v",
    "nonces": "k",
    "receives": "r",
    "first_received_ms": "f",
}
_NAME_BYTES = 3
_SURE_BYTES = NONCE_BYTES - _NAME_BYTES
"""Every parcel has this room for each message, which is posted without a receipt."""
_LATE_TIME, _MANY_POSTS = "1111111111111", "11111"


class Condition(NamedTuple):
    """Clauses that must all hold, or nothing is written."""

    clauses: tuple[str, ...]
    values: Item
    """By their names in the clauses."""


HAS_WAITS = Condition(("attribute_exists(w)",), {})
"""The parcel has a list of retry waits: a message was claimed while its source had retries."""
HAS_NO_WAITS = Condition(("attribute_not_exists(w)",), {})


def having(name: Values, values: Mapping[int, int | bytes]) -> Condition:
    """Returns the condition that messages have these values of one list."""
    letter = _LETTERS[name]
    return Condition(
        tuple(f"{letter}[{index}] = :was_{letter}{index}" for index in values),
        {f":was_{letter}{index}": _wire(value) for index, value in values.items()},
    )


def as_read(parcel: Parcel, indexes: Collection[int], *lists: Values) -> Condition:
    """Returns the condition that messages have the values of the parcel that was read."""
    return all_of(
        having(name, {index: getattr(parcel, name)[index] for index in indexes}) for name in lists
    )


def none_live(count: int) -> Condition:
    """Returns the condition that no message is left in a parcel of `count` messages."""
    return Condition(tuple(f"v[{index}] <= :none" for index in range(count)), {":none": _wire(0)})


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Returns one condition of several; a clause of two of them is in it once."""
    clauses: dict[str, None] = {}
    values: Item = {}
    for condition in conditions:
        clauses |= dict.fromkeys(condition.clauses)
        values |= condition.values
    return Condition(tuple(clauses), values)


def change(
    table: str,
    key: Item,
    changes: Changes,
    still: Condition,
    *,
    first_waits_ms: Sequence[int] = (),
    ends_ms: int | None = None,
) -> dict[str, Any]:
    """Returns an update of the messages in `changes` under the condition `still`, for the SDK.

    first_waits_ms: the waits of all messages, if the parcel has none yet (only claims of a source
    with retries write them). ends_ms: the item's new expiry; None keeps the old one.
    """
    written: dict[str, Any] = {}
    for index, new in changes.items():
        written |= _assigned(index, new, waits=not first_waits_ms)
    if first_waits_ms:
        still = all_of([still, HAS_NO_WAITS])
        written["w"] = {"L": [_wire(wait_ms) for wait_ms in first_waits_ms]}
    if ends_ms is not None:
        written["expires_at"] = _wire(ttl_seconds(ends_ms))
    names = {path: ":" + path.replace("[", "").replace("]", "") for path in written}
    values = {names[path]: value for path, value in written.items()}
    expression = "SET " + ", ".join(f"{path} = {names[path]}" for path in written)
    added = {f"g{index}": new.untried for index, new in changes.items() if new.untried is not None}
    if added:
        expression += " ADD " + ", ".join(f"{name} :{name}" for name in added)
        values |= {f":{name}": _wire(count) for name, count in added.items()}
    return {
        **removal(table, key, Condition(still.clauses, still.values | values)),
        "UpdateExpression": expression,
    }


def removal(table: str, key: Item, still: Condition) -> dict[str, Any]:
    """Returns a delete of the whole item under the condition `still`, for the SDK."""
    return {
        "TableName": table,
        "Key": key,
        "ConditionExpression": " AND ".join(still.clauses),
        "ExpressionAttributeValues": still.values,
    }


def _assigned(index: int, new: MessageChange, *, waits: bool) -> Item:
    """Returns the paths in an item that a change of one message writes, with their values."""
    values = {
        f"v[{index}]": new.visible_ms,
        f"k[{index}]": new.nonce,
        f"r[{index}]": new.receives,
        f"f[{index}]": new.first_received_ms,
        f"w[{index}]": new.wait_ms if waits else None,
        f"a{index}": new.history,
    }
    return {path: _wire(value) for path, value in values.items() if value is not None}


def _wire(value: int | bytes | str) -> Item:
    match value:
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case str():
            return {"S": value}


def with_post(parcel: Parcel, index: int, post: Post) -> bytes:
    """Returns the message's latest posts with one more, packed: ten, or as many as have room."""
    posts = [*parcel.posts(index), post][-POSTS_KEPT:]
    packed = pack_posts(posts, parcel.sent_ms)
    if len(packed) <= _SURE_BYTES:
        return packed
    room = max(_SURE_BYTES, _room(parcel))
    while len(packed) > room:
        del posts[0]
        packed = pack_posts(posts, parcel.sent_ms)
    return packed


def _room(parcel: Parcel) -> int:
    """Returns the bytes that each message has for its history, with any history of the others."""
    changing: Item = {
        "v": {"L": [{"N": _LATE_TIME}] * parcel.count},
        "r": {"L": [{"N": _MANY_POSTS}] * parcel.count},
        "f": {"L": [{"N": _LATE_TIME}] * parcel.count},
    }
    left = -item_bytes(parcel_item(parcel) | changing) % UNIT_BYTES
    return left // parcel.count - _NAME_BYTES
