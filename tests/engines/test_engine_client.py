"""The engine's own client: it does what botocore's client does with the engine behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cirrusmq.runtime.store import _METHODS
from cirrusmq_local.engine import Engine, EngineClient, TableSpec, attach
from cirrusmq_local.engine.client import Executing
from cirrusmq_local.engine.errors import StorageFailedError

KEY = {"pk": {"S": "p"}, "sk": {"S": "1"}}
OTHER = {"pk": {"S": "p"}, "sk": {"S": "2"}}
ITEM = {**KEY, "raw": {"B": b"\x00\xff"}, "list": {"L": [{"N": "1.50"}, {"B": b"\x01"}]}}
TABLE = "Messages"
ABSENT = "attribute_not_exists(pk)"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("put_item", {"TableName": TABLE, "Item": ITEM}),
    ("get_item", {"TableName": TABLE, "Key": KEY, "ConsistentRead": True}),
    ("get_item", {"TableName": TABLE, "Key": OTHER, "ReturnConsumedCapacity": "TOTAL"}),
    (
        "put_item",
        {
            "TableName": TABLE,
            "Item": KEY,
            "ConditionExpression": ABSENT,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    ),
    (
        "update_item",
        {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": "SET n = :n",
            "ExpressionAttributeValues": {":n": {"N": "007"}},
            "ReturnValues": "ALL_NEW",
        },
    ),
    (
        "query",
        {
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": "p"}},
        },
    ),
    ("batch_get_item", {"RequestItems": {TABLE: {"Keys": [KEY, OTHER]}}}),
    (
        "transact_write_items",
        {
            "TransactItems": [
                {"Put": {"TableName": TABLE, "Item": OTHER}},
                {
                    "Put": {
                        "TableName": TABLE,
                        "Item": KEY,
                        "ConditionExpression": ABSENT,
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    }
                },
            ]
        },
    ),
    ("transact_write_items", {"TransactItems": [{"Put": {"TableName": TABLE, "Item": OTHER}}]}),
    ("delete_item", {"TableName": TABLE, "Key": KEY, "ReturnValues": "ALL_OLD"}),
    ("get_item", {"TableName": "Missing", "Key": KEY}),
    ("get_item", {"TableName": TABLE, "Key": {"pk": {"S": 1}, "sk": {"S": "1"}}}),
]


@pytest.fixture
def engines(clock: Any) -> Iterator[tuple[Engine, Engine]]:
    made = [Engine(None, [TableSpec(TABLE)], now_ms=clock) for _ in range(2)]
    yield made[0], made[1]
    for engine in made:
        engine.close()


def test_calls_answer_as_by_botocore(engines: tuple[Engine, Engine]) -> None:
    session = botocore.session.Session()
    session.set_credentials("any", "any")
    by_botocore = session.create_client(
        "dynamodb",
        region_name="us-east-1",
        config=Config(parameter_validation=False),
    )
    attach(engines[0], by_botocore)
    own = EngineClient(engines[1])
    for method, request in CALLS:
        assert outcome(own, method, request) == outcome(by_botocore, method, request)


def test_every_operation_of_the_service_has_its_method(engines: tuple[Engine, Engine]) -> None:
    client = EngineClient(engines[0])
    assert all(callable(getattr(client, method)) for method in _METHODS.values())
    with pytest.raises(AttributeError):
        client.create_table  # noqa: B018


def test_later_changes_of_a_caller_do_not_change_the_store(
    engines: tuple[Engine, Engine],
) -> None:
    client = EngineClient(engines[0])
    numbers = [{"N": "1"}]
    client.put_item(TableName=TABLE, Item={**KEY, "list": {"L": numbers}})
    numbers.append({"N": "2"})
    first = client.get_item(TableName=TABLE, Key=KEY)["Item"]
    first["list"]["L"].clear()
    assert client.get_item(TableName=TABLE, Key=KEY)["Item"]["list"] == {"L": [{"N": "1"}]}


def test_a_failing_disk_is_an_error_of_the_server() -> None:
    class Failing(Executing):
        def execute(self, operation: str, request: Any) -> dict[str, Any]:
            raise StorageFailedError(OSError("no space"))

    with pytest.raises(ClientError) as caught:
        EngineClient(Failing()).put_item(TableName=TABLE, Item=KEY)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert caught.value.response["Error"]["Code"] == "InternalServerError"


def outcome(client: Any, method: str, request: dict[str, Any]) -> Any:
    """Answer or error, without what botocore adds of HTTP."""
    try:
        told = getattr(client, method)(**request)
    except ClientError as error:
        told = {**error.response, "status": error.response["ResponseMetadata"]["HTTPStatusCode"]}
        told.pop("message", None)  # botocore's exceptions have the text a second time
        told.pop("Message", None)
    told.pop("ResponseMetadata", None)
    return told
