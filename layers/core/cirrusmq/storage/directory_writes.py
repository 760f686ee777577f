"""Writes of the Directory table, as parts of a transaction.

Unknown members of a document, and attributes beside it, are written back with each change
(`unknown_members.py`). Hot functions read documents and write none.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.directory import Document, ItemKey, queue_users_key

Use = Literal["dead_letters_of", "endpoint_of"]
"""A use of a queue: as a dead-letter queue, or as a subscription's endpoint."""


def put_new(core: Core, key: ItemKey, value: object, **others: Any) -> dict[str, Any]:
    """Returns a transaction's write of a document that does not exist yet."""
    request = _put(core, key, value, 1, None, others)
    return {"Put": {**request, "ConditionExpression": "attribute_not_exists(pk)"}}


def put_over(
    core: Core, key: ItemKey, value: object, found: Document[Any], **others: Any
) -> dict[str, Any]:
    """Returns a transaction's write of a document over the version that was read."""
    request = _put(core, key, value, found.version + 1, found, others)
    return {"Put": request | _if_version(found.version)}


def put(
    core: Core, key: ItemKey, value: object, found: Document[Any] | None = None, **others: Any
) -> dict[str, Any]:
    """Returns a transaction's unconditional write of a document; `found`: the one it replaces."""
    return {"Put": _put(core, key, value, 1, found, others)}


def expire(core: Core, item_key: ItemKey, value: object, expires_at: int) -> dict[str, Any]:
    """Returns a transaction's expiry of a document; a missing one is `value` until then."""
    document = msgspec.json.encode(value).decode()
    update = {
        "UpdateExpression": "SET expires_at = :expires_at"
        ", document = if_not_exists(document, :document)"
        ", version = if_not_exists(version, :one)",
        "ExpressionAttributeValues": {
            ":expires_at": {"N": str(expires_at)},
            ":document": {"S": document},
            ":one": {"N": "1"},
        },
    }
    return {"Update": _at(core, item_key) | update}


def delete_version(core: Core, item_key: ItemKey, version: int) -> dict[str, Any]:
    """Returns a transaction's delete of the version that was read."""
    return {"Delete": _at(core, item_key) | _if_version(version)}


def delete(core: Core, item_key: ItemKey) -> dict[str, Any]:
    """Returns a transaction's unconditional delete."""
    return {"Delete": _at(core, item_key)}


def check(core: Core, item_key: ItemKey, condition: str, **values: str) -> dict[str, Any]:
    """Returns a transaction's condition on an item, which does not change it."""
    request = _at(core, item_key) | {"ConditionExpression": condition}
    if values:
        request["ExpressionAttributeValues"] = {f":{n}": {"S": v} for n, v in values.items()}
    return {"ConditionCheck": request}


def check_unused(core: Core, queue_id: str, *uses: Use) -> dict[str, Any]:
    """Returns a transaction's condition that nothing uses a queue in one of these ways."""
    condition = " AND ".join(f"attribute_not_exists({use})" for use in uses)
    return check(core, queue_users_key(queue_id), condition)


def change_users(core: Core, queue_id: str, use: Use, verb: str, user_id: str) -> dict[str, Any]:
    """Returns a transaction's `ADD` or `DELETE` of a reference to a queue."""
    update = {
        "UpdateExpression": f"{verb} {use} :user",
        "ExpressionAttributeValues": {":user": {"SS": [user_id]}},
    }
    return {"Update": _at(core, queue_users_key(queue_id)) | update}


def change_count(
    core: Core, item_key: ItemKey, by: int, condition: str | None = None, bound: int = 0
) -> dict[str, Any]:
    """Returns a transaction's step of a counter; `condition` compares `#count` with `:bound`."""
    request = _at(core, item_key) | {
        "UpdateExpression": "ADD #count :by",
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":by": {"N": str(by)}},
    }
    if condition is not None:
        request["ConditionExpression"] = condition
        request["ExpressionAttributeValues"][":bound"] = {"N": str(bound)}
    return {"Update": request}


def count_up(core: Core, key: ItemKey, limit: int) -> dict[str, Any]:
    """Returns a transaction's step up of a counter, refused if it is at `limit`."""
    return change_count(core, key, 1, "attribute_not_exists(#count) OR #count < :bound", limit)


def delete_count(core: Core, item_key: ItemKey) -> dict[str, Any]:
    """Returns a transaction's delete of a counter, which must be at 0."""
    request = _at(core, item_key) | {
        "ConditionExpression": "attribute_not_exists(#count) OR #count = :none",
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":none": {"N": "0"}},
    }
    return {"Delete": request}


def _at(core: Core, item_key: ItemKey) -> dict[str, Any]:
    """Returns the beginning of a request about one item."""
    return {"TableName": core.tables.directory, "Key": key(*item_key)}


def _if_version(version: int) -> dict[str, Any]:
    """Returns the condition that a document still has the version that was read."""
    return {
        "ConditionExpression": "version = :seen",
        "ExpressionAttributeValues": {":seen": {"N": str(version)}},
    }


def _put(
    core: Core,
    key: ItemKey,
    value: object,
    version: int,
    found: Document[Any] | None,
    others: dict[str, Any],
) -> dict[str, Any]:
    # Hot functions write no documents: their cold starts do without PynamoDB's models.
    from cirrusmq.storage.models import DirectoryItem
    from cirrusmq.storage.unknown_members import unknown_attributes, with_unknown_members

    kept: Item = {}
    text = msgspec.json.encode(value)
    if found is not None:
        kept = unknown_attributes(found.stored)
        text = with_unknown_members(text, value, found.stored["document"]["S"], found.value)
    made = DirectoryItem(*key, version=version, document=text.decode(), **others)
    return {"TableName": core.tables.directory, "Item": {**kept, **made.serialize()}}
