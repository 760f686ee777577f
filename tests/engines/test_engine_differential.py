"""The embedded engine against moto: random operations give the same answers and the same items.

Both are called through botocore. Capacity and transaction conflicts are left out: moto has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws
from tests.engines.random_operations import TABLE, beginnings, operations

from cirrusmq_local.engine import Engine, TableSpec, attach

# The differences of moto from DynamoDB, with their places in its code. The random operations leave
# them out, or `same` and `resynchronize` make up for them; nothing else may differ.
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
EXAMPLES, LONG_EXAMPLES = 12, 400
OPERATIONS = 30


@pytest.fixture(scope="module")
def moto() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        yield boto3.client("dynamodb", region_name="us-east-1")


def _tried(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


_STEPS = st.lists(operations, min_size=OPERATIONS // 2, max_size=OPERATIONS)


@_tried(EXAMPLES)
@given(beginnings, _STEPS)
def test_random_operations_do_the_same_on_both(
    moto: Any, beginning: dict[str, Any], steps: list[tuple[str, dict[str, Any]]]
) -> None:
    _compare(moto, beginning, steps)


@pytest.mark.long
@_tried(LONG_EXAMPLES)
@given(beginnings, _STEPS)
def test_many_random_operations_do_the_same_on_both(
    moto: Any, beginning: dict[str, Any], steps: list[tuple[str, dict[str, Any]]]
) -> None:
    _compare(moto, beginning, steps)


def _compare(moto: Any, beginning: dict[str, Any], steps: list[tuple[str, dict[str, Any]]]) -> None:
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
    """The answer of a call, or the code of its error with its item and reasons."""
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
    """A value in which equal numbers and sets are equal in any notation and order."""
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
    """Whether two outcomes are equal, but for the differences that MOTO_DIFFERS names."""
    if ours.get("code") == "TransactionCanceledException" == theirs.get("code"):
        # The reasons of the cancellation.
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
