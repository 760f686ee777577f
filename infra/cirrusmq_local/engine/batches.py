"""BatchGetItem and BatchWriteItem: many items in one request, each independent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cirrusmq_local.engine.capacity import consumed, read_units
from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.expressions import Expressions
from cirrusmq_local.engine.keys import Key, request_key
from cirrusmq_local.engine.paths import PathTree, project
from cirrusmq_local.engine.requests import check_members, delete_of, put_of
from cirrusmq_local.engine.schema import Table
from cirrusmq_local.engine.store import Transaction
from cirrusmq_local.engine.wire import Item, decode_item
from cirrusmq_local.engine.writes import Outcome, Write, do, look

MAX_KEYS = 100
MAX_WRITES = 25
MAX_ANSWER_BYTES = 16 * 1024 * 1024

_BATCH_GET = frozenset({"RequestItems", "ReturnConsumedCapacity"})
_BATCH_WRITE = _BATCH_GET | {"ReturnItemCollectionMetrics"}
_KEYS = frozenset({"Keys", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"})
_WRITE = frozenset({"PutRequest", "DeleteRequest"})


class _Reading:
    """One table's part of a batch of reads."""

    def __init__(self, core: Core, name: str, wanted: Mapping[str, Any]) -> None:
        check_members("BatchGetItem", wanted, _KEYS, ("Keys",))
        self.table = core.table(name)
        self.wanted = wanted
        expressions = Expressions(wanted)
        self.projection: PathTree | None = expressions.projection()
        expressions.close()
        self.keys = [request_key(self.table.spec, key) for key in wanted["Keys"]]
        self.consistent = bool(wanted.get("ConsistentRead"))
        self.items: list[Item] = []
        self.unread: list[Item] = []
        self.units = 0.0

    def add(self, row: tuple[int, bytes] | None) -> None:
        """Adds one row that was read; None for a missing item."""
        size, data = (0, None) if row is None else row
        self.units += read_units(size, self.consistent)
        if data is not None:
            item = decode_item(data)
            self.items.append(item if self.projection is None else project(item, self.projection))


def batch_get_item(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does BatchGetItem; keys of items beyond 16 MB are in `UnprocessedKeys`."""
    check_members("BatchGetItem", request, _BATCH_GET, ("RequestItems",))
    _check_not_empty(request)
    readings = [_Reading(core, name, wanted) for name, wanted in request["RequestItems"].items()]
    if sum(len(reading.keys) for reading in readings) > MAX_KEYS:
        raise InvalidRequestError("Too many items requested for the BatchGetItem call")
    _check_distinct([(r.table.spec.name, key) for r in readings for _, key in r.keys])
    size = 0
    with core.store.reading() as connection:
        for reading in readings:
            for key_item, key in reading.keys:
                row = connection.execute(reading.table.select, key).fetchone()
                size += 0 if row is None else row[0]
                if size > MAX_ANSWER_BYTES:
                    reading.unread.append(key_item)
                else:
                    reading.add(row)
    for reading in readings:
        core.meter.add("BatchGetItem", reading.table.spec.name, read=reading.units)
    capacities = [consumed(request, r.table.spec.name, read=r.units) for r in readings]
    return {
        "Responses": {reading.table.spec.name: reading.items for reading in readings},
        "UnprocessedKeys": {
            reading.table.spec.name: {**reading.wanted, "Keys": reading.unread}
            for reading in readings
            if reading.unread
        },
    } | ({"ConsumedCapacity": capacities} if any(capacities) else {})


def batch_write_item(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does BatchWriteItem; no write is left unprocessed."""
    check_members("BatchWriteItem", request, _BATCH_WRITE, ("RequestItems",))
    _check_not_empty(request)
    writes: list[Write] = []
    for name, elements in request["RequestItems"].items():
        table = core.table(name)
        writes += [_write_of(table, element) for element in elements]
    if len(writes) > MAX_WRITES:
        raise InvalidRequestError(
            "1 validation error detected: Value at 'requestItems' failed to satisfy constraint: "
            f"Member must have length less than or equal to {MAX_WRITES}"
        )
    if not writes:
        raise InvalidRequestError(
            "The batch write request list for a table cannot be null or empty"
        )
    _check_distinct([(write.table.spec.name, write.key) for write in writes])

    def job(transaction: Transaction) -> list[Outcome]:
        outcomes = [look(transaction, write) for write in writes]
        for outcome in outcomes:
            do(transaction, outcome)
        return outcomes

    units: dict[str, float] = {}
    for outcome in core.store.write(job):
        name = outcome.write.table.spec.name
        units[name] = units.get(name, 0.0) + outcome.units
    for name, written in units.items():
        core.meter.add("BatchWriteItem", name, write=written)
    capacities = [consumed(request, name, write=written) for name, written in units.items()]
    answer: dict[str, Any] = {"UnprocessedItems": {}}
    return answer | ({"ConsumedCapacity": capacities} if any(capacities) else {})


def _write_of(table: Table, element: Mapping[str, Any]) -> Write:
    check_members("BatchWriteItem", element, _WRITE)
    kinds = [kind for kind in _WRITE if element.get(kind) is not None]
    if len(kinds) != 1:
        raise InvalidRequestError(
            "Supplied AttributeValue has more than one datatypes set, must contain exactly one of "
            "the supported datatypes"
        )
    if kinds == ["PutRequest"]:
        check_members("PutRequest", element["PutRequest"], frozenset({"Item"}), ("Item",))
        return put_of(table, element["PutRequest"])
    check_members("DeleteRequest", element["DeleteRequest"], frozenset({"Key"}), ("Key",))
    return delete_of(table, element["DeleteRequest"])


def _check_not_empty(request: Mapping[str, Any]) -> None:
    if not request["RequestItems"]:
        raise InvalidRequestError(
            "1 validation error detected: Value '{}' at 'requestItems' failed to satisfy "
            "constraint: Member must have length greater than or equal to 1"
        )


def _check_distinct(keys: list[tuple[str, Key]]) -> None:
    if len(set(keys)) != len(keys):
        raise InvalidRequestError("Provided list of item keys contains duplicates")
