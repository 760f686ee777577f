"""The operations on many neighbouring items: Query and Scan."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cirrusmq_local.engine.capacity import consumed, read_units
from cirrusmq_local.engine.conditions import Test
from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.expressions import Expressions
from cirrusmq_local.engine.keys import Key, key_attributes, request_key
from cirrusmq_local.engine.paths import PathTree, project
from cirrusmq_local.engine.ranges import KeyRange
from cirrusmq_local.engine.requests import check_members
from cirrusmq_local.engine.schema import Table
from cirrusmq_local.engine.wire import Item, Values, decode_item

MAX_PAGE_BYTES = 1024 * 1024

_SCAN = frozenset(
    {
        "TableName",
        "ConsistentRead",
        "ExclusiveStartKey",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "FilterExpression",
        "Limit",
        "ProjectionExpression",
        "ReturnConsumedCapacity",
        "Select",
    }
)
_QUERY = _SCAN | {"KeyConditionExpression", "ScanIndexForward"}


@dataclass(slots=True)
class _Page:
    """The items read, up to a limit or a megabyte. `last`: the last one, or None at the end."""

    items: list[Item]
    size: int = 0
    last: Item | None = None


@dataclass(frozen=True, slots=True)
class _Selection:
    """The filter and the projection: they select the part of the read items that is shown."""

    test: Test | None
    values: Values
    projection: PathTree | None
    counts_only: bool

    def answer(self, page: _Page) -> dict[str, Any]:
        """Returns `Items`, `Count`, `ScannedCount` and `LastEvaluatedKey`."""
        kept = page.items
        if self.test is not None:
            kept = [item for item in kept if self.test(item, self.values)]
        answer: dict[str, Any] = {"Count": len(kept), "ScannedCount": len(page.items)}
        if not self.counts_only:
            tree = self.projection
            answer["Items"] = kept if tree is None else [project(item, tree) for item in kept]
        return answer | ({"LastEvaluatedKey": page.last} if page.last is not None else {})


def query(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does the operation Query."""
    _refuse_index(request)
    check_members("Query", request, _QUERY, ("TableName",))
    table = core.table(request["TableName"])
    expressions = Expressions(request)
    key_condition = expressions.key_condition()
    if key_condition is None:
        raise InvalidRequestError(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in "
            "the request."
        )
    selection = _selection(request, expressions, table.spec.key_types)
    key_range = key_condition(expressions.values, table.spec)
    forward = request.get("ScanIndexForward") is not False
    where, parameters = _conditions(key_range)
    start = _start_key(table, request)
    if start is not None:
        if start[0] != key_range.partition:
            raise InvalidRequestError("The provided starting key is invalid")
        where += f" AND sk {'>' if forward else '<'} ?"
        parameters.append(start[1])
    order = f"ORDER BY sk {'ASC' if forward else 'DESC'}"
    return _answer(core, "Query", table, request, selection, f"WHERE {where} {order}", parameters)


def scan(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does the operation Scan, in the order of the keys."""
    _refuse_index(request)
    check_members("Scan", request, _SCAN, ("TableName",))
    table = core.table(request["TableName"])
    selection = _selection(request, Expressions(request), {})
    start = _start_key(table, request)
    clauses = "ORDER BY pk, sk" if start is None else "WHERE (pk, sk) > (?, ?) ORDER BY pk, sk"
    return _answer(core, "Scan", table, request, selection, clauses, list(start or ()))


def _answer(
    core: Core,
    operation: str,
    table: Table,
    request: Mapping[str, Any],
    selection: _Selection,
    clauses: str,
    parameters: list[Any],
) -> dict[str, Any]:
    limit = _limit(request)
    sql = f"SELECT size, item FROM {table.items} {clauses} LIMIT ?"
    with core.store.reading() as connection:
        # A limit of -1 means no limit.
        cursor = connection.execute(sql, (*parameters, -1 if limit is None else limit))
        page = _page(table, cursor, limit)
        cursor.close()
    units = read_units(page.size, bool(request.get("ConsistentRead")))
    core.meter.add(operation, table.spec.name, read=units)
    capacity = consumed(request, table.spec.name, read=units)
    return selection.answer(page) | ({"ConsumedCapacity": capacity} if capacity else {})


def _page(table: Table, cursor: sqlite3.Cursor, limit: int | None) -> _Page:
    page = _Page([])
    for size, data in cursor:
        if page.size + size > MAX_PAGE_BYTES and page.items:
            page.last = key_attributes(table.spec, page.items[-1])
            return page
        page.items.append(decode_item(data))
        page.size += size
    # After a full page it is unknown if items follow.
    if page.items and len(page.items) == limit:
        page.last = key_attributes(table.spec, page.items[-1])
    return page


def _conditions(key_range: KeyRange) -> tuple[str, list[Any]]:
    where = "pk = ?" + "".join(f" AND sk {comparator} ?" for comparator, _ in key_range.bounds)
    return where, [key_range.partition, *(column for _, column in key_range.bounds)]


def _selection(
    request: Mapping[str, Any], expressions: Expressions, keys: Mapping[str, str]
) -> _Selection:
    test, projection = expressions.filter(keys), expressions.projection()
    expressions.close()
    select = request.get("Select")
    if select == "ALL_PROJECTED_ATTRIBUTES":
        raise InvalidRequestError(
            "One or more parameter values were invalid: ALL_PROJECTED_ATTRIBUTES can be used only "
            "when Querying using an IndexName"
        )
    if select == "SPECIFIC_ATTRIBUTES" and projection is None:
        raise InvalidRequestError(
            "One or more parameter values were invalid: Must specify the ProjectionExpression "
            "when choosing to get SPECIFIC_ATTRIBUTES"
        )
    if select in ("COUNT", "ALL_ATTRIBUTES") and projection is not None:
        wanted = "only the Count" if select == "COUNT" else "ALL_ATTRIBUTES"
        raise InvalidRequestError(
            f"Cannot specify the ProjectionExpression when choosing to get {wanted}"
        )
    return _Selection(test, expressions.values, projection, select == "COUNT")


def _start_key(table: Table, request: Mapping[str, Any]) -> Key | None:
    given = request.get("ExclusiveStartKey")
    if given is None:
        return None
    try:
        _, key = request_key(table.spec, given)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            "The provided starting key is invalid: " + error.message
        ) from error
    return key


def _limit(request: Mapping[str, Any]) -> int | None:
    limit = request.get("Limit")
    if limit is not None and limit < 1:
        raise InvalidRequestError(
            f"1 validation error detected: Value '{limit}' at 'limit' failed to satisfy "
            "constraint: Member must have value greater than or equal to 1"
        )
    return limit


def _refuse_index(request: Mapping[str, Any]) -> None:
    if request.get("IndexName") is not None:
        raise InvalidRequestError(
            f"The table does not have the specified index: {request['IndexName']}"
        )
