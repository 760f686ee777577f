"""Random requests for the comparison with moto: a client's method, and its arguments."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial
from typing import Any

from hypothesis import strategies as st
from tests.engines.random_expressions import (
    PARTITIONS,
    SORT_KEYS,
    Request,
    condition,
    full,
    items,
    keys,
    paths,
    update,
)

TABLE = "Messages"


@st.composite
def writes(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A put, an update, a delete or a check, with or without a condition."""
    kind = draw(st.sampled_from(["Put", "Update", "Update", "Delete", "ConditionCheck"]))
    request = Request()
    members: dict[str, Any] = {"TableName": TABLE}
    members |= {"Item": draw(items)} if kind == "Put" else {"Key": draw(keys)}
    if kind == "ConditionCheck" or draw(st.sampled_from([True, False, False])):
        members["ConditionExpression"] = condition(draw, request)
        members["ReturnValuesOnConditionCheckFailure"] = draw(st.sampled_from(["NONE", "ALL_OLD"]))
    if kind == "Update":
        conditional = request.values
        request.values = {}
        members["UpdateExpression"] = update(draw, request)
        renamed = {f":c{name[2:]}": value for name, value in conditional.items()}
        if "ConditionExpression" in members:
            text = members["ConditionExpression"].replace(":v", ":c")
            members["ConditionExpression"] = text
        request.values |= renamed
    request.texts = [str(members.get(n, "")) for n in ("ConditionExpression", "UpdateExpression")]
    return kind, members | request.members()


@st.composite
def single_writes(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    kind, members = draw(writes().filter(lambda write: write[0] != "ConditionCheck"))
    returned = ["NONE", "ALL_OLD"] + (["ALL_NEW"] if kind == "Update" else [])
    members["ReturnValues"] = draw(st.sampled_from(returned))
    return {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}[kind], members


@st.composite
def transactions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    parts = draw(
        st.lists(
            writes(),
            min_size=1,
            max_size=4,
            unique_by=lambda w: _place(w[1].get("Item") or w[1]["Key"]),
        )
    )
    return "transact_write_items", {"TransactItems": [{kind: part} for kind, part in parts]}


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    request = Request()
    partition = draw(st.sampled_from(PARTITIONS))
    text = f"pk = {request.value({'S': partition})}"
    low, high = sorted(draw(st.sampled_from(SORT_KEYS)) for _ in range(2))
    comparator = draw(st.sampled_from(["", "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"]))
    if comparator == "BETWEEN":
        bounds = f"{request.value({'S': low})} AND {request.value({'S': high})}"
        text += f" AND sk BETWEEN {bounds}"
    elif comparator == "begins_with":
        text += f" AND begins_with(sk, {request.value({'S': low})})"
    elif comparator:
        text += f" AND sk {comparator} {request.value({'S': low})}"
    members: dict[str, Any] = {"TableName": TABLE, "KeyConditionExpression": text}
    members["ScanIndexForward"] = draw(st.booleans())
    members["ConsistentRead"] = draw(st.booleans())
    if draw(st.booleans()):
        conditional, request.values = request.values, {}
        members["FilterExpression"] = condition(draw, request).replace(":v", ":c")
        request.values = conditional | {f":c{n[2:]}": v for n, v in request.values.items()}
    if draw(st.booleans()):
        members["Limit"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        start = {"pk": {"S": partition}, "sk": {"S": draw(st.sampled_from(SORT_KEYS))}}
        members["ExclusiveStartKey"] = start
    if draw(st.booleans()):
        members["ProjectionExpression"] = "sk, " + draw(paths)
    elif draw(st.booleans()):
        members["Select"] = "COUNT"
    request.texts = [str(text) for text in members.values()]
    return "query", members | request.members()


@st.composite
def reads(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    chosen = draw(st.lists(keys, min_size=1, max_size=4))
    kind = draw(st.sampled_from(["get_item", "batch_get_item", "transact_get_items"]))
    if kind == "get_item":
        members: dict[str, Any] = {"TableName": TABLE, "Key": chosen[0]}
        if draw(st.booleans()):
            members["ProjectionExpression"] = "n, list_[1], map_.x"
        return kind, members
    if kind == "batch_get_item":
        return kind, {"RequestItems": {TABLE: {"Keys": chosen}}}
    distinct = {_place(key): key for key in chosen}.values()
    gets = [{"Get": {"TableName": TABLE, "Key": key}} for key in distinct]
    return kind, {"TransactItems": gets}


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    written = draw(st.lists(st.one_of(items, keys), min_size=1, max_size=5, unique_by=_place))
    elements = [
        draw(
            st.sampled_from(
                [{"PutRequest": {"Item": item}}, {"DeleteRequest": {"Key": _key_of(item)}}]
            )
        )
        for item in written
    ]
    return "batch_write_item", {"RequestItems": {TABLE: elements}}


def _place(key: Mapping[str, Any]) -> tuple[str, str]:
    return key["pk"]["S"], key["sk"]["S"]


def _key_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


_KEY = {"pk": {"S": "p"}, "sk": {"S": "a"}}
_PLACE = {"TableName": TABLE, "Key": _KEY}
_VALUE = {"ExpressionAttributeValues": {":v": {"N": "2"}}}
mistakes = st.sampled_from(
    [
        ("get_item", {"TableName": "Elsewhere", "Key": _KEY}),
        ("get_item", {"TableName": TABLE, "Key": {**_KEY, "other": {"S": "x"}}}),
        ("get_item", {"TableName": TABLE, "Key": {**_KEY, "pk": {"S": ""}}}),
        ("put_item", {"TableName": TABLE, "Item": {"pk": {"S": "p"}}}),
        ("put_item", {"TableName": TABLE, "Item": {"pk": {"S": "p"}, "sk": {"N": "2"}}}),
        ("put_item", {"TableName": TABLE, "Item": {"pk": {"S": "p"}, "sk": {"S": ""}}}),
        ("put_item", {"TableName": TABLE, "Item": _KEY, "ReturnValues": "ALL_NEW"}),
        ("delete_item", {"TableName": TABLE, "Key": _KEY, "ReturnValues": "ALL_NEW"}),
        (
            "put_item",
            {
                "TableName": TABLE,
                "Item": _KEY,
                "ConditionExpression": "attribute_exists(n)",
                "ExpressionAttributeNames": {"#unused": "n"},
            },
        ),
        (
            "update_item",
            {"TableName": TABLE, "Key": _KEY, "UpdateExpression": "SET sk = :v", **_VALUE},
        ),
        (
            "update_item",
            {"TableName": TABLE, "Key": _KEY, "UpdateExpression": "SET n = :v, n = :v", **_VALUE},
        ),
        (
            "update_item",
            {"TableName": TABLE, "Key": _KEY, "UpdateExpression": "SET name = :v", **_VALUE},
        ),
        (
            "update_item",
            {"TableName": TABLE, "Key": _KEY, "UpdateExpression": "SET n = :w", **_VALUE},
        ),
        (
            "update_item",
            {"TableName": TABLE, "Key": _KEY, "UpdateExpression": "SET n :v", **_VALUE},
        ),
        ("query", {"TableName": TABLE, "KeyConditionExpression": "sk = :v", **_VALUE}),
        ("batch_write_item", {"RequestItems": {TABLE: [{"DeleteRequest": {"Key": _KEY}}] * 2}}),
        ("batch_write_item", {"RequestItems": {TABLE: [{"PutRequest": {"Item": _KEY}}] * 2}}),
        ("transact_write_items", {"TransactItems": [{"Delete": _PLACE}] * 2}),
        (
            "transact_write_items",
            {"TransactItems": [{"Put": {"Item": _KEY, "TableName": TABLE}}] * 101},
        ),
        ("query", {"TableName": TABLE, "KeyConditionExpression": "pk > :v", **_VALUE}),
    ]
)
operations = st.one_of(
    single_writes(),
    single_writes(),
    single_writes(),
    transactions(),
    queries(),
    reads(),
    batches(),
    mistakes,
)


# The content of both tables before the first operation: an item at every key.
_PLACES = [{"pk": {"S": pk}, "sk": {"S": sk}} for pk in PARTITIONS for sk in SORT_KEYS]
beginnings = st.tuples(*[full.map(partial(operator.or_, place)) for place in _PLACES]).map(
    lambda begun: {"RequestItems": {TABLE: [{"PutRequest": {"Item": item}} for item in begun]}}
)
