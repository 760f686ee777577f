"""Consumed capacity against figures worked out by hand from Amazon's rules."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.engine import EngineError
from cirrusmq_local.engine.values import admit_item, item_size


def sized(size: int, sk: str = "1", name: str = "v") -> dict[str, Any]:
    """An item of exactly that many bytes: "pk", "p", "sk", its value, and one attribute more."""
    return {"pk": "p", "sk": sk, name: "x" * (size - 5 - len(sk) - len(name))}


def units(answer: dict[str, Any]) -> float:
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "hé"}, 3),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "-7"}, 3),
        ({"N": "1200"}, 2),
        ({"N": "0.0012"}, 2),
        ({"N": "1700000000000"}, 2),
        ({"N": "1712345678901"}, 8),
        ({"B": b"\x00\x01\x02"}, 3),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "100"]}, 4),
        ({"BS": [b"ab"]}, 2),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + 2 + 2 + 2),
        ({"M": {}}, 3),
        ({"M": {"ab": {"S": "c"}}}, 3 + 1 + 2 + 1),
    ],
)
def test_a_value_counts_by_its_type(value: dict[str, Any], size: int) -> None:
    item, counted = admit_item({"é": value})
    assert (counted, item_size(item)) == (2 + size, 2 + size)


@pytest.mark.parametrize(
    ("size", "expected"), [(20, 1), (1024, 1), (1025, 2), (3584, 4), (400 * 1024, 400)]
)
def test_a_put_costs_a_unit_for_each_kilobyte_begun(
    database: Any, size: int, expected: float
) -> None:
    assert units(database.put(sized(size), ReturnConsumedCapacity="TOTAL")) == expected


def test_a_put_over_a_larger_item_costs_the_larger_size(database: Any) -> None:
    database.put(sized(5000))
    assert units(database.put(sized(100), ReturnConsumedCapacity="TOTAL")) == 5


def test_an_update_costs_the_larger_of_before_and_after(database: Any) -> None:
    database.put(sized(9 * 1024))
    request = {
        "Key": {"pk": {"S": "p"}, "sk": {"S": "1"}},
        "ExpressionAttributeValues": {":v": {"S": "x"}},
        "UpdateExpression": "SET v = :v",
        "ReturnConsumedCapacity": "TOTAL",
    }
    assert units(database.execute("UpdateItem", **request)) == 9
    assert units(database.execute("UpdateItem", **request)) == 1


def test_a_delete_costs_the_size_of_the_deleted_item(database: Any) -> None:
    database.put(sized(3584))
    assert units(database.delete(ReturnConsumedCapacity="TOTAL")) == 4
    assert units(database.delete(ReturnConsumedCapacity="TOTAL")) == 1


def test_a_transaction_of_two_small_puts_costs_four(database: Any) -> None:
    answer = database.transact(
        database.a_put(sized(1024, "1")),
        database.a_put(sized(1024, "2")),
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"] == [
        {"TableName": "Messages", "CapacityUnits": 4.0, "WriteCapacityUnits": 4.0}
    ]


def test_a_check_in_a_transaction_costs_like_a_write(database: Any) -> None:
    database.put(sized(2000))
    answer = database.transact(
        database.a_check("1", "attribute_exists(pk)"), ReturnConsumedCapacity="TOTAL"
    )
    assert answer["ConsumedCapacity"][0]["CapacityUnits"] == 4


def test_a_failed_condition_costs_the_size_of_the_existing_item(database: Any) -> None:
    database.put(sized(3584))
    database.engine.reset_capacity()
    for sk in ("1", "2"):
        with pytest.raises(EngineError, match="ConditionalCheckFailed"):
            database.delete(sk, ConditionExpression="attribute_exists(lost)")
    assert database.engine.capacity()["write_units"] == 4 + 1


def test_a_cancelled_transaction_costs_twice_its_items(database: Any) -> None:
    database.put(sized(2000))
    database.engine.reset_capacity()
    with pytest.raises(EngineError, match="TransactionCanceled"):
        database.transact(
            database.a_check("1", "attribute_exists(lost)"), database.a_put(sized(100, "2"))
        )
    assert database.engine.capacity()["write_units"] == 2 * 2 + 2 * 1


@pytest.mark.parametrize(
    ("size", "eventual", "strong"), [(100, 0.5, 1), (4096, 0.5, 1), (4097, 1, 2)]
)
def test_a_get_costs_a_unit_for_four_kilobytes_and_half_when_eventual(
    database: Any, size: int, eventual: float, strong: float
) -> None:
    database.put(sized(size))
    for consistent, expected in ((False, eventual), (True, strong)):
        answer = database.execute(
            "GetItem",
            Key={"pk": {"S": "p"}, "sk": {"S": "1"}},
            ConsistentRead=consistent,
            ProjectionExpression="pk",
            ReturnConsumedCapacity="TOTAL",
        )
        assert units(answer) == expected


def test_a_get_of_nothing_costs_the_least(database: Any) -> None:
    key = {"pk": {"S": "p"}, "sk": {"S": "1"}}
    assert units(database.execute("GetItem", Key=key, ReturnConsumedCapacity="TOTAL")) == 0.5


def test_a_query_sums_the_sizes_and_rounds_up_once(database: Any) -> None:
    for number in range(10):
        database.put(sized(1024, str(number)))
    query = {"ReturnConsumedCapacity": "TOTAL"}
    assert units(database.query(**query)) == 1.5
    assert units(database.query(ConsistentRead=True, **query)) == 3
    filtered = {"FilterExpression": "attribute_exists(lost)", "Select": "COUNT"}
    assert units(database.query(ConsistentRead=True, **filtered, **query)) == 3
    assert units(database.query(Limit=4, **query)) == 0.5
    assert units(database.query("pk = :p AND sk > :s", values={"s": "9"}, **query)) == 0.5


def test_batches_cost_the_sum_of_their_items(database: Any) -> None:
    engine = database.engine
    puts = [{"PutRequest": {"Item": database.a_put(sized(1500, sk))["Put"]["Item"]}} for sk in "12"]
    written = engine.execute(
        "BatchWriteItem", {"RequestItems": {"Messages": puts}, "ReturnConsumedCapacity": "TOTAL"}
    )
    assert written["ConsumedCapacity"] == [{"TableName": "Messages", "CapacityUnits": 4.0}]
    keys = [{"pk": {"S": "p"}, "sk": {"S": sk}} for sk in "123"]
    read = engine.execute(
        "BatchGetItem",
        {
            "RequestItems": {"Messages": {"Keys": keys, "ConsistentRead": True}},
            "ReturnConsumedCapacity": "INDEXES",
        },
    )
    assert read["ConsumedCapacity"] == [
        {"TableName": "Messages", "CapacityUnits": 3.0, "Table": {"CapacityUnits": 3.0}}
    ]


def test_a_transaction_of_gets_costs_double(database: Any) -> None:
    database.put(sized(5000))
    gets = [
        {"Get": {"TableName": "Messages", "Key": {"pk": {"S": "p"}, "sk": {"S": sk}}}}
        for sk in "12"
    ]
    answer = database.engine.execute(
        "TransactGetItems", {"TransactItems": gets, "ReturnConsumedCapacity": "TOTAL"}
    )
    assert answer["ConsumedCapacity"] == [
        {"TableName": "Messages", "CapacityUnits": 6.0, "ReadCapacityUnits": 6.0}
    ]


def test_capacity_is_counted_by_operation_and_by_table(database: Any) -> None:
    database.put(sized(3584))
    database.get()
    database.execute("PutItem", TableName="Directory", Item={"pk": {"S": "p"}, "sk": {"S": "1"}})
    assert database.engine.capacity() == {
        "write_units": 5.0,
        "read_units": 0.5,
        "by_operation": {
            "PutItem": {"write_units": 5.0, "read_units": 0.0},
            "GetItem": {"write_units": 0.0, "read_units": 0.5},
        },
        "by_table": {
            "Messages": {"write_units": 4.0, "read_units": 0.5},
            "Directory": {"write_units": 1.0, "read_units": 0.0},
        },
    }
    database.engine.reset_capacity()
    assert database.engine.capacity()["write_units"] == 0


def test_nothing_is_said_of_capacity_unless_asked(database: Any) -> None:
    assert "ConsumedCapacity" not in database.put(sized(20))
    assert "ConsumedCapacity" not in database.put(sized(20), ReturnConsumedCapacity="NONE")
