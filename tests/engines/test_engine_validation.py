"""Requests that DynamoDB refuses, and values as it keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.engine import EngineError

KEY = {"pk": {"S": "p"}, "sk": {"S": "1"}}


def refused(database: Any, operation: str, **request: Any) -> str:
    with pytest.raises(EngineError) as caught:
        database.execute(operation, **request)
    assert caught.value.code == "ValidationException"
    assert caught.value.status == 400
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("0", "0"),
        ("-0.00", "0"),
        ("007", "7"),
        ("+1.50", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("-12.5E-3", "-0.0125"),
        ("9.9999999999999999999999999999999999999E+125", "9" * 38 + "0" * 88),
        ("1E-130", "0." + "0" * 129 + "1"),
    ],
)
def test_a_number_is_kept_in_its_shortest_text(database: Any, text: str, kept: str) -> None:
    database.execute("PutItem", Item={**KEY, "n": {"N": text}, "set": {"NS": [text]}})
    item = database.execute("GetItem", Key=KEY)["Item"]
    assert item["n"] == {"N": kept}
    assert item["set"] == {"NS": [kept]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"N": ""}, "cannot be converted to a numeric value"),
        ({"N": "1,5"}, "cannot be converted to a numeric value: 1,5"),
        ({"N": "NaN"}, "cannot be converted to a numeric value: NaN"),
        ({"N": "1 "}, "cannot be converted to a numeric value"),
        ({"N": "\u0661"}, "cannot be converted to a numeric value"),
        ({"N": "1" * 39}, "more than 38 significant digits"),
        ({"N": "1e126"}, "Number overflow"),
        ({"N": "1e-131"}, "Number underflow"),
        ({"N": "1e" + "9" * 1000}, "cannot be converted to a numeric value"),
        ({"SS": []}, "An string set  may not be empty"),
        ({"NS": []}, "An number set  may not be empty"),
        ({"BS": []}, "Binary sets should not be empty"),
        ({"SS": ["a", "a"]}, "Input collection [a, a] contains duplicates"),
        ({"NS": ["1", "1.0"]}, "contains duplicates"),
        ({"NULL": False}, "Null attribute value types must have the value of true"),
        ({}, "Supplied AttributeValue is empty"),
        ({"X": "1"}, "Supplied AttributeValue is empty"),
        ({"S": "a", "N": "1"}, "more than one datatypes set"),
    ],
)
def test_an_impossible_value_is_refused_at_any_depth(
    database: Any, value: dict[str, Any], message: str
) -> None:
    for item in ({"v": value}, {"v": {"L": [{"M": {"v": value}}]}}):
        assert message in refused(database, "PutItem", Item={**KEY, **item})


def test_a_value_of_the_wrong_kind_cannot_be_read(database: Any) -> None:
    wrong: list[Any] = [{"N": 1}, {"S": 1}, {"B": "text"}, {"L": {}}, {"BOOL": "true"}]
    for value in wrong:
        with pytest.raises(EngineError, match="SerializationException"):
            database.execute("PutItem", Item={**KEY, "v": value})


def test_nesting_ends_at_32_levels(database: Any) -> None:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(32):
        value = {"L": [value]}
    database.execute("PutItem", Item={**KEY, "v": value})
    assert "Nesting Levels" in refused(database, "PutItem", Item={**KEY, "v": {"L": [value]}})


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"pk": {"S": "p"}}, "Missing the key sk in the item"),
        ({"pk": {"S": "p"}, "sk": {"N": "1"}}, "Type mismatch for key sk expected: S actual: N"),
        ({"pk": {"S": ""}, "sk": {"S": "1"}}, "cannot contain an empty string value. Key: pk"),
        ({"pk": {"S": "p"}, "sk": {"S": ""}}, "cannot contain an empty string value. Key: sk"),
        ({"pk": {"S": "p" * 2049}, "sk": {"S": "1"}}, "Size of hashkey has exceeded"),
        ({"pk": {"S": "p"}, "sk": {"S": "é" * 513}}, "size of all range keys has exceeded"),
    ],
)
def test_an_item_needs_its_key(database: Any, item: dict[str, Any], message: str) -> None:
    assert message in refused(database, "PutItem", Item=item)


@pytest.mark.parametrize(
    "key",
    [
        {"pk": {"S": "p"}},
        {"pk": {"S": "p"}, "sk": {"N": "1"}},
        {"pk": {"S": "p"}, "sk": {"S": "1"}, "more": {"S": "x"}},
        {"pk": {"S": "p"}, "other": {"S": "x"}},
    ],
)
@pytest.mark.parametrize("operation", ["GetItem", "UpdateItem", "DeleteItem"])
def test_a_key_must_match_the_schema(database: Any, operation: str, key: dict[str, Any]) -> None:
    assert "key element does not match the schema" in refused(database, operation, Key=key)


def test_an_item_ends_at_400_kilobytes(database: Any) -> None:
    # "pk" + "p" + "sk" + "1" + "v" are 7 bytes.
    largest = {**KEY, "v": {"S": "x" * (400 * 1024 - 7)}}
    database.execute("PutItem", Item=largest)
    larger = {**KEY, "v": {"S": "x" * (400 * 1024 - 6)}}
    assert "Item size has exceeded" in refused(database, "PutItem", Item=larger)
    growth = refused(
        database,
        "UpdateItem",
        Key=KEY,
        UpdateExpression="SET w = :w",
        ExpressionAttributeValues={":w": {"S": ""}},
    )
    assert "Item size to update has exceeded" in growth


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"ExpressionAttributeNames": {"#a": "a"}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            {"ExpressionAttributeValues": {":a": {"S": "a"}}},
            "ExpressionAttributeValues can only be specified when using expressions",
        ),
        (
            {"ConditionExpression": "a = b", "ExpressionAttributeValues": {}},
            "ExpressionAttributeValues must not be empty",
        ),
        (
            {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"#a": "a"}},
            "ExpressionAttributeNames unused in expressions: keys: {#a}",
        ),
        (
            {"ConditionExpression": "a = b", "ExpressionAttributeValues": {":a": {"S": "a"}}},
            "ExpressionAttributeValues unused in expressions: keys: {:a}",
        ),
        (
            {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"a": "a"}},
            'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
        ),
        ({"ReturnValues": "ALL_NEW"}, "ReturnValues can only be ALL_OLD or NONE"),
        ({"ReturnValues": "EVERYTHING"}, "Member must satisfy enum value set"),
        ({"ReturnConsumedCapacity": "SOME"}, "Member must satisfy enum value set"),
        ({"Item": None}, "Value null at 'item'"),
    ],
)
def test_a_request_must_fit_together(database: Any, request_: dict[str, Any], message: str) -> None:
    assert message in refused(database, "PutItem", **{"Item": KEY, **request_})


def test_an_unknown_table_is_not_found(database: Any) -> None:
    with pytest.raises(EngineError) as caught:
        database.execute("GetItem", TableName="Elsewhere", Key=KEY)
    assert caught.value.code == "ResourceNotFoundException"
    assert "Elsewhere" in caught.value.message


@pytest.mark.parametrize(
    ("operation", "request_", "named"),
    [
        ("CreateTable", {}, "operation CreateTable"),
        ("ListTables", {}, "operation ListTables"),
        ("GetItem", {"Key": KEY, "AttributesToGet": ["a"]}, "AttributesToGet of GetItem"),
        ("PutItem", {"Item": KEY, "Expected": {}}, "Expected of PutItem"),
        ("UpdateItem", {"Key": KEY, "AttributeUpdates": {}}, "AttributeUpdates of UpdateItem"),
        ("Query", {"KeyConditions": {}}, "KeyConditions of Query"),
        ("Scan", {"Segment": 0, "TotalSegments": 2}, "Segment of Scan"),
        ("PutItem", {"Item": KEY, "Invented": 1}, "Invented of PutItem"),
    ],
)
def test_the_engine_refuses_unsupported_calls_by_name(
    database: Any, operation: str, request_: dict[str, Any], named: str
) -> None:
    with pytest.raises(EngineError) as caught:
        database.execute(operation, **request_)
    assert caught.value.code == "NotSupportedByEmbeddedEngine"
    assert named in caught.value.message


def test_a_read_shows_only_its_named_paths(database: Any) -> None:
    database.put({"pk": "p", "sk": "1", "a": {"b": 1, "c": 2}, "l": [1, 2, 3], "d": 4})
    found = database.get(ProjectionExpression="a.c, l[2], l[0], lost, pk")
    assert found == {"pk": "p", "a": {"c": 2}, "l": [1, 3]}
    assert "Two document paths overlap" in refused(
        database, "GetItem", Key=KEY, ProjectionExpression="a, a.b"
    )


def test_a_description_is_true(database: Any) -> None:
    database.put({"pk": "p", "sk": "1"})
    table = database.execute("DescribeTable")["Table"]
    assert table["TableStatus"] == "ACTIVE"
    assert table["ItemCount"] == 1
    assert table["TableSizeBytes"] == 6
    assert table["StreamSpecification"]["StreamEnabled"] is True
    assert [key["KeyType"] for key in table["KeySchema"]] == ["HASH", "RANGE"]
