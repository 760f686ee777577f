"""Request bodies as JSON, decoded to wire shapes with binary values as bytes.

The types name every member of DynamoDB's model, supported or not. Members named here reach the
engine, which refuses unsupported ones; any other member would be dropped silently.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from typing_extensions import TypedDict


class AttributeValue(TypedDict, total=False):
    """One value; its member is its type's tag."""

    S: str
    N: str
    B: bytes
    SS: list[str]
    NS: list[str]
    BS: list[bytes]
    M: dict[str, AttributeValue]
    L: list[AttributeValue]
    NULL: bool
    BOOL: bool


Attributes: TypeAlias = dict[str, AttributeValue]


class OneTable(TypedDict, total=False):
    """A request, or an element of a transaction, that concerns one table."""

    TableName: str
    Key: Attributes
    Item: Attributes
    ExclusiveStartKey: Attributes
    ExpressionAttributeNames: dict[str, str]
    ExpressionAttributeValues: Attributes
    ConditionExpression: str
    UpdateExpression: str
    KeyConditionExpression: str
    FilterExpression: str
    ProjectionExpression: str
    ConsistentRead: bool
    ScanIndexForward: bool
    Limit: int
    Select: str
    ReturnValues: str
    ReturnValuesOnConditionCheckFailure: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    IndexName: str
    AttributesToGet: Any
    AttributeUpdates: Any
    ConditionalOperator: Any
    Expected: Any
    KeyConditions: Any
    QueryFilter: Any
    ScanFilter: Any
    Segment: Any
    TotalSegments: Any


class KeysOfTable(TypedDict, total=False):
    """One table's part of a BatchGetItem."""

    Keys: list[Attributes]
    ConsistentRead: bool
    ProjectionExpression: str
    ExpressionAttributeNames: dict[str, str]
    AttributesToGet: Any


class BatchGet(TypedDict, total=False):
    """BatchGetItem."""

    RequestItems: dict[str, KeysOfTable]
    ReturnConsumedCapacity: str


class BatchElement(TypedDict, total=False):
    """One write of a BatchWriteItem."""

    PutRequest: OneTable
    DeleteRequest: OneTable


class BatchWrite(TypedDict, total=False):
    """BatchWriteItem."""

    RequestItems: dict[str, list[BatchElement]]
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str


class TransactionElement(TypedDict, total=False):
    """One part of a transaction."""

    Get: OneTable
    Put: OneTable
    Update: OneTable
    Delete: OneTable
    ConditionCheck: OneTable


class Transact(TypedDict, total=False):
    """TransactGetItems and TransactWriteItems."""

    TransactItems: list[TransactionElement]
    ClientRequestToken: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str


BODY_TYPES: dict[str, Any] = {
    **dict.fromkeys(
        ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "DescribeTable"),
        OneTable,
    ),
    "BatchGetItem": BatchGet,
    "BatchWriteItem": BatchWrite,
    "TransactGetItems": Transact,
    "TransactWriteItems": Transact,
}
_decoders = {operation: msgspec.json.Decoder(body) for operation, body in BODY_TYPES.items()}


def decode_body(operation: str, body: bytes) -> dict[str, Any]:
    """Returns the request in a body. Raises msgspec.ValidationError if its shape is wrong.

    For an operation that the engine does not know the body is ignored.
    """
    decoder = _decoders.get(operation)
    if decoder is None:
        return {}
    request: dict[str, Any] = decoder.decode(body)
    return request
