"""The embedded engine against moto: random operations give the same answers and the same items.

Both are called through botocore. Capacity and transaction conflicts are left out: moto has none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from cirrusmq_local.engine import Engine, TableSpec, attach

# What moto does otherwise than DynamoDB, with where it does so. The strategies below leave these
# out, or `same` and `resynchronize` make up for them; nothing else may differ.
MOTO_DIFFERS = {
    "absent operands": "OpEqual compares None with None: two absent attributes are equal, and an "
    "absent one equals NULL. So paths are compared with values, and values are never NULL.",
    "values without types": "AttributeValue.expr compares Python values: true equals the number 1. "
    "So no number that is compared is 0 or 1.",
    "orderings across types": "OpLessThan and FuncBetween compare whatever they get, and raise "
    "TypeError. So an ordering comes behind a check of the type.",
    "size of what has none": "FuncSize raises ValueError. So size() comes behind a check of the "
    "type.",
    "binary": "It compares and orders the base64 text. So there is no binary here.",
    "the last page": "Table.query gives a LastEvaluatedKey only when it has seen a further item, "
    "DynamoDB whenever a limit was reached.",
    "UPDATED_OLD and UPDATED_NEW": "update_item returns attributes that changed, whole; DynamoDB "
    "the paths that were written. So these two are not asked for.",
    "half an update": "UpdateExpressionExecutor changes the stored item action by action, and "
    "leaves it so when a later one fails.",
    "cancelled by what": "transact_write_items raises ValidationException itself for an update "
    "that cannot be done, DynamoDB cancels the transaction with the reason ValidationError.",
    "appending nothing": "UpdateExpressionFunctionEvaluator asserts that the second operand of "
    "list_append is there. So it always is.",
    "appending beyond the end": "SetExecutor appends in the order of the text, DynamoDB in the "
    "order of the indexes. So at most one index lies beyond an end.",
}

TABLE = "Messages"
PARTITIONS = ("p", "q")
SORT_KEYS = ("a", "ab", "b", "é")
EXAMPLES = 200
OPERATIONS = 30

keys = st.fixed_dictionaries(
    {
        "pk": st.sampled_from(PARTITIONS).map(lambda text: {"S": text}),
        "sk": st.sampled_from(SORT_KEYS).map(lambda text: {"S": text}),
    }
)
texts = st.sampled_from(["", "a", "ab", "b", "é", "10"]).map(lambda text: {"S": text})
numbers = st.sampled_from(["2", "-7", "3.5", "10", "100", "-0.25"]).map(lambda text: {"N": text})
text_sets = st.lists(st.sampled_from("abc"), min_size=1, unique=True).map(lambda e: {"SS": e})
number_sets = st.lists(st.sampled_from(["2", "3.5", "-7"]), min_size=1, unique=True).map(
    lambda e: {"NS": e}
)
plain = st.one_of(texts, numbers, text_sets, number_sets)
lists = st.lists(plain, max_size=3).map(lambda elements: {"L": elements})
maps = st.dictionaries(st.sampled_from(["x", "y"]), plain).map(lambda members: {"M": members})
comparable = st.one_of(texts, numbers, text_sets, number_sets, lists, maps)
anything = st.one_of(
    comparable,
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    st.sampled_from(["0", "1"]).map(lambda text: {"N": text}),
    st.lists(maps, min_size=1, max_size=2).map(lambda elements: {"L": elements}),
)
_each = {
    "n": numbers,
    "word": texts,
    "tags": text_sets,
    "list_": lists,
    "map_": maps,
    "mixed": anything,
}
full = st.fixed_dictionaries(_each)
attributes = st.one_of(full, st.fixed_dictionaries({}, optional=_each))
items = st.builds(lambda key, more: {**key, **more}, keys, attributes)
paths = st.sampled_from(
    [
        "n",
        "word",
        "tags",
        "list_",
        "map_",
        "mixed",
        "gone",
        "list_[0]",
        "list_[1]",
        "map_.x",
        "#m.#y",
    ]
)
type_tags = st.sampled_from(["S", "N", "SS", "NS", "L", "M", "BOOL", "NULL"])


class Request:
    """Collects the placeholders of one request's expressions."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.texts: list[str] = []
        self.count = 0

    def value(self, value: Mapping[str, Any]) -> str:
        name = f":v{self.count}"
        self.count += 1
        self.values[name] = value
        return name

    def members(self) -> dict[str, Any]:
        used = " ".join(self.texts)
        names = {"#m": "map_", "#y": "y"}
        request: dict[str, Any] = {}
        if any(name in used for name in names):
            request["ExpressionAttributeNames"] = {n: a for n, a in names.items() if n in used}
        if self.values:
            request["ExpressionAttributeValues"] = self.values
        return request


def condition(draw: st.DrawFn, request: Request, depth: int = 2) -> str:
    """The text of a random condition; its values go to the request."""
    joined = draw(st.sampled_from(["", "", "NOT", "AND", "OR"])) if depth else ""
    if joined == "NOT":
        return f"NOT ({condition(draw, request, depth - 1)})"
    if joined:
        left, right = (condition(draw, request, depth - 1) for _ in range(2))
        return f"{left} {joined} {right}"
    path = draw(paths)
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return draw(st.sampled_from([f"attribute_exists({path})", f"attribute_not_exists({path})"]))
    if kind == 1:
        return f"attribute_type({path}, {request.value({'S': draw(type_tags)})})"
    if kind == 2:
        return f"begins_with({path}, {request.value(draw(texts))})"
    if kind == 3:
        return f"contains({path}, {request.value(draw(plain))})"
    if kind == 4:
        listed = ", ".join(request.value(draw(comparable)) for _ in range(draw(st.integers(1, 3))))
        return f"{path} IN ({listed})"
    if kind == 5:
        tag = draw(st.sampled_from(["S", "L", "M", "SS", "NS"]))
        guard = f"attribute_type({path}, {request.value({'S': tag})})"
        number = draw(st.integers(2, 3))
        comparator = draw(st.sampled_from(["=", "<", ">="]))
        return f"({guard} AND size({path}) {comparator} {request.value({'N': str(number)})})"
    if kind == 6:
        return f"{path} {draw(st.sampled_from(['=', '<>']))} {request.value(draw(comparable))}"
    return _ordering(draw, request, path)


def _ordering(draw: st.DrawFn, request: Request, path: str) -> str:
    values = draw(st.sampled_from([texts, numbers]))
    low, high = sorted((draw(values), draw(values)), key=_order)
    guard = f"attribute_type({path}, {request.value({'S': next(iter(low))})})"
    comparator = draw(st.sampled_from(["<", "<=", ">", ">=", "BETWEEN"]))
    if comparator == "BETWEEN":
        return f"({guard} AND {path} BETWEEN {request.value(low)} AND {request.value(high)})"
    return f"({guard} AND {path} {comparator} {request.value(low)})"


def _place(key: Mapping[str, Any]) -> tuple[str, str]:
    return key["pk"]["S"], key["sk"]["S"]


def _key_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"pk": item["pk"], "sk": item["sk"]}


def _order(value: Mapping[str, str]) -> Any:
    ((tag, content),) = value.items()
    return Decimal(content) if tag == "N" else content.encode()


def update(draw: st.DrawFn, request: Request) -> str:
    """The text of a random update: some attributes, each changed in one way."""

    def v(values: st.SearchStrategy[Any]) -> str:
        return request.value(draw(values))

    either_set = st.one_of(text_sets, number_sets)
    ways: dict[str, list[Callable[[], tuple[str, str]]]] = {
        "n": [
            lambda: ("SET", f"n = if_not_exists(n, {v(numbers)}) + {v(numbers)}"),
            lambda: ("SET", f"n = {v(numbers)} - n"),
            lambda: ("ADD", f"n {v(numbers)}"),
            lambda: ("REMOVE", "n"),
        ],
        "word": [
            lambda: ("SET", f"word = {v(texts)}"),
            lambda: ("REMOVE", "word, gone"),
        ],
        "tags": [
            lambda: ("ADD", f"tags {v(text_sets)}"),
            lambda: ("DELETE", f"tags {v(text_sets)}"),
        ],
        "mixed": [
            lambda: ("SET", f"mixed = {v(anything)}"),
            lambda: ("SET", f"mixed = {draw(paths)}"),
            lambda: ("SET", f"mixed = if_not_exists({draw(paths)}, {v(anything)})"),
            lambda: ("SET", f"mixed = mixed + {v(numbers)}"),
            lambda: ("ADD", f"mixed {v(st.one_of(numbers, either_set))}"),
            lambda: ("DELETE", f"mixed {v(either_set)}"),
        ],
        "list_": [
            lambda: ("SET", f"list_ = list_append(list_, {v(lists)})"),
            lambda: ("SET", f"list_ = list_append({v(lists)}, if_not_exists(list_, {v(lists)}))"),
            lambda: ("SET", f"list_ = list_append(if_not_exists(list_, {v(lists)}), {v(lists)})"),
            lambda: ("SET", f"list_[{draw(st.sampled_from([0, 1, 9]))}] = {v(anything)}"),
            lambda: ("REMOVE", draw(st.sampled_from(["list_", "list_[0]", "list_[0], list_[2]"]))),
        ],
        "map_": [
            lambda: ("SET", f"map_ = {v(maps)}"),
            lambda: ("SET", f"map_.x = {v(anything)}, #m.#y = map_.x"),
            lambda: ("ADD", f"map_.x {v(numbers)}"),
            lambda: ("REMOVE", draw(st.sampled_from(["map_", "map_.x", "map_.x, #m.#y"]))),
        ],
    }
    clauses: dict[str, list[str]] = {}
    chosen = draw(st.lists(st.sampled_from(sorted(ways)), min_size=1, max_size=3, unique=True))
    for attribute in chosen:
        clause, text = draw(st.sampled_from(ways[attribute]))()
        clauses.setdefault(clause, []).append(text)
    return " ".join(f"{clause} {', '.join(texts)}" for clause, texts in clauses.items())


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


# What lies in both tables before the first operation: an item at every key.
_PLACES = [{"pk": {"S": pk}, "sk": {"S": sk}} for pk in PARTITIONS for sk in SORT_KEYS]
beginnings = st.tuples(*[full.map(partial(operator.or_, place)) for place in _PLACES]).map(
    lambda begun: {"RequestItems": {TABLE: [{"PutRequest": {"Item": item}} for item in begun]}}
)


@pytest.fixture(scope="module")
def moto() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        yield boto3.client("dynamodb", region_name="us-east-1")


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(beginnings, st.lists(operations, min_size=OPERATIONS // 2, max_size=OPERATIONS))
def test_random_operations_do_the_same_on_both(
    moto: Any, beginning: dict[str, Any], steps: list[tuple[str, dict[str, Any]]]
) -> None:
    engine = Engine(None, [TableSpec(TABLE, stream=True)], now_ms=lambda: 0)
    client = boto3.client("dynamodb", region_name="us-east-1")
    attach(engine, client)
    _create_table(moto)
    try:
        for method, request in [("batch_write_item", beginning), *steps]:
            ours, theirs = outcome(client, method, request), outcome(moto, method, request)
            assert same(ours, theirs), (method, request, ours, theirs)
            if "code" in ours:
                resynchronize(client, moto, request)
        assert _everything(client) == _everything(moto)
    finally:
        moto.delete_table(TableName=TABLE)
        engine.close()


def outcome(client: Any, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """What a call answers, or the code of its error and what comes with it."""
    try:
        answer = getattr(client, method)(**request)
    except ClientError as error:
        shown = {"code": error.response["Error"]["Code"]}
        for name in ("Item", "CancellationReasons"):
            if error.response.get(name):
                shown[name] = canonical(error.response[name])
        return shown
    ignored = ("ResponseMetadata", "ConsumedCapacity", "ItemCollectionMetrics")
    return {name: canonical(value) for name, value in answer.items() if name not in ignored}


def canonical(value: Any) -> Any:
    """A value in which numbers and sets are equal whatever their text and order."""
    if isinstance(value, list):
        return [canonical(element) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, content),) = value.items()
        if tag == "N":
            return {"N": Decimal(content)}
        if tag == "NS":
            return {"NS": sorted(map(Decimal, content))}
        if tag == "SS":
            return {"SS": sorted(content)}
    return {name: canonical(member) for name, member in value.items() if name != "Message"}


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether two outcomes are equal, but for what MOTO_DIFFERS names."""
    if ours.get("code") == "TransactionCanceledException" == theirs.get("code"):
        # Cancelled by what.
        return _codes(ours) == _codes(theirs) and ours == theirs
    if ours.get("code") == "TransactionCanceledException" and "ValidationError" in _codes(ours):
        return theirs.get("code") == "ValidationException"
    if "LastEvaluatedKey" not in theirs and "Count" in theirs:
        # The last page.
        ours = {name: value for name, value in ours.items() if name != "LastEvaluatedKey"}
    return ours == theirs


def _codes(shown: Mapping[str, Any]) -> list[str]:
    return [reason["Code"] for reason in shown["CancellationReasons"]]


def resynchronize(client: Any, moto: Any, request: Mapping[str, Any]) -> None:
    """Half an update: give moto the item as the engine has it."""
    if "UpdateExpression" not in request or request["TableName"] != TABLE:
        return
    key = {"TableName": TABLE, "Key": request["Key"]}
    item = client.get_item(**key).get("Item")
    if item is None:
        moto.delete_item(**key)
    else:
        moto.put_item(TableName=TABLE, Item=item)


def _everything(client: Any) -> list[Any]:
    items = client.scan(TableName=TABLE)["Items"]
    return sorted((canonical(item) for item in items), key=lambda i: (i["pk"]["S"], i["sk"]["S"]))


def _create_table(client: Any) -> None:
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk")],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
    )
