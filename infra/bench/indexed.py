"""A table with secondary indexes on the embedded engine, which has none: tables stand for them.

What Amazon does to an index when an item changes is done to the table in its place, so that the
engine counts the units by the sizes of real entries. DynamoDB's rules (developer guide, "Using
Global Secondary Indexes"):

- an item that gains the index's keys: its entry is put;
- an item whose index keys change: the old entry is deleted and the new one put, two writes;
- an item that changes in other attributes that are projected: its entry is written again;
- an item that loses the keys, or is deleted: its entry is deleted;
- otherwise nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cirrusmq_local.engine import Engine, TableSpec

Item = dict[str, Any]
"""In wire shapes."""
TABLE = "Table"


@dataclass(frozen=True)
class Index:
    """A secondary index, with all attributes projected or with the keys alone."""

    name: str
    partition_key: str
    sort_key: str
    partition_key_type: str = "S"
    keys_only: bool = False


class IndexedTable:
    """One table and its indexes; consistent as seen by one client."""

    def __init__(self, partition_key: str, sort_key: str | None, *indexes: Index) -> None:
        keys = (partition_key,) if sort_key is None else (partition_key, sort_key)
        self._keys, self._indexes = keys, indexes
        specs = [TableSpec(TABLE, partition_key=partition_key, sort_key=sort_key)]
        specs += [
            TableSpec(
                index.name,
                partition_key=index.partition_key,
                sort_key=index.sort_key,
                partition_key_type=index.partition_key_type,
            )
            for index in indexes
        ]
        self._engine = Engine(None, specs, now_ms=lambda: 0)
        self._images: dict[tuple[str, ...], Item] = {}
        """What the table holds, so that knowing it before a write costs no read."""

    def put(self, item: Item) -> None:
        """A put of the whole item."""
        self._engine.execute("PutItem", {"TableName": TABLE, "Item": item})
        self._follow(self._key(item), item)

    def update(self, key: Item, **expressions: Any) -> Item:
        """A conditional update; answers the new item."""
        request = {"TableName": TABLE, "Key": key, "ReturnValues": "ALL_NEW", **expressions}
        item: Item = self._engine.execute("UpdateItem", request)["Attributes"]
        self._follow(self._key(item), item)
        return item

    def delete(self, key: Item, **expressions: Any) -> None:
        """A conditional delete."""
        self._engine.execute("DeleteItem", {"TableName": TABLE, "Key": key, **expressions})
        self._follow(self._key(key), None)

    def get(self, key: Item, *, consistent: bool) -> Item | None:
        """A read of the whole item."""
        request = {"TableName": TABLE, "Key": key, "ConsistentRead": consistent}
        item: Item | None = self._engine.execute("GetItem", request).get("Item")
        return item

    def query(self, table: str = TABLE, **expressions: Any) -> Iterator[list[Item]]:
        """A query of the table or, by its name, of an index, page by page as they are wanted."""
        request = {"TableName": table, **expressions}
        while True:
            answer = self._engine.execute("Query", request)
            yield answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def units(self) -> tuple[float, float]:
        """(write units, read units) since the last `reset`."""
        used = self._engine.capacity()
        return float(used["write_units"]), float(used["read_units"])

    def reset(self) -> None:
        """Count from here."""
        self._engine.reset_capacity()

    def _key(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(item[name]) for name in self._keys)

    def _follow(self, key: tuple[str, ...], new: Item | None) -> None:
        old = self._images.pop(key, None)
        if new is not None:
            self._images[key] = new
        for index in self._indexes:
            before, after = self._entry(index, old), self._entry(index, new)
            moved = _key_of(index, before) != _key_of(index, after)
            if before is not None and moved:
                request = {"TableName": index.name, "Key": _key_of(index, before)}
                self._engine.execute("DeleteItem", request)
            if after is not None and before != after:
                self._engine.execute("PutItem", {"TableName": index.name, "Item": after})

    def _entry(self, index: Index, item: Item | None) -> Item | None:
        """What the index holds of an item; None where it holds nothing."""
        keys = (index.partition_key, index.sort_key)
        if item is None or any(name not in item for name in keys):
            return None
        return {name: item[name] for name in (*keys, *self._keys)} if index.keys_only else item


def _key_of(index: Index, entry: Item | None) -> Item | None:
    if entry is None:
        return None
    return {name: entry[name] for name in (index.partition_key, index.sort_key)}
