"""Primary keys: checks them, and makes columns that SQLite orders as DynamoDB orders sort keys."""

from __future__ import annotations

from typing import TypeAlias

from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.numbers import sortable_number
from cirrusmq_local.engine.tables import TableSpec
from cirrusmq_local.engine.values import admit, text_size
from cirrusmq_local.engine.wire import AttributeValue, Item

Column: TypeAlias = str | bytes
# Partition key and sort key as columns; a table without a sort key has an empty one.
Key: TypeAlias = tuple[Column, Column]

MAX_PARTITION_KEY_BYTES = 2048
MAX_SORT_KEY_BYTES = 1024


def column_of(value: AttributeValue) -> Column:
    """Returns a key value for SQLite: text and bytes unchanged, numbers as sortable bytes."""
    ((tag, content),) = value.items()
    column: Column = sortable_number(content) if tag == "N" else content
    return column


def item_key(spec: TableSpec, item: Item) -> Key:
    """Returns the key of a canonical item to put, checked against the table."""
    for name, tag in spec.key_types.items():
        if name not in item:
            raise InvalidRequestError(
                f"One or more parameter values were invalid: Missing the key {name} in the item"
            )
        if tag not in item[name]:
            raise InvalidRequestError(
                f"One or more parameter values were invalid: Type mismatch for key {name} "
                f"expected: {tag} actual: {next(iter(item[name]))}"
            )
    return _columns(spec, item)


def request_key(spec: TableSpec, key: Item) -> tuple[Item, Key]:
    """Returns the `Key` member of a request in canonical form, and as columns."""
    types = spec.key_types
    if key.keys() != types.keys():
        raise InvalidRequestError("The provided key element does not match the schema")
    admitted = {name: admit(value)[0] for name, value in key.items()}
    if any(tag not in admitted[name] for name, tag in types.items()):
        raise InvalidRequestError("The provided key element does not match the schema")
    return admitted, _columns(spec, admitted)


def key_attributes(spec: TableSpec, item: Item) -> Item:
    """Returns the key attributes of an item."""
    return {name: item[name] for name in spec.key_types}


def prefix_end(prefix: Column) -> Column | None:
    """Returns the first column value behind all values with the prefix, or None if none exists."""
    if isinstance(prefix, bytes):
        stripped = prefix.rstrip(b"\xff")
        return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
    trimmed = prefix.rstrip("\U0010ffff")
    if not trimmed:
        return None
    following = ord(trimmed[-1]) + 1
    # UTF-8 has no surrogates.
    return trimmed[:-1] + chr(0xE000 if following == 0xD800 else following)


def _columns(spec: TableSpec, item: Item) -> Key:
    for name in spec.key_types:
        ((tag, content),) = item[name].items()
        if not content:
            kind = "string" if tag == "S" else "binary"
            raise InvalidRequestError(
                "One or more parameter values are not valid. The AttributeValue for a key "
                f"attribute cannot contain an empty {kind} value. Key: {name}"
            )
    partition = column_of(item[spec.partition_key])
    if _size(partition) > MAX_PARTITION_KEY_BYTES:
        raise InvalidRequestError(
            "One or more parameter values were invalid: Size of hashkey has exceeded the maximum "
            f"size limit of{MAX_PARTITION_KEY_BYTES} bytes"
        )
    if spec.sort_key is None:
        return partition, ""
    sort = column_of(item[spec.sort_key])
    if _size(sort) > MAX_SORT_KEY_BYTES:
        raise InvalidRequestError(
            "One or more parameter values were invalid: Aggregated size of all range keys has "
            f"exceeded the size limit of {MAX_SORT_KEY_BYTES} bytes"
        )
    return partition, sort


def _size(column: Column) -> int:
    return text_size(column) if isinstance(column, str) else len(column)
