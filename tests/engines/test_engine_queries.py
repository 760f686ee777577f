"""Queries and scans: their items, the order, and the pages."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.engine import Engine, EngineError, TableSpec


def fill(database: Any, *sort_keys: str, pk: str = "p") -> None:
    for sort_key in sort_keys:
        database.put({"pk": pk, "sk": sort_key, "n": len(sort_key)})


@pytest.mark.parametrize(
    ("condition", "values", "found"),
    [
        ("pk = :p", {}, ["a", "ab", "b", "ba", "c"]),
        ("pk = :p AND sk = :s", {"s": "ab"}, ["ab"]),
        ("pk = :p AND sk < :s", {"s": "b"}, ["a", "ab"]),
        ("pk = :p AND sk <= :s", {"s": "b"}, ["a", "ab", "b"]),
        ("pk = :p AND sk > :s", {"s": "b"}, ["ba", "c"]),
        ("pk = :p AND sk >= :s", {"s": "b"}, ["b", "ba", "c"]),
        ("pk = :p AND sk BETWEEN :s AND :t", {"s": "ab", "t": "ba"}, ["ab", "b", "ba"]),
        ("sk BETWEEN :s AND :t AND pk = :p", {"s": "d", "t": "e"}, []),
        ("(pk = :p) AND (begins_with(sk, :s))", {"s": "a"}, ["a", "ab"]),
    ],
)
def test_a_key_condition_finds_a_range_in_order(
    stored: Any, condition: str, values: dict[str, str], found: list[str]
) -> None:
    fill(stored, "b", "a", "ba", "c", "ab")
    fill(stored, "a", "z", pk="other")
    assert stored.sort_keys(condition, values=values) == found
    assert stored.sort_keys(condition, values=values, ScanIndexForward=False) == found[::-1]


def test_text_is_ordered_by_its_bytes_in_utf8(stored: Any) -> None:
    keys = ["Z", "a", "é", "\ud7ff", "\ue000", "\uffff", "\U0001f600"]
    fill(stored, *reversed(keys))
    assert stored.sort_keys() == keys
    assert stored.sort_keys("pk = :p AND begins_with(sk, :s)", values={"s": "\ud7ff"}) == ["\ud7ff"]
    assert stored.sort_keys("pk = :p AND begins_with(sk, :s)", values={"s": "\U0010ffff"}) == []


def test_numbers_are_ordered_by_value_and_binary_by_bytes(clock: Any) -> None:
    specs = [
        TableSpec("Numbers", sort_key_type="N"),
        TableSpec("Binaries", sort_key_type="B"),
    ]
    engine = Engine(None, specs, now_ms=clock)
    numbers = ["-1E+20", "-10", "-1.5", "-1", "-0.01", "0", "0.001", "1", "1.25", "9", "10", "1E+9"]
    for number in reversed(numbers):
        item = {"pk": {"S": "p"}, "sk": {"N": number}, "as_written": {"S": number}}
        engine.execute("PutItem", {"TableName": "Numbers", "Item": item})
    binaries = [b"\x00", b"\x00\x01", b"a", b"\xff", b"\xff\xff"]
    for binary in reversed(binaries):
        keys: dict[str, Any] = {"pk": {"S": "p"}, "sk": {"B": binary}}
        engine.execute("PutItem", {"TableName": "Binaries", "Item": keys})

    def query(table: str, condition: str = "pk = :p", **values: Any) -> list[dict[str, Any]]:
        request = {
            "TableName": table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": {":p": {"S": "p"}, **values},
        }
        items: list[dict[str, Any]] = engine.execute("Query", request)["Items"]
        return items

    assert [item["as_written"]["S"] for item in query("Numbers")] == numbers
    above = query("Numbers", "pk = :p AND sk > :n", **{":n": {"N": "1.250"}})
    assert [item["sk"]["N"] for item in above] == ["9", "10", "1000000000"]
    assert [item["sk"]["B"] for item in query("Binaries")] == binaries
    beginning = query("Binaries", "pk = :p AND begins_with(sk, :b)", **{":b": {"B": b"\xff"}})
    assert [item["sk"]["B"] for item in beginning] == [b"\xff", b"\xff\xff"]
    engine.close()


def test_a_table_may_have_no_sort_key(clock: Any) -> None:
    engine = Engine(None, [TableSpec("Usage", "id", None)], now_ms=clock)
    engine.execute("PutItem", {"TableName": "Usage", "Item": {"id": {"S": "a"}}})
    found = engine.execute("GetItem", {"TableName": "Usage", "Key": {"id": {"S": "a"}}})
    assert found["Item"] == {"id": {"S": "a"}}
    engine.close()


@pytest.mark.parametrize("forward", [True, False])
def test_pages_follow_each_other_without_gap_or_repetition(stored: Any, forward: bool) -> None:
    keys = [f"{number:03d}" for number in range(25)]
    fill(stored, *keys)
    found: list[str] = []
    start: dict[str, Any] = {}
    pages = 0
    while True:
        page = stored.query(Limit=10, ScanIndexForward=forward, **start)
        found += [item["sk"]["S"] for item in page["Items"]]
        pages += 1
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert found == (keys if forward else keys[::-1])
    assert pages == 3


def test_a_full_last_page_leads_to_an_empty_one(database: Any) -> None:
    fill(database, "a", "b")
    page = database.query(Limit=2)
    assert page["LastEvaluatedKey"] == {"pk": {"S": "p"}, "sk": {"S": "b"}}
    rest = database.query(Limit=2, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert rest["Items"] == []
    assert "LastEvaluatedKey" not in rest


def test_a_page_ends_at_a_megabyte(database: Any) -> None:
    for number in range(5):
        database.put({"pk": "p", "sk": str(number), "v": "x" * 300_000})
    page = database.query(ReturnConsumedCapacity="TOTAL")
    assert page["Count"] == 3
    assert page["LastEvaluatedKey"]["sk"] == {"S": "2"}
    # 3 x 300,007 bytes are 219.7 units of 4 KB, rounded up and halved.
    assert page["ConsumedCapacity"]["CapacityUnits"] == 110
    rest = database.query(ExclusiveStartKey=page["LastEvaluatedKey"])
    assert rest["Count"] == 2


@pytest.mark.parametrize(
    ("condition", "more", "message"),
    [
        ("sk = :p", {}, "Query condition missed key schema element: pk"),
        ("pk > :p", {}, "Query key condition not supported"),
        ("pk = :p AND n = :p", {}, "Query condition missed key schema element: sk"),
        ("pk = :p AND pk = :p", {}, "one condition per key"),
        ("pk = :p OR sk = :p", {}, "Invalid operator used in KeyConditionExpression: OR"),
        ("pk = :p AND sk <> :p", {}, "Invalid operator used in KeyConditionExpression: <>"),
        ("pk = :p AND contains(sk, :p)", {}, "KeyConditionExpression: contains"),
        ("pk = :p AND sk = :n", {"values": {"n": 1}}, "does not match schema type"),
        ("pk = :p AND sk = :n", {"values": {"n": ""}}, "empty string value. Key: sk"),
        ("pk = :p", {"IndexName": "ByAge"}, "does not have the specified index: ByAge"),
        ("pk = :p", {"Limit": 0}, "greater than or equal to 1"),
        ("pk = :p", {"Select": "SPECIFIC_ATTRIBUTES"}, "SPECIFIC_ATTRIBUTES"),
        ("pk = :p", {"Select": "ALL_PROJECTED_ATTRIBUTES"}, "ALL_PROJECTED_ATTRIBUTES"),
        (
            "pk = :p",
            {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "pk"},
            "when choosing to get ALL_ATTRIBUTES",
        ),
        ("pk = :p", {"FilterExpression": "sk = :p"}, "Primary key attribute: sk"),
        ("pk = :p", {"ExclusiveStartKey": {"pk": {"S": "p"}}}, "starting key is invalid"),
        (
            "pk = :p",
            {"ExclusiveStartKey": {"pk": {"S": "q"}, "sk": {"S": "a"}}},
            "starting key is invalid",
        ),
    ],
)
def test_an_impossible_query_is_refused(
    database: Any, condition: str, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(EngineError, match="ValidationException") as caught:
        database.query(condition, **more)
    assert message in caught.value.message


def test_a_scan_finds_every_item_page_by_page(stored: Any) -> None:
    for pk in "xyz":
        fill(stored, "1", "2", "3", pk=pk)
    found = []
    start: dict[str, Any] = {}
    while True:
        page = stored.execute("Scan", Limit=4, **start)
        found += [(item["pk"]["S"], item["sk"]["S"]) for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert sorted(found) == [(pk, sk) for pk in "xyz" for sk in "123"]


def test_a_scan_may_filter_by_key(database: Any) -> None:
    fill(database, "1", "2")
    page = database.execute(
        "Scan", FilterExpression="sk = :s", ExpressionAttributeValues={":s": {"S": "2"}}
    )
    assert (page["Count"], page["ScannedCount"]) == (1, 2)
