"""Random requests to DynamoDB, drawn from a seed: a client's method, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from cirrusmq_local.verifying.drawn_expressions import PATHS, Expression, Value, Values

Operation = tuple[str, dict[str, Any]]
"""A method of a DynamoDB client, and its arguments."""

SORT_KEYS = ("a", "ab", "b", "é")
MAX_UNITS = 10
"""Write or read units of one operation, at most: a transaction of four small items, and spare."""
_CLIENT_METHODS = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}


class Operations:
    """Draws requests to one table, in two partitions that no other round has."""

    def __init__(self, table: str, seed: int, number: int, wide: bool) -> None:
        """number: of the round, which names its partitions."""
        self.table = table
        self.partitions = (f"p{number}", f"q{number}")
        self._draw = Values(Random(f"{seed}/{number}"), wide)

    def places(self) -> list[Value]:
        """All keys of the round."""
        return [self._key(pk, sk) for pk in self.partitions for sk in SORT_KEYS]

    def beginning(self) -> Operation:
        """Draws the round's first request: an item at each key."""
        puts = [{"PutRequest": {"Item": p | self._draw.attributes(1.0)}} for p in self.places()]
        return "batch_write_item", {"RequestItems": {self.table: puts}}

    def operation(self) -> Operation:
        """Draws one request."""
        kinds: list[Callable[[], Operation]] = [
            self._single_write,
            self._single_write,
            self._single_write,
            self._transaction,
            self._query,
            self._read,
            self._batch,
            self._mistake,
        ]
        return self._draw.one(kinds)()

    def _key(self, pk: str, sk: str) -> Value:
        return {"pk": {"S": pk}, "sk": {"S": sk}}

    def _write(self, kinds: tuple[str, ...], key: Value) -> tuple[str, dict[str, Any]]:
        draw = self._draw
        kind = draw.one(kinds)
        members: dict[str, Any] = {"TableName": self.table}
        if kind == "Put":
            members["Item"] = key | draw.attributes(draw.one((1.0, 0.5)))
        else:
            members["Key"] = key
        values: dict[str, Value] = {}
        if kind == "ConditionCheck" or draw.often(0.4):
            condition = Expression(draw, "c")
            members["ConditionExpression"] = condition.condition()
            members["ReturnValuesOnConditionCheckFailure"] = draw.one(("NONE", "ALL_OLD"))
            values |= condition.values
        if kind == "Update":
            update = Expression(draw, "v")
            members["UpdateExpression"] = update.update()
            values |= update.values
        return kind, members | _placeholders(members, values)

    def _single_write(self) -> Operation:
        kinds = ("Put", "Update", "Update", "Delete")
        kind, members = self._write(kinds, self._draw.one(self.places()))
        returned = ["NONE", "ALL_OLD"]
        if kind == "Update":
            returned += ["ALL_NEW", *(("UPDATED_OLD", "UPDATED_NEW") if self._draw.wide else ())]
        members["ReturnValues"] = self._draw.one(returned)
        return _CLIENT_METHODS[kind], members

    def _transaction(self) -> Operation:
        kinds = ("Put", "Update", "Update", "Delete", "ConditionCheck")
        places = self._draw.some(self.places(), 1, 4)
        parts = [{kind: part} for kind, part in (self._write(kinds, each) for each in places)]
        return "transact_write_items", {"TransactItems": parts}

    def _query(self) -> Operation:
        draw = self._draw
        partition = draw.one(self.partitions)
        key = Expression(draw, "v")
        text = f"pk = {key.value({'S': partition})}"
        low, high = sorted((draw.one(SORT_KEYS), draw.one(SORT_KEYS)))
        comparator = draw.one(("", "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"))
        if comparator == "BETWEEN":
            text += f" AND sk BETWEEN {key.value({'S': low})} AND {key.value({'S': high})}"
        elif comparator == "begins_with":
            text += f" AND begins_with(sk, {key.value({'S': low})})"
        elif comparator:
            text += f" AND sk {comparator} {key.value({'S': low})}"
        members: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": text,
            "ScanIndexForward": draw.often(0.5),
            "ConsistentRead": True,
        }
        values = dict(key.values)
        if draw.often(0.5):
            condition = Expression(draw, "c")
            members["FilterExpression"] = condition.condition()
            values |= condition.values
        if draw.often(0.5):
            members["Limit"] = draw.random.randint(1, 4)
        if draw.often(0.5):
            members["ExclusiveStartKey"] = self._key(partition, draw.one(SORT_KEYS))
        if draw.often(0.5):
            members["ProjectionExpression"] = f"sk, {draw.one(PATHS)}"
        elif draw.often(0.5):
            members["Select"] = "COUNT"
        return "query", members | _placeholders(members, values)

    def _read(self) -> Operation:
        draw = self._draw
        keys = draw.some(self.places(), 1, 4)
        kind = draw.one(("get_item", "batch_get_item", "transact_get_items"))
        if kind == "get_item":
            members = {"TableName": self.table, "Key": keys[0], "ConsistentRead": True}
            if draw.often(0.5):
                members["ProjectionExpression"] = "n, list_[1], map_.x"
            return kind, members
        if kind == "batch_get_item":
            # A key twice is refused.
            chosen = [*keys, keys[0]] if draw.often(0.1) else keys
            return kind, {"RequestItems": {self.table: {"Keys": chosen, "ConsistentRead": True}}}
        gets = [{"Get": {"TableName": self.table, "Key": key}} for key in keys]
        return kind, {"TransactItems": gets}

    def _batch(self) -> Operation:
        draw = self._draw
        written = [
            {"PutRequest": {"Item": place | draw.attributes(0.5)}}
            if draw.often(0.5)
            else {"DeleteRequest": {"Key": place}}
            for place in draw.some(self.places(), 1, 5)
        ]
        return "batch_write_item", {"RequestItems": {self.table: written}}

    def _mistake(self) -> Operation:
        return self._draw.one(_mistakes(self.table, self._key(self.partitions[0], "a")))


def _placeholders(members: dict[str, Any], values: dict[str, Value]) -> dict[str, Any]:
    names = {"#m": "map_", "#y": "y"}
    texts = " ".join(text for text in members.values() if isinstance(text, str))
    used = {name: attribute for name, attribute in names.items() if name in texts}
    request: dict[str, Any] = {"ExpressionAttributeNames": used} if used else {}
    return request | ({"ExpressionAttributeValues": values} if values else {})


def _mistakes(table: str, key: Value) -> list[Operation]:
    """Requests that are refused."""
    place = {"TableName": table, "Key": key}
    value = {"ExpressionAttributeValues": {":v": {"N": "2"}}}
    partition = {"pk": key["pk"]}
    requests = {"delete": {"DeleteRequest": {"Key": key}}, "put": {"PutRequest": {"Item": key}}}
    updates = ("SET sk = :v", "SET n = :v, n = :v", "SET name = :v", "SET n = :w", "SET n :v")
    return [
        ("get_item", {"TableName": f"{table}-elsewhere", "Key": key}),
        ("get_item", {"TableName": table, "Key": {**key, "other": {"S": "x"}}}),
        ("get_item", {"TableName": table, "Key": {**key, "pk": {"S": ""}}}),
        ("put_item", {"TableName": table, "Item": partition}),
        ("put_item", {"TableName": table, "Item": {**partition, "sk": {"N": "2"}}}),
        ("put_item", {"TableName": table, "Item": {**partition, "sk": {"S": ""}}}),
        ("put_item", {"TableName": table, "Item": key, "ReturnValues": "ALL_NEW"}),
        ("delete_item", {**place, "ReturnValues": "ALL_NEW"}),
        (
            "put_item",
            {
                "TableName": table,
                "Item": key,
                "ConditionExpression": "attribute_exists(n)",
                "ExpressionAttributeNames": {"#unused": "n"},
            },
        ),
        *(("update_item", {**place, "UpdateExpression": text, **value}) for text in updates),
        ("query", {"TableName": table, "KeyConditionExpression": "sk = :v", **value}),
        ("query", {"TableName": table, "KeyConditionExpression": "pk > :v", **value}),
        ("batch_write_item", {"RequestItems": {table: [requests["delete"]] * 2}}),
        ("batch_write_item", {"RequestItems": {table: [requests["put"]] * 2}}),
        ("transact_write_items", {"TransactItems": [{"Delete": place}] * 2}),
        (
            "transact_write_items",
            {"TransactItems": [{"Put": {"TableName": table, "Item": key}}] * 101},
        ),
    ]
