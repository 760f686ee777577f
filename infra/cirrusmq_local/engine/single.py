"""The operations on one item: GetItem, PutItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cirrusmq_local.engine.capacity import consumed, read_units
from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.errors import ConditionFailedError, InvalidRequestError
from cirrusmq_local.engine.paths import PathTree, project
from cirrusmq_local.engine.requests import check_members, delete_of, get_of, put_of, update_of
from cirrusmq_local.engine.store import Transaction
from cirrusmq_local.engine.wire import Item, decode_item
from cirrusmq_local.engine.writes import Outcome, Write, do, look

_GET = frozenset(
    {
        "TableName",
        "Key",
        "ConsistentRead",
        "ProjectionExpression",
        "ExpressionAttributeNames",
        "ReturnConsumedCapacity",
    }
)
_WRITE = frozenset(
    {
        "TableName",
        "ConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ReturnConsumedCapacity",
        "ReturnItemCollectionMetrics",
        "ReturnValues",
        "ReturnValuesOnConditionCheckFailure",
    }
)
_PUT = _WRITE | {"Item"}
_DELETE = _WRITE | {"Key"}
_UPDATE = _WRITE | {"Key", "UpdateExpression"}


def get_item(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does the operation GetItem."""
    check_members("GetItem", request, _GET, ("TableName", "Key"))
    table = core.table(request["TableName"])
    key, projection = get_of(table, request)
    with core.store.reading() as connection:
        row = connection.execute(table.select, key).fetchone()
    size, data = (0, None) if row is None else row
    units = read_units(size, bool(request.get("ConsistentRead")))
    core.meter.add("GetItem", table.spec.name, read=units)
    answer: dict[str, Any] = {}
    if data is not None:
        item = decode_item(data)
        answer["Item"] = item if projection is None else project(item, projection)
    capacity = consumed(request, table.spec.name, read=units)
    return answer | ({"ConsumedCapacity": capacity} if capacity else {})


def put_item(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does the operation PutItem."""
    check_members("PutItem", request, _PUT, ("TableName", "Item"))
    _check_old_or_none(request)
    outcome = _done(core, "PutItem", put_of(core.table(request["TableName"]), request))
    return _answer(request, outcome, _attributes(request, outcome, None, None))


def delete_item(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does the operation DeleteItem."""
    check_members("DeleteItem", request, _DELETE, ("TableName", "Key"))
    _check_old_or_none(request)
    outcome = _done(core, "DeleteItem", delete_of(core.table(request["TableName"]), request))
    return _answer(request, outcome, _attributes(request, outcome, None, None))


def update_item(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does the operation UpdateItem."""
    check_members("UpdateItem", request, _UPDATE, ("TableName", "Key"))
    write, update = update_of(core.table(request["TableName"]), request)
    outcome = _done(core, "UpdateItem", write)
    touched = {} if update is None else update.touched
    written = {} if update is None else update.written
    return _answer(request, outcome, _attributes(request, outcome, touched, written))


def _done(core: Core, operation: str, write: Write) -> Outcome:
    def job(transaction: Transaction) -> Outcome:
        outcome = look(transaction, write)
        do(transaction, outcome)
        return outcome

    name = write.table.spec.name
    try:
        outcome = core.store.write(job)
    except ConditionFailedError as failure:
        core.meter.add(operation, name, write=failure.units)
        raise
    core.meter.add(operation, name, write=outcome.units)
    return outcome


def _attributes(
    request: Mapping[str, Any],
    outcome: Outcome,
    touched: PathTree | None,
    written: PathTree | None,
) -> Item | None:
    wanted = request.get("ReturnValues") or "NONE"
    if wanted == "NONE":
        return None
    item = outcome.old_item if wanted.endswith("OLD") else outcome.new_item
    if item is None or wanted.startswith("ALL"):
        return item
    return project(item, (touched if wanted == "UPDATED_OLD" else written) or {})


def _answer(
    request: Mapping[str, Any], outcome: Outcome, attributes: Item | None
) -> dict[str, Any]:
    capacity = consumed(request, outcome.write.table.spec.name, write=outcome.units)
    return ({"Attributes": attributes} if attributes else {}) | (
        {"ConsumedCapacity": capacity} if capacity else {}
    )


def _check_old_or_none(request: Mapping[str, Any]) -> None:
    if request.get("ReturnValues") not in (None, "NONE", "ALL_OLD"):
        raise InvalidRequestError("ReturnValues can only be ALL_OLD or NONE")
