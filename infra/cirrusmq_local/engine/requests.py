"""Turns requests into checked writes and keys, and checks their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cirrusmq_local.engine.conditions import Test
from cirrusmq_local.engine.errors import InvalidRequestError, UnsupportedError
from cirrusmq_local.engine.expressions import Expressions
from cirrusmq_local.engine.keys import Key, item_key, request_key
from cirrusmq_local.engine.paths import PathTree
from cirrusmq_local.engine.schema import Table
from cirrusmq_local.engine.updates import Update
from cirrusmq_local.engine.values import admit_item
from cirrusmq_local.engine.wire import Item, Values, decode_item
from cirrusmq_local.engine.writes import Image, Write, make_image

_ITEM_TOO_LARGE = "Item size has exceeded the maximum allowed size"
_UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"

_CHOICES = {
    "ReturnConsumedCapacity": ("INDEXES", "TOTAL", "NONE"),
    "ReturnItemCollectionMetrics": ("SIZE", "NONE"),
    "ReturnValues": ("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"),
    "ReturnValuesOnConditionCheckFailure": ("ALL_OLD", "NONE"),
    "Select": ("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"),
}


def check_members(
    what: str, request: Mapping[str, Any], known: frozenset[str], required: tuple[str, ...] = ()
) -> None:
    """Checks the members of a request: an unknown one is refused, not ignored.

    Raises UnsupportedError for an unknown member, InvalidRequestError for a missing one and for an
    unknown choice.
    """
    for name, value in request.items():
        if name not in known and value is not None:
            raise UnsupportedError(f"{name} of {what}")
    for name in required:
        if request.get(name) is None:
            raise InvalidRequestError(
                f"1 validation error detected: Value null at '{_member(name)}' failed to satisfy "
                "constraint: Member must not be null"
            )
    for name in _CHOICES.keys() & request.keys():
        value, choices = request[name], _CHOICES[name]
        if value is not None and value not in choices:
            raise InvalidRequestError(
                f"1 validation error detected: Value '{value}' at '{_member(name)}' failed to "
                f"satisfy constraint: Member must satisfy enum value set: [{', '.join(choices)}]"
            )


def put_of(table: Table, request: Mapping[str, Any]) -> Write:
    """Returns the write of a request with an `Item`."""
    expressions = Expressions(request)
    condition = expressions.condition()
    expressions.close()
    item, size = admit_item(request["Item"])
    key = item_key(table.spec, item)
    image = make_image(table, item, size, _ITEM_TOO_LARGE)
    return _write(table, key, lambda old: image, condition, expressions.values, request)


def delete_of(table: Table, request: Mapping[str, Any]) -> Write:
    """Returns the write of a request that deletes its `Key`."""
    expressions = Expressions(request)
    condition = expressions.condition()
    expressions.close()
    _, key = request_key(table.spec, request["Key"])
    return _write(table, key, lambda old: None, condition, expressions.values, request)


def check_of(table: Table, request: Mapping[str, Any]) -> Write:
    """Returns a transaction's check: a condition on a `Key`, without a change."""
    expressions = Expressions(request)
    condition = expressions.condition()
    expressions.close()
    _, key = request_key(table.spec, request["Key"])
    return _write(table, key, None, condition, expressions.values, request)


def update_of(table: Table, request: Mapping[str, Any]) -> tuple[Write, Update | None]:
    """Returns the write of a request that updates its `Key`, and the compiled update."""
    expressions = Expressions(request)
    condition, update = expressions.condition(), expressions.update()
    expressions.close()
    key_item, key = request_key(table.spec, request["Key"])
    for name in table.spec.key_types:
        if update is not None and name in update.touched:
            raise InvalidRequestError(
                f"One or more parameter values were invalid: Cannot update attribute {name}. This "
                "attribute is part of the key"
            )
    values = expressions.values

    def change(old: bytes | None) -> Image:
        new = _updated(update, old, key_item, values)
        item, size = admit_item(new)
        return make_image(table, item, size, _UPDATE_TOO_LARGE)

    return _write(table, key, change, condition, values, request), update


def get_of(table: Table, request: Mapping[str, Any]) -> tuple[Key, PathTree | None]:
    """Returns the key of a request that reads its `Key`, and the paths to show."""
    expressions = Expressions(request)
    projection = expressions.projection()
    expressions.close()
    _, key = request_key(table.spec, request["Key"])
    return key, projection


def _updated(update: Update | None, old: bytes | None, key_item: Item, values: Values) -> Item:
    new = dict(key_item) if old is None else decode_item(old)
    if update is not None:
        # Decoded again: the item that operands read must not change by the assignments.
        update.apply({} if old is None else decode_item(old), new, values)
    return new


def _write(
    table: Table,
    key: Key,
    change: Any,
    condition: Test | None,
    values: Values,
    request: Mapping[str, Any],
) -> Write:
    wants_item = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    return Write(table, key, change, condition, values, wants_item)


def _member(name: str) -> str:
    return name[0].lower() + name[1:]
