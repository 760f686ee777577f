from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.local.conftest import run_with

from cirrusmq_local.cloud.guard import GuardedEngine
from cirrusmq_local.engine import Engine, EngineError, TableSpec

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
GET = {"TableName": "Items", "Key": KEY}
PUT = {"TableName": "Items", "Item": KEY}


class Stand:
    """Runs operations inside a function that has the permissions a test gives it."""

    def __init__(self) -> None:
        self.engine = Engine(None, [TableSpec("Items"), TableSpec("Others")], now_ms=lambda: 1)
        self.guarded = GuardedEngine(self.engine)

    def run(self, operation: str, request: dict[str, Any], *allowed: str, keys: str = "") -> Any:
        may = {"Items.Arn": {f"dynamodb:{action}": (keys,) for action in allowed}}
        return run_with(may, lambda: self.guarded.execute(operation, request))


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    yield made
    made.engine.close()


def test_an_allowed_operation_is_done(stand: Stand) -> None:
    stand.run("PutItem", PUT, "PutItem", "GetItem")
    assert stand.run("GetItem", GET, "GetItem")["Item"] == KEY


def test_another_action_is_denied_and_nothing_is_done(stand: Stand) -> None:
    with pytest.raises(EngineError, match=r"AccessDenied.*caller.*PutItem on Items"):
        stand.run("PutItem", PUT, "GetItem")
    assert "Item" not in stand.engine.execute("GetItem", GET)


def test_another_table_is_denied(stand: Stand) -> None:
    with pytest.raises(EngineError, match="AccessDenied"):
        stand.run("GetItem", GET | {"TableName": "Others"}, "GetItem")


@pytest.mark.parametrize(
    ("part", "action"),
    [
        ({"Put": PUT}, "PutItem"),
        ({"Delete": GET}, "DeleteItem"),
        (
            {"ConditionCheck": GET | {"ConditionExpression": "attribute_not_exists(pk)"}},
            "ConditionCheckItem",
        ),
    ],
)
def test_a_transaction_needs_its_parts_permissions(stand: Stand, part: Any, action: str) -> None:
    request = {"TransactItems": [part]}
    stand.run("TransactWriteItems", request, action)
    with pytest.raises(EngineError, match=f"AccessDenied.*{action}"):
        stand.run("TransactWriteItems", request, "TransactWriteItems")


def test_a_policy_may_be_confined_to_some_keys(stand: Stand) -> None:
    stand.run("PutItem", PUT, "PutItem", keys="a")
    with pytest.raises(EngineError, match=r"AccessDenied.*PutItem on Items a"):
        stand.run("PutItem", PUT, "PutItem", keys="b")
    with pytest.raises(EngineError, match="AccessDenied"):
        stand.run("TransactWriteItems", {"TransactItems": [{"Put": PUT}]}, "PutItem", keys="b")
    # Of a batch each key counts.
    batch = {"RequestItems": {"Items": {"Keys": [KEY]}}}
    stand.run("BatchGetItem", batch, "BatchGetItem", keys="a")
    batch["RequestItems"]["Items"]["Keys"] += [{"pk": {"S": "b"}}]
    with pytest.raises(EngineError, match=r"AccessDenied.*BatchGetItem on Items b"):
        stand.run("BatchGetItem", batch, "BatchGetItem", keys="a")


def test_a_batch_needs_its_own_action_on_every_table(stand: Stand) -> None:
    one: dict[str, Any] = {"Items": {"Keys": [KEY]}}
    stand.run("BatchGetItem", {"RequestItems": one}, "BatchGetItem")
    with pytest.raises(EngineError, match="BatchGetItem on Others"):
        stand.run("BatchGetItem", {"RequestItems": one | {"Others": one["Items"]}}, "BatchGetItem")


def test_the_stack_itself_may_do_anything(stand: Stand) -> None:
    stand.guarded.execute("PutItem", PUT)
    assert stand.guarded.execute("GetItem", GET)["Item"] == KEY
