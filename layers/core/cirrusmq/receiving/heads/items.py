"""Marks of heads in the Messages table: between values and items, and the writes that change them.

pk `H#<source id>#<partition>`, sk `H`, in sources with groups `H#<hash of the group>`, and behind
it `#~<reach>` for receives that pass over large messages; the fields of a mark (`watermark`) under
one letter each.
"""

from __future__ import annotations

from typing import Any

from cirrusmq.receiving.heads.watermark import HeadMark
from cirrusmq.runtime.store import Item, key, put_if_absent, set_request
from cirrusmq.storage.parcels import HEAD_MARKS, ttl_seconds

_KEPT_MS = 3_600_000
_SORT_KEY = "H"


def group_head(pk: str, group: str) -> str:
    """Returns the name of an ordered group's head: `Q#<source id>#<partition>#<group>`."""
    return f"{pk}#{group}"


def mark_key(head: str) -> tuple[str, str]:
    """Returns the key of a head's mark: `H#<source id>#<partition>`, and the rest of its name."""
    _, source_id, partition, *group = head.split("#")
    return f"{HEAD_MARKS}#{source_id}#{partition}", "#".join([_SORT_KEY, *group])


def read_mark(item: Item) -> HeadMark:
    """Returns the mark in an item."""
    return HeadMark(
        before=item["b"]["S"],
        until_ms=int(item["u"]["N"]),
        begun_ms=int(item["c"]["N"]),
        units=float(item["n"]["N"]),
        cursor=item["g"]["S"],
        lease_ms=int(item["l"]["N"]),
        young=item["y"]["S"],
        young_ms=int(item["a"]["N"]),
        version=int(item["v"]["N"]),
    )


def put_mark(table: str, head: str, mark: HeadMark, now_ms: int) -> dict[str, Any]:
    """Returns a put of `mark` over the version before it, or over no item if it is the first."""
    item: Item = {
        **key(*mark_key(head)),
        "b": {"S": mark.before},
        "u": {"N": str(mark.until_ms)},
        "c": {"N": str(mark.begun_ms)},
        "n": {"N": str(mark.units)},
        "g": {"S": mark.cursor},
        "l": {"N": str(mark.lease_ms)},
        "y": {"S": mark.young},
        "a": {"N": str(mark.young_ms)},
        "v": {"N": str(mark.version)},
        "expires_at": {"N": str(ttl_seconds(now_ms + _KEPT_MS))},
    }
    request = put_if_absent(table, item)
    return request if mark.version == 1 else request | _over(mark.version - 1)


def void_mark(table: str, head: str, now_ms: int) -> dict[str, Any]:
    """Returns an update after which the mark passes nothing, and earlier readers' writes fail."""
    nothing: Item = {name: {"N": "0"} for name in "ucnla"} | {name: {"S": ""} for name in "bgy"}
    expires_at = {"N": str(ttl_seconds(now_ms + _KEPT_MS))}
    return set_request(table, mark_key(head), nothing | {"expires_at": expires_at}, {"v": 1})


def delete_mark(table: str, head: str, version: int) -> dict[str, Any]:
    """Returns a deletion of that version of the mark."""
    return {"TableName": table, "Key": key(*mark_key(head)), **_over(version)}


def _over(version: int) -> dict[str, Any]:
    return {
        "ConditionExpression": "v = :version",
        "ExpressionAttributeValues": {":version": {"N": str(version)}},
    }
