"""TransactGetItems and TransactWriteItems: all parts at one moment, or none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cirrusmq_local.engine.capacity import TRANSACTION_FACTOR, consumed, read_units
from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.errors import (
    ConditionFailedError,
    InvalidRequestError,
    TokenReusedError,
    TransactionCanceledError,
)
from cirrusmq_local.engine.keys import Key
from cirrusmq_local.engine.paths import project
from cirrusmq_local.engine.requests import (
    check_members,
    check_of,
    delete_of,
    get_of,
    put_of,
    update_of,
)
from cirrusmq_local.engine.store import Transaction
from cirrusmq_local.engine.wire import decode_item
from cirrusmq_local.engine.writes import Outcome, Write, do, look

MAX_ITEMS = 100
MAX_BYTES = 4 * 1024 * 1024
TOKEN_LIFE_MS = 10 * 60 * 1000
# Each token that is kept makes room by forgetting this many old ones.
TOKENS_FORGOTTEN_AT_ONCE = 4

_TRANSACT_GET = frozenset({"TransactItems", "ReturnConsumedCapacity"})
_TRANSACT_WRITE = _TRANSACT_GET | {"ClientRequestToken", "ReturnItemCollectionMetrics"}
_GET = frozenset({"TableName", "Key", "ProjectionExpression", "ExpressionAttributeNames"})
_CONDITIONAL = frozenset(
    {
        "TableName",
        "ConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ReturnValuesOnConditionCheckFailure",
    }
)
# For each kind of write: its known members, and its required members.
_WRITES: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "Put": (_CONDITIONAL | {"Item"}, ("TableName", "Item")),
    "Delete": (_CONDITIONAL | {"Key"}, ("TableName", "Key")),
    "Update": (
        _CONDITIONAL | {"Key", "UpdateExpression"},
        ("TableName", "Key", "UpdateExpression"),
    ),
    "ConditionCheck": (_CONDITIONAL | {"Key"}, ("TableName", "Key", "ConditionExpression")),
}
_canonical = msgspec.json.Encoder(order="sorted")


def transact_get_items(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does the operation TransactGetItems."""
    check_members("TransactGetItems", request, _TRANSACT_GET, ("TransactItems",))
    _check_count(request["TransactItems"])
    gets = []
    for element in request["TransactItems"]:
        check_members("TransactGetItems", element, frozenset({"Get"}), ("Get",))
        check_members("Get", element["Get"], _GET, ("TableName", "Key"))
        table = core.table(element["Get"]["TableName"])
        gets.append((table, *get_of(table, element["Get"])))
    _check_distinct([(table.spec.name, key) for table, key, _ in gets])
    with core.store.snapshot() as connection:
        rows = [connection.execute(table.select, key).fetchone() for table, key, _ in gets]
    responses: list[dict[str, Any]] = []
    units: dict[str, float] = {}
    for (table, _, projection), row in zip(gets, rows, strict=True):
        size, data = (0, None) if row is None else row
        cost = TRANSACTION_FACTOR * read_units(size, True)
        units[table.spec.name] = units.get(table.spec.name, 0.0) + cost
        item = None if data is None else decode_item(data)
        if item is not None and projection is not None:
            item = project(item, projection)
        responses.append({} if item is None else {"Item": item})
    if sum(0 if row is None else row[0] for row in rows) > MAX_BYTES:
        raise InvalidRequestError("Transaction request size exceeds the limit of 4 MB")
    return {"Responses": responses} | _bill(core, "TransactGetItems", request, reads=units)


def transact_write_items(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does TransactWriteItems; the same token and content within ten minutes changes nothing."""
    check_members("TransactWriteItems", request, _TRANSACT_WRITE, ("TransactItems",))
    _check_count(request["TransactItems"])
    writes = [_write_of(core, element) for element in request["TransactItems"]]
    _check_distinct([(write.table.spec.name, write.key) for write in writes])
    token = request.get("ClientRequestToken")
    digest = b"" if token is None else _digest(request["TransactItems"])

    def job(transaction: Transaction) -> list[Outcome] | None:
        if token is not None and _is_repetition(transaction, token, digest):
            return None
        outcomes = _look_at_all(transaction, writes)
        for outcome in outcomes:
            do(transaction, outcome)
        if token is not None:
            _keep_token(transaction, token, digest)
        return outcomes

    try:
        outcomes = core.store.write(job)
    except TransactionCanceledError as cancelled:
        _bill(core, "TransactWriteItems", request, writes=cancelled.units)
        raise
    if outcomes is None:
        return _bill(core, "TransactWriteItems", request, reads=_repeated(core, writes))
    units: dict[str, float] = {}
    for outcome in outcomes:
        _add_units(units, outcome.write, outcome.units)
    return _bill(core, "TransactWriteItems", request, writes=units)


def _write_of(core: Core, element: Mapping[str, Any]) -> Write:
    check_members("TransactWriteItems", element, frozenset(_WRITES))
    kinds = [kind for kind in _WRITES if element.get(kind) is not None]
    if len(kinds) != 1:
        raise InvalidRequestError(
            "TransactItems can only contain one of Check, Put, Update or Delete"
        )
    (kind,) = kinds
    inner = element[kind]
    check_members(kind, inner, *_WRITES[kind])
    table = core.table(inner["TableName"])
    if kind == "Update":
        return update_of(table, inner)[0]
    return {"Put": put_of, "Delete": delete_of, "ConditionCheck": check_of}[kind](table, inner)


def _look_at_all(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    reasons: list[dict[str, Any]] = []
    units: dict[str, float] = {}
    size = 0
    for write in writes:
        try:
            outcome = look(transaction, write)
        except ConditionFailedError as failure:
            reason: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": failure.message}
            reasons.append(reason | ({"Item": failure.item} if failure.item else {}))
            _add_units(units, write, failure.units)
        except InvalidRequestError as failure:
            reasons.append({"Code": "ValidationError", "Message": failure.message})
        else:
            outcomes.append(outcome)
            reasons.append({"Code": "None"})
            _add_units(units, write, outcome.units)
            size += 0 if outcome.new is None else outcome.new.size
    if len(outcomes) < len(writes):
        raise TransactionCanceledError(reasons, units)
    if size > MAX_BYTES:
        raise InvalidRequestError("Transaction request size exceeds the limit of 4 MB")
    return outcomes


def _add_units(units: dict[str, float], write: Write, more: float) -> None:
    name = write.table.spec.name
    units[name] = units.get(name, 0.0) + TRANSACTION_FACTOR * more


def _digest(elements: Any) -> bytes:
    return hashlib.sha256(_canonical.encode(elements)).digest()


def _is_repetition(transaction: Transaction, token: str, digest: bytes) -> bool:
    row = transaction.connection.execute(
        "SELECT digest FROM tokens WHERE token = ? AND at_ms > ?",
        (token, transaction.now_ms - TOKEN_LIFE_MS),
    ).fetchone()
    if row is not None and row[0] != digest:
        raise TokenReusedError
    return row is not None


def _keep_token(transaction: Transaction, token: str, digest: bytes) -> None:
    transaction.connection.execute(
        "DELETE FROM tokens WHERE token IN "
        "(SELECT token FROM tokens WHERE at_ms <= ? ORDER BY at_ms LIMIT ?)",
        (transaction.now_ms - TOKEN_LIFE_MS, TOKENS_FORGOTTEN_AT_ONCE),
    )
    transaction.connection.execute(
        "INSERT OR REPLACE INTO tokens (token, digest, at_ms) VALUES (?, ?, ?)",
        (token, digest, transaction.now_ms),
    )


def _repeated(core: Core, writes: Sequence[Write]) -> dict[str, float]:
    """Returns the units of a repetition: reads of the items as they are now."""
    units: dict[str, float] = {}
    with core.store.snapshot() as connection:
        for write in writes:
            row = connection.execute(write.table.select, write.key).fetchone()
            cost = TRANSACTION_FACTOR * read_units(0 if row is None else row[0], True)
            units[write.table.spec.name] = units.get(write.table.spec.name, 0.0) + cost
    return units


def _bill(
    core: Core,
    operation: str,
    request: Mapping[str, Any],
    *,
    reads: Mapping[str, float] | None = None,
    writes: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    capacities = []
    for name, units in (reads or {}).items():
        core.meter.add(operation, name, read=units)
        capacities.append(consumed(request, name, read=units, transaction=True))
    for name, units in (writes or {}).items():
        core.meter.add(operation, name, write=units)
        capacities.append(consumed(request, name, write=units, transaction=True))
    return {"ConsumedCapacity": capacities} if any(capacities) else {}


def _check_count(elements: Sequence[Any]) -> None:
    if not 1 <= len(elements) <= MAX_ITEMS:
        bound = f"less than or equal to {MAX_ITEMS}" if elements else "greater than or equal to 1"
        raise InvalidRequestError(
            "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: "
            f"Member must have length {bound}"
        )


def _check_distinct(keys: list[tuple[str, Key]]) -> None:
    if len(set(keys)) != len(keys):
        raise InvalidRequestError(
            "Transaction request cannot include multiple operations on one item"
        )
