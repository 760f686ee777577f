"""Calls of DynamoDB by botocore's client: items in wire shapes, and failures the core can act on.

The promises need what PynamoDB's models do not offer: the old item on a failed condition, and the
consumed capacity of a query. So models give items their shape, and calls are made here.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from cirrusmq.base.errors import Unavailable

Item: TypeAlias = dict[str, Any]
"""An item in wire shapes: `{"v": {"L": [{"N": "1"}]}}`, binary as bytes."""

CONFLICT_TRIES = 12
_BATCH_TRIES = 8
_BATCH_KEYS = 100
_METHODS = {
    "BatchGetItem": "batch_get_item",
    "DeleteItem": "delete_item",
    "GetItem": "get_item",
    "PutItem": "put_item",
    "Query": "query",
    "TransactWriteItems": "transact_write_items",
    "UpdateItem": "update_item",
}
"""The client's method for each operation."""
_WRITES = frozenset({"TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem"})
_PUT_IF_ABSENT = "attribute_not_exists(pk)"
SHARDS = 16
"""Partition keys of items that are all read together, so that none is hot."""


class ConditionFailed(Exception):
    """A write's condition did not hold, and nothing was written."""

    def __init__(self, item: Item | None, repeated: bool) -> None:
        super().__init__()
        self.item = item
        """The stored item, if there is one."""
        self.repeated = repeated
        """True if the SDK sent the call more than once: an earlier try may have taken effect."""


class TransactionRefused(Exception):
    """A condition in a transaction did not hold, and nothing was written."""

    def __init__(self, failed: Mapping[int, Item | None], repeated: bool) -> None:
        super().__init__()
        self.failed = failed
        """Place of each write whose condition failed -> the stored item, if there is one."""
        self.repeated = repeated


class Store:
    """The tables behind one client of DynamoDB."""

    def __init__(
        self,
        client: Any,
        randomness: random.Random,
        sleep: Callable[[float], None],
    ) -> None:
        self._client = client
        self._random = randomness
        self._sleep = sleep

    def get(self, table: str, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        """Returns the item of this key, or None; for half the units it may be a moment old."""
        answer = self._call(
            "GetItem", {"TableName": table, "Key": key(pk, sk), "ConsistentRead": consistent}
        )
        return answer.get("Item")

    def get_many(
        self, table: str, keys: Sequence[tuple[str, str]], *, consistent: bool
    ) -> dict[tuple[str, str], Item]:
        """Returns the items of these keys that exist; a call reads 100 of them."""
        found: dict[tuple[str, str], Item] = {}
        for first in range(0, len(keys), _BATCH_KEYS):
            some = [key(pk, sk) for pk, sk in keys[first : first + _BATCH_KEYS]]
            request: dict[str, Any] = {table: {"Keys": some, "ConsistentRead": consistent}}
            for tried in range(_BATCH_TRIES):
                answer = self._call("BatchGetItem", {"RequestItems": request})
                for item in answer.get("Responses", {}).get(table, []):
                    found[item["pk"]["S"], item["sk"]["S"]] = item
                request = answer.get("UnprocessedKeys") or {}
                if not request:
                    break
                self.pause(tried)
            else:
                raise Unavailable
        return found

    def put_if_absent(self, table: str, item: Item) -> None:
        """Writes an item under a key that is free, else raises ConditionFailed."""
        self.write("PutItem", put_if_absent(table, item))

    def write(self, operation: str, request: dict[str, Any]) -> Item | None:
        """Does a conditional UpdateItem or DeleteItem. Returns the attributes it asked for."""
        request = {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        return self._write(operation, request).get("Attributes")

    def try_write(self, operation: str, request: dict[str, Any]) -> bool:
        """Does what `write` does. Returns False if the condition did not hold."""
        try:
            self.write(operation, request)
        except ConditionFailed:
            return False
        return True

    def transact(self, writes: Sequence[Mapping[str, Any]]) -> None:
        """Does all writes or none; a conflict with another transaction is tried again.

        Raises TransactionRefused if a condition fails, Unavailable after too many conflicts.
        """
        self._write("TransactWriteItems", {"TransactItems": list(writes)})

    def query(self, request: dict[str, Any]) -> tuple[list[Item], Item | None, float]:
        """Returns one page: its items, the key to continue after (None at the end), read units."""
        answer = self._call("Query", request)
        units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        return answer.get("Items", []), answer.get("LastEvaluatedKey"), float(units)

    def query_all(
        self, table: str, pk: str, prefix: str = "", *, consistent: bool = True
    ) -> Iterator[Item]:
        """Yields every item of a partition whose sort key begins with `prefix`."""
        return self.query_pages(prefix_request(table, pk, prefix, consistent=consistent))

    def query_pages(self, request: dict[str, Any]) -> Iterator[Item]:
        """Yields every item of a query, page after page."""
        for items in self.query_by_page(request):
            yield from items

    def query_by_page(self, request: dict[str, Any]) -> Iterator[list[Item]]:
        """Yields the pages of a query; one may be empty."""
        request = dict(request)
        while True:
            items, last, _ = self.query(request)
            yield items
            if last is None:
                return
            request["ExclusiveStartKey"] = last

    def pause(self, tried: int) -> None:
        """Waits before a repeated try: exponential backoff with full jitter, at most 0.5 s."""
        # Jitter, so that writers that conflicted once do not conflict again.
        self._sleep(self._random.random() * min(0.5, 0.005 * 2**tried))

    def _write(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Calls the store, again after a conflict with a transaction."""
        for tried in range(CONFLICT_TRIES):
            try:
                return self._call(operation, request)
            except ClientError as error:
                failure = _failure(error)
                if failure is not None:
                    raise failure from error
            self.pause(tried)
        raise Unavailable

    def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._client, _METHODS[operation])(**request)
        except ClientError as error:
            if operation in _WRITES:
                raise
            raise _refused(error) from error
        except BotoCoreError as error:
            raise Unavailable from error
        return answer


def key(pk: str, sk: str) -> Item:
    """Returns the key of an item in wire shapes."""
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def number_in(item: Item, name: str) -> int:
    """Returns the number in an attribute; 0 if the item has none of this name."""
    return int(item[name]["N"]) if name in item else 0


def put_if_absent(table: str, item: Item) -> dict[str, Any]:
    """Returns a put under a free key, also as a transaction's `Put`."""
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": _PUT_IF_ABSENT,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _repeated(error: ClientError) -> bool:
    return bool(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def set_request(
    table: str,
    place: tuple[str, str],
    values: Item,
    steps: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """Returns an update that sets attributes of an item, also as a transaction's `Update`.

    steps: numbers to add to other attributes, which begin at 0.
    """
    expression = "SET " + ", ".join(f"#{name} = :{name}" for name in values)
    if steps:
        expression += " ADD " + ", ".join(f"#{name} :{name}" for name in steps)
    written = values | {name: {"N": str(step)} for name, step in steps.items()}
    return {
        "TableName": table,
        "Key": key(*place),
        "UpdateExpression": expression,
        "ExpressionAttributeNames": {f"#{name}": name for name in written},
        "ExpressionAttributeValues": {f":{name}": value for name, value in written.items()},
    }


def prefix_request(
    table: str, pk: str, prefix: str = "", *, consistent: bool = True
) -> dict[str, Any]:
    """Returns a query for the items of `pk` whose sort keys begin with `prefix`, in order."""
    request: dict[str, Any] = {
        "TableName": table,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
        "ConsistentRead": consistent,
    }
    if prefix:
        request["KeyConditionExpression"] += " AND begins_with(sk, :prefix)"
        request["ExpressionAttributeValues"][":prefix"] = {"S": prefix}
    return request


def _failure(error: ClientError) -> Exception | None:
    """Returns the exception for a write that failed, or None after a conflict."""
    code, reasons = error.response["Error"]["Code"], error.response.get("CancellationReasons", [])
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(error.response.get("Item"), _repeated(error))
    failed = {
        index: reason.get("Item")
        for index, reason in enumerate(reasons)
        if reason.get("Code") == "ConditionalCheckFailed"
    }
    if failed:
        return TransactionRefused(failed, _repeated(error))
    conflict = any(reason.get("Code") == "TransactionConflict" for reason in reasons)
    return None if conflict or code == "TransactionConflictException" else _refused(error)


REPEATABLE = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionInProgressException",
    }
)
"""Codes of errors that pass: the very same call may succeed a moment later."""
_TRANSIENT = REPEATABLE | {
    "ItemCollectionSizeLimitExceededException",
    "TransactionCanceledException",
}


_THROTTLED = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"}
)


def was_throttled(error: Exception) -> bool:
    """Returns True if the store raised this error because an item or a table is too busy."""
    cause = error.__cause__
    return isinstance(cause, ClientError) and cause.response["Error"]["Code"] in _THROTTLED


def _refused(error: ClientError) -> Exception:
    """Returns Unavailable for a transient error; a mistake of our own as it is, to be logged."""
    code = error.response["Error"]["Code"]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return Unavailable() if code in _TRANSIENT or status >= 500 else error


def shard_key(kind: str, name: str, shards: int = SHARDS) -> str:
    """Returns the partition key of the item with this name."""
    return f"{kind}#{zlib.crc32(name.encode()) % shards}"


def shard_keys(kind: str, shards: int = SHARDS) -> list[str]:
    """Returns all partition keys of a kind."""
    return [f"{kind}#{shard}" for shard in range(shards)]
