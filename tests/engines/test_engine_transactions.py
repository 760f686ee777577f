"""Transactions and batches."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.engine import EngineError

TEN_MINUTES = 600


def reasons(caught: pytest.ExceptionInfo[EngineError]) -> list[str]:
    return [reason["Code"] for reason in caught.value.extra["CancellationReasons"]]


def item(sk: str, **more: Any) -> dict[str, Any]:
    return {"pk": "p", "sk": sk, **more}


def test_a_transaction_does_all_of_its_writes(stored: Any) -> None:
    stored.put(item("2", n=1))
    stored.put(item("3"))
    stored.put(item("4"))
    stored.transact(
        stored.a_put(item("1", n=1), ConditionExpression="attribute_not_exists(pk)"),
        stored.an_update("2", "ADD n :one", values={"one": 1}),
        {"Delete": {"TableName": "Messages", "Key": {"pk": {"S": "p"}, "sk": {"S": "3"}}}},
        stored.a_check("4", "attribute_exists(pk)"),
        {"Put": {"TableName": "Directory", "Item": {"pk": {"S": "p"}, "sk": {"S": "1"}}}},
    )
    assert stored.sort_keys() == ["1", "2", "4"]
    assert stored.get(sk="2") == item("2", n=2)
    assert stored.execute("Scan", TableName="Directory")["Count"] == 1


def test_one_failed_condition_cancels_the_whole_transaction(stored: Any) -> None:
    stored.put(item("2", n=1))
    with pytest.raises(EngineError) as caught:
        stored.transact(
            stored.a_put(item("1")),
            stored.a_put(
                item("2"),
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
            stored.a_check("3", "attribute_exists(pk)"),
        )
    assert caught.value.code == "TransactionCanceledException"
    assert caught.value.message.endswith("[None, ConditionalCheckFailed, ConditionalCheckFailed]")
    failed = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    old = {"pk": {"S": "p"}, "sk": {"S": "2"}, "n": {"N": "1"}}
    assert caught.value.extra["CancellationReasons"] == [
        {"Code": "None"},
        {**failed, "Item": old},
        failed,
    ]
    assert stored.sort_keys() == ["2"]
    assert stored.engine.stream_position("Messages") == 1


def test_an_impossible_update_cancels_the_transaction(database: Any) -> None:
    update = database.an_update("2", "SET n = n + :one", values={"one": 1})
    with pytest.raises(EngineError) as caught:
        database.transact(database.a_put(item("1")), update)
    assert reasons(caught) == ["None", "ValidationError"]
    assert database.sort_keys() == []


def test_a_repeated_token_changes_nothing_for_ten_minutes(stored: Any, clock: Any) -> None:
    stored.put(item("1", n=0))
    update = stored.an_update("1", "ADD n :one", values={"one": 1})
    for advance, expected in ((0, 1), (TEN_MINUTES - 1, 1), (2, 2)):
        clock.advance(seconds=advance)
        stored.transact(update, ClientRequestToken="token")
        assert stored.get() == item("1", n=expected)


def test_a_token_with_another_content_is_refused(database: Any) -> None:
    database.transact(database.a_put(item("1")), ClientRequestToken="token")
    with pytest.raises(EngineError) as caught:
        database.transact(database.a_put(item("2")), ClientRequestToken="token")
    assert caught.value.code == "IdempotentParameterMismatchException"
    assert database.sort_keys() == ["1"]


def test_a_cancelled_transaction_may_be_tried_again_with_its_token(database: Any) -> None:
    put = database.a_put(item("1"), ConditionExpression="attribute_not_exists(pk)")
    database.put(item("1"))
    with pytest.raises(EngineError, match="TransactionCanceled"):
        database.transact(put, ClientRequestToken="token")
    database.delete()
    database.transact(put, ClientRequestToken="token")
    assert database.get() == item("1")


def test_a_repetition_costs_a_read_of_its_items(database: Any) -> None:
    put = database.a_put(item("1", v="x" * 5000))
    database.transact(put, ClientRequestToken="token")
    again = database.transact(put, ClientRequestToken="token", ReturnConsumedCapacity="TOTAL")
    assert again["ConsumedCapacity"] == [
        {"TableName": "Messages", "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}
    ]


def test_gets_of_a_transaction_answer_in_their_order(stored: Any) -> None:
    stored.put(item("1", n=1, m=2))
    stored.put(item("2"))
    gets = [
        {"Get": {"TableName": "Messages", "Key": {"pk": {"S": "p"}, "sk": {"S": sk}}}}
        for sk in ("2", "3", "1")
    ]
    gets[2]["Get"]["ProjectionExpression"] = "n"
    answer = stored.engine.execute("TransactGetItems", {"TransactItems": gets})
    assert answer["Responses"] == [
        {"Item": {"pk": {"S": "p"}, "sk": {"S": "2"}}},
        {},
        {"Item": {"n": {"N": "1"}}},
    ]


def test_a_batch_writes_and_reads_in_several_tables(stored: Any) -> None:
    stored.put(item("old"))
    put = {"PutRequest": {"Item": {"pk": {"S": "p"}, "sk": {"S": "1"}}}}
    delete = {"DeleteRequest": {"Key": {"pk": {"S": "p"}, "sk": {"S": "old"}}}}
    written = stored.engine.execute(
        "BatchWriteItem", {"RequestItems": {"Messages": [put, delete], "Directory": [put]}}
    )
    assert written == {"UnprocessedItems": {}}
    keys = [{"pk": {"S": "p"}, "sk": {"S": sk}} for sk in ("1", "old")]
    read = stored.engine.execute(
        "BatchGetItem",
        {"RequestItems": {"Messages": {"Keys": keys}, "Directory": {"Keys": keys}}},
    )
    only = [{"pk": {"S": "p"}, "sk": {"S": "1"}}]
    assert read == {"Responses": {"Messages": only, "Directory": only}, "UnprocessedKeys": {}}


def test_a_batch_read_above_16_megabytes_leaves_the_rest(database: Any) -> None:
    keys = [{"pk": {"S": "p"}, "sk": {"S": f"{number:02d}"}} for number in range(45)]
    for key in keys:
        database.execute("PutItem", Item={**key, "v": {"S": "x" * 400_000}})
    answer = database.engine.execute(
        "BatchGetItem", {"RequestItems": {"Messages": {"Keys": keys, "ConsistentRead": True}}}
    )
    left = answer["UnprocessedKeys"]["Messages"]
    assert len(answer["Responses"]["Messages"]) == 41
    assert left == {"Keys": keys[41:], "ConsistentRead": True}


def put_of(number: int) -> dict[str, Any]:
    key = {"pk": {"S": "p"}, "sk": {"S": str(number)}}
    return {"Put": {"TableName": "Messages", "Item": key}}


def batch_of(*numbers: int) -> dict[str, Any]:
    puts = [{"PutRequest": {"Item": put_of(number)["Put"]["Item"]}} for number in numbers]
    return {"RequestItems": {"Messages": puts}}


def keys_of(*numbers: int) -> dict[str, Any]:
    keys = [put_of(number)["Put"]["Item"] for number in numbers]
    return {"RequestItems": {"Messages": {"Keys": keys}}}


def get_of(number: int) -> dict[str, Any]:
    return {"Get": {"TableName": "Messages", "Key": put_of(number)["Put"]["Item"]}}


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("TransactWriteItems", {"TransactItems": []}, "greater than or equal to 1"),
        (
            "TransactWriteItems",
            {"TransactItems": [put_of(n) for n in range(101)]},
            "less than or equal to 100",
        ),
        ("TransactWriteItems", {"TransactItems": [put_of(1), put_of(1)]}, "operations on one item"),
        ("TransactWriteItems", {"TransactItems": [{}]}, "can only contain one of"),
        ("TransactWriteItems", {"TransactItems": [{"Put": {}}]}, "Value null at 'tableName'"),
        ("TransactGetItems", {"TransactItems": [get_of(1), get_of(1)]}, "operations on one item"),
        ("BatchWriteItem", batch_of(*range(26)), "less than or equal to 25"),
        ("BatchWriteItem", batch_of(1, 1), "contains duplicates"),
        ("BatchWriteItem", batch_of(), "cannot be null or empty"),
        ("BatchWriteItem", {"RequestItems": {}}, "greater than or equal to 1"),
        ("BatchGetItem", keys_of(*range(101)), "Too many items requested"),
        ("BatchGetItem", keys_of(1, 1), "contains duplicates"),
    ],
)
def test_too_much_or_twice_the_same_is_refused(
    database: Any, operation: str, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(EngineError, match="ValidationException") as caught:
        database.engine.execute(operation, request_)
    assert message in caught.value.message
    assert database.sort_keys() == []


def test_a_transaction_ends_at_four_megabytes(database: Any) -> None:
    large = "x" * 400_000
    with pytest.raises(EngineError, match="exceeds the limit of 4 MB"):
        database.transact(*[database.a_put(item(str(n), v=large)) for n in range(11)])
    assert database.sort_keys() == []


def test_a_hundred_writes_are_one_transaction(stored: Any) -> None:
    stored.transact(*[stored.a_put(item(f"{number:03d}")) for number in range(100)])
    assert len(stored.sort_keys()) == 100
