"""Due marks of schedules in the Directory, by which the sweep finds due schedules.

| pk | sk | item |
| --- | --- | --- |
| `A#<account>` | `schedule#<name>` | the schedule |
| `A#<account>` | `schedules` | how many the account has |
| `D#<shard>` | `<due>#<definition's id>` | a mark: the account and name of its schedule |

Each definition in force has exactly one mark, of its next time. In the Usage table `scheduled` of
`sweep`, `rounds`, which each sweep writes and so reads, says that there may be marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import (
    Item,
    key,
    prefix_request,
    set_request,
    shard_key,
    shard_keys,
)

_KIND = "D"
_SHARDS = 8
_PAGE = 32
"""Marks of a page: together less than 4 KB, which is half a read unit."""
ROUNDS = ("sweep", "rounds")
FLAG = "scheduled"


class ScheduleMark(msgspec.Struct, frozen=True, order=True):
    """When a definition of a schedule fires next."""

    due_ms: int
    id: str
    """The definition's id."""
    account: str
    name: str

    @property
    def place(self) -> tuple[str, str]:
        """The mark's key."""
        return shard_key(_KIND, self.id, _SHARDS), f"{self.due_ms:013d}#{self.id}"


def put_mark(core: Core, mark: ScheduleMark) -> dict[str, Any]:
    """Returns a transaction's write of a mark."""
    item: Item = {**key(*mark.place), "a": {"S": mark.account}, "n": {"S": mark.name}}
    return {"Put": {"TableName": core.tables.directory, "Item": item}}


def take_mark(core: Core, mark: ScheduleMark) -> dict[str, Any]:
    """Returns a transaction's delete of a mark, refused if another has taken it."""
    return {
        "Delete": {
            "TableName": core.tables.directory,
            "Key": key(*mark.place),
            "ConditionExpression": "attribute_exists(pk)",
        }
    }


def read_marks(core: Core, shard: str) -> Iterator[list[ScheduleMark]]:
    """Yields pages of a shard's marks, the earliest first; half a read unit each."""
    request = prefix_request(core.tables.directory, shard, consistent=False) | {"Limit": _PAGE}
    for items in core.store.query_by_page(request):
        yield [_read(item) for item in items]


def mark_shards() -> list[str]:
    """Returns the partition keys of all marks."""
    return shard_keys(_KIND, _SHARDS)


def raise_flag(core: Core, now_ms: int) -> dict[str, Any]:
    """Returns a transaction's write that makes sweeps look for marks."""
    return {"Update": set_request(core.tables.usage, ROUNDS, {FLAG: {"N": str(now_ms)}})}


def lower_flag(core: Core, seen_ms: int) -> None:
    """Stops the looks of sweeps, unless a schedule was made since `seen_ms`."""
    request = {
        "TableName": core.tables.usage,
        "Key": key(*ROUNDS),
        "UpdateExpression": f"REMOVE {FLAG}",
        "ConditionExpression": f"{FLAG} = :seen",
        "ExpressionAttributeValues": {":seen": {"N": str(seen_ms)}},
    }
    core.store.try_write("UpdateItem", request)


def _read(item: Item) -> ScheduleMark:
    due, _, definition_id = item["sk"]["S"].partition("#")
    return ScheduleMark(int(due), definition_id, item["a"]["S"], item["n"]["S"])
