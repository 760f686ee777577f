"""The Directory table: documents of resources, read through the cache, written with conditions.

Functions roll one after another, and back, so that a release reads documents of a later one.
Unknown members of a document, and attributes beside it, are written back with each change
(`unknown_members.py`); a document that must not be used so is refused (`decode_document`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal, TypeVar

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.base.formats import is_later, later_release
from cirrusmq.base.limits import ANSWER_BYTES
from cirrusmq.base.shapes import decode_json
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.directory_keys import ItemKey, queue_users_place

T = TypeVar("T")
Use = Literal["dead_letters_of", "endpoint_of"]
"""A use of a queue: as a dead-letter queue, or as a subscription's endpoint."""
SHOWN_BYTES = 2_000
"""Most bytes of a listed value beside its document: names and values of defaults, times."""


class _Format(msgspec.Struct):
    """The format of a document."""

    format: int = 1


class Document(msgspec.Struct, Generic[T], frozen=True):
    """A resource as it was read: its value, and the version that a change must find."""

    value: T
    version: int
    stored: Item
    """The item, with all that this release may not know."""

    def followed_by(self, value: T) -> Document[T]:
        """Returns the document after a change of it to `value` was written."""
        return msgspec.structs.replace(self, value=value, version=self.version + 1)


def read(core: Core, key: ItemKey, kind: type[T]) -> Document[T] | None:
    """Returns the document under `key`, read now, or None."""
    item = core.store.get(core.tables.directory, *key)
    return None if item is None else decode_document(item, kind)


def read_cached(core: Core, key: ItemKey, kind: type[T]) -> T | None:
    """Returns the value under `key`, as the cache has it, or None."""

    def load() -> T | None:
        found = read(core, key, kind)
        return None if found is None else found.value

    return core.cache.get(key, load)


def read_list(core: Core, pk: str, prefix: str, kind: type[T]) -> Iterator[T]:
    """Yields the values of a partition whose sort keys begin with `prefix`, in order."""
    for item in core.store.query_all(core.tables.directory, pk, prefix):
        yield decode_document(item, kind).value


def read_from(core: Core, pk: str, start: str, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yields the values of a partition from the sort key `start` on, in order, with their keys."""
    request: dict[str, Any] = {
        "TableName": core.tables.directory,
        "KeyConditionExpression": "pk = :pk AND sk >= :start",
        "ExpressionAttributeValues": {":pk": {"S": pk}, ":start": {"S": start}},
        "ConsistentRead": True,
    }
    for item in core.store.query_pages(request):
        yield item["sk"]["S"], decode_document(item, kind).value


def read_page(
    core: Core,
    pk: str,
    prefix: str,
    after: str | None,
    limit: int,
    kind: type[T],
    accept: Callable[[T], bool] = lambda value: True,
) -> tuple[list[T], str | None]:
    """Returns up to `limit` accepted values in order, and the sort key to continue after, or None.

    One more value is read than wanted: only its presence shows that this is not the end. A page
    ends before `limit` if its values together would be too large for an answer.
    """
    request: dict[str, Any] = {
        "TableName": core.tables.directory,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
        "ConsistentRead": True,
        "Limit": limit + 1,
    }
    if prefix:
        request["KeyConditionExpression"] += " AND begins_with(sk, :prefix)"
        request["ExpressionAttributeValues"][":prefix"] = {"S": prefix}
    if after is not None:
        request["ExclusiveStartKey"] = key(pk, after)
    values: list[T] = []
    behind, size = "", 0
    for item in core.store.query_pages(request):
        value = decode_document(item, kind).value
        if not accept(value):
            continue
        size += len(item["document"]["S"].encode()) + SHOWN_BYTES
        if len(values) == limit or size > ANSWER_BYTES:
            return values, behind
        values.append(value)
        behind = str(item["sk"]["S"])
    return values, None


def put_new(core: Core, key: ItemKey, value: object, **others: Any) -> dict[str, Any]:
    """Returns a transaction's write of a document that does not exist yet."""
    request = _put(core, key, value, 1, None, others)
    return {"Put": {**request, "ConditionExpression": "attribute_not_exists(pk)"}}


def put_over(
    core: Core, key: ItemKey, value: object, found: Document[Any], **others: Any
) -> dict[str, Any]:
    """Returns a transaction's write of a document over the version that was read."""
    request = _put(core, key, value, found.version + 1, found, others)
    seen = {":seen": {"N": str(found.version)}}
    return {
        "Put": {
            **request,
            "ConditionExpression": "version = :seen",
            "ExpressionAttributeValues": seen,
        }
    }


def put(
    core: Core, key: ItemKey, value: object, found: Document[Any] | None = None, **others: Any
) -> dict[str, Any]:
    """Returns a transaction's unconditional write of a document; `found`: the one it replaces."""
    return {"Put": _put(core, key, value, 1, found, others)}


def expire(core: Core, place: ItemKey, value: object, expires_at: int) -> dict[str, Any]:
    """Returns a transaction's expiry of a document; a missing one is `value` until then."""
    document = msgspec.json.encode(value).decode()
    return {
        "Update": {
            "TableName": core.tables.directory,
            "Key": key(*place),
            "UpdateExpression": "SET expires_at = :expires_at"
            ", document = if_not_exists(document, :document)"
            ", version = if_not_exists(version, :one)",
            "ExpressionAttributeValues": {
                ":expires_at": {"N": str(expires_at)},
                ":document": {"S": document},
                ":one": {"N": "1"},
            },
        }
    }


def delete_version(core: Core, place: ItemKey, version: int) -> dict[str, Any]:
    """Returns a transaction's delete of the version that was read."""
    return {
        "Delete": {
            "TableName": core.tables.directory,
            "Key": key(*place),
            "ConditionExpression": "version = :seen",
            "ExpressionAttributeValues": {":seen": {"N": str(version)}},
        }
    }


def delete(core: Core, place: ItemKey) -> dict[str, Any]:
    """Returns a transaction's unconditional delete."""
    return {"Delete": {"TableName": core.tables.directory, "Key": key(*place)}}


def check(core: Core, place: ItemKey, condition: str, **values: str) -> dict[str, Any]:
    """Returns a transaction's condition on an item, which does not change it."""
    request: dict[str, Any] = {
        "TableName": core.tables.directory,
        "Key": key(*place),
        "ConditionExpression": condition,
    }
    if values:
        request["ExpressionAttributeValues"] = {f":{n}": {"S": v} for n, v in values.items()}
    return {"ConditionCheck": request}


def check_unused(core: Core, queue_id: str, *uses: Use) -> dict[str, Any]:
    """Returns a transaction's condition that nothing uses a queue in one of these ways."""
    condition = " AND ".join(f"attribute_not_exists({use})" for use in uses)
    return check(core, queue_users_place(queue_id), condition)


def change_users(core: Core, queue_id: str, use: Use, verb: str, user_id: str) -> dict[str, Any]:
    """Returns a transaction's `ADD` or `DELETE` of a reference to a queue."""
    return {
        "Update": {
            "TableName": core.tables.directory,
            "Key": key(*queue_users_place(queue_id)),
            "UpdateExpression": f"{verb} {use} :user",
            "ExpressionAttributeValues": {":user": {"SS": [user_id]}},
        }
    }


def change_count(
    core: Core, place: ItemKey, by: int, condition: str | None = None, bound: int = 0
) -> dict[str, Any]:
    """Returns a transaction's step of a counter; `condition` compares `#count` with `:bound`."""
    request: dict[str, Any] = {
        "TableName": core.tables.directory,
        "Key": key(*place),
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


def read_count(core: Core, key: ItemKey) -> int:
    """Returns a counter, as the cache has it."""

    def load() -> int:
        item = core.store.get(core.tables.directory, *key)
        return int(item["count"]["N"]) if item else 0

    return core.cache.get(key, load)


def delete_count(core: Core, place: ItemKey) -> dict[str, Any]:
    """Returns a transaction's delete of a counter, which must be at 0."""
    request = {
        "TableName": core.tables.directory,
        "Key": key(*place),
        "ConditionExpression": "attribute_not_exists(#count) OR #count = :none",
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":none": {"N": "0"}},
    }
    return {"Delete": request}


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


def decode_document(item: Item, kind: type[T]) -> Document[T]:
    """Returns the document in an item.

    Raises Unavailable if a later release wrote a higher `format`, which this one must not use, or
    if the document grants or bounds something that this release does not know.
    """
    text = item["document"]["S"]
    if '"format":' in text and is_later(decode_json(text, _Format).format):
        raise _of_a_later_release(item)
    try:
        value = decode_json(text, kind)
    except msgspec.ValidationError as error:
        raise _of_a_later_release(item) from error
    return Document(value, int(item["version"]["N"]), item)


def _of_a_later_release(item: Item) -> Unavailable:
    where = f"{item['pk']['S']} {item['sk']['S']}"
    return later_release(where, "This resource was written by a later release; deploy that one.")
