"""Updates of an item, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.engine import EngineError

KEY = {"pk": "p", "sk": "1"}
ITEM: dict[str, Any] = {
    **KEY,
    "n": 5,
    "word": "hello",
    "tags": {"a", "b"},
    "places": [10, 20, 30, 40],
    "nest": {"deep": {"n": 1}, "places": [[1, 2], [3, 4]]},
}


@pytest.mark.parametrize(
    ("expression", "values", "changed"),
    [
        ("SET n = :v", {"v": 6}, {"n": 6}),
        ("SET n = n + :v", {"v": 0.5}, {"n": 5.5}),
        ("SET n = :v - n", {"v": 1}, {"n": -4}),
        ("SET n = :v, fresh = n", {"v": 6}, {"n": 6, "fresh": 5}),
        ("SET n = if_not_exists(n, :v)", {"v": 9}, {}),
        ("SET fresh = if_not_exists(fresh, :v) + :v", {"v": 9}, {"fresh": 18}),
        ("SET fresh = if_not_exists(fresh, if_not_exists(lost, n))", {}, {"fresh": 5}),
        ("SET places = list_append(places, :v)", {"v": [1]}, {"places": [10, 20, 30, 40, 1]}),
        ("SET places = list_append(:v, places)", {"v": [1]}, {"places": [1, 10, 20, 30, 40]}),
        (
            "SET fresh = list_append(if_not_exists(fresh, :none), :v)",
            {"v": [1], "none": []},
            {"fresh": [1]},
        ),
        ("SET places[1] = :v", {"v": "x"}, {"places": [10, "x", 30, 40]}),
        (
            "SET places[9] = :b, places[7] = :a",
            {"a": 7, "b": 9},
            {"places": [10, 20, 30, 40, 7, 9]},
        ),
        ("REMOVE places[0], places[2], places[9]", {}, {"places": [20, 40]}),
        (
            "SET places[3] = :v REMOVE places[0]",
            {"v": 0},
            {"places": [20, 30, 0]},
        ),
        (
            "REMOVE nest.places[0], nest.places[1][0]",
            {},
            {"nest": {"deep": {"n": 1}, "places": [[4]]}},
        ),
        (
            "SET nest.deep.n = nest.deep.n + :v, nest.more = :v",
            {"v": 1},
            {"nest": {"deep": {"n": 2}, "more": 1, "places": [[1, 2], [3, 4]]}},
        ),
        ("REMOVE word, lost", {}, {"word": None}),
        ("ADD n :v", {"v": -5}, {"n": 0}),
        ("ADD fresh :v", {"v": 3}, {"fresh": 3}),
        ("ADD tags :v", {"v": {"b", "c"}}, {"tags": {"a", "b", "c"}}),
        ("DELETE tags :v", {"v": {"b", "z"}}, {"tags": {"a"}}),
        ("DELETE tags :v", {"v": {"a", "b"}}, {"tags": None}),
        ("DELETE lost :v", {"v": {"a"}}, {}),
        ("set n = :v remove word add m :v", {"v": 1}, {"n": 1, "word": None, "m": 1}),
        ("SET n = places[0], places[0] = n", {}, {"n": 10, "places": [5, 20, 30, 40]}),
    ],
)
def test_an_update_changes_just_its_own_paths(
    database: Any, expression: str, values: dict[str, Any], changed: dict[str, Any]
) -> None:
    database.put(ITEM)
    returned = database.update(expression, **({"values": values} if values else {}))
    assert returned == {}
    expected = {**ITEM, **changed}
    assert database.get() == {n: v for n, v in expected.items() if changed.get(n, v) is not None}


@pytest.mark.parametrize(
    ("expression", "values", "message"),
    [
        ("SET n = lost", {}, "refers to an attribute that does not exist"),
        ("SET n = lost + :v", {"v": 1}, "refers to an attribute that does not exist"),
        ("SET n = word + :v", {"v": 1}, "incorrect data type"),
        ("SET n = n + :v", {"v": "1"}, "Incorrect operand type"),
        ("SET n = list_append(n, :v)", {"v": [1]}, "incorrect data type"),
        ("SET n = list_append(places, :v)", {"v": 1}, "Incorrect operand type"),
        ("SET lost.deep = :v", {"v": 1}, "document path provided in the update expression"),
        ("SET word.deep = :v", {"v": 1}, "document path provided in the update expression"),
        ("SET nest[0] = :v", {"v": 1}, "document path provided in the update expression"),
        ("REMOVE lost.deep", {}, "document path provided in the update expression"),
        ("ADD word :v", {"v": 1}, "incorrect data type"),
        ("ADD tags :v", {"v": {1}}, "incorrect data type"),
        ("ADD n :v", {"v": "1"}, "Incorrect operand type"),
        ("DELETE n :v", {"v": {1}}, "incorrect data type"),
        ("DELETE tags :v", {"v": 1}, "Incorrect operand type"),
        ("SET n = :v, n = :v", {"v": 1}, "Two document paths overlap"),
        ("SET nest = :v REMOVE nest.deep", {"v": 1}, "Two document paths overlap"),
        ("SET nest[0] = :v REMOVE nest.deep", {"v": 1}, "Two document paths conflict"),
        ("SET n = :v SET word = :v", {"v": 1}, '"SET" section can only be used once'),
        (
            "SET sk = :v",
            {"v": "2"},
            "Cannot update attribute sk. This attribute is part of the key",
        ),
        ("REMOVE pk", {}, "Cannot update attribute pk. This attribute is part of the key"),
        ("SET n = n + n + :v", {"v": 1}, "Syntax error"),
        ("SET n = size(word)", {}, "not allowed in an update expression"),
        ("SET n = twice(n)", {}, "Invalid function name; function: twice"),
        ("SET n = if_not_exists(:v, n)", {"v": 1}, "requires a document path"),
        ("ADD n n", {}, "Syntax error"),
        ("n = :v", {"v": 1}, "Syntax error"),
        ("SET n = :v", {"v": 10**38 - 1 + 10**38}, "more than 38 significant digits"),
    ],
)
def test_an_impossible_update_changes_nothing(
    database: Any, expression: str, values: dict[str, Any], message: str
) -> None:
    database.put(ITEM)
    with pytest.raises(EngineError, match="ValidationException") as caught:
        database.update(expression, **({"values": values} if values else {}))
    assert message in caught.value.message
    assert database.get() == ITEM


def test_an_update_of_nothing_makes_an_item(database: Any) -> None:
    database.update("ADD n :one", values={"one": 1})
    assert database.get() == {**KEY, "n": 1}


def test_an_update_without_an_expression_makes_an_item_of_its_key(database: Any) -> None:
    database.execute("UpdateItem", Key={"pk": {"S": "p"}, "sk": {"S": "1"}})
    assert database.get() == KEY


@pytest.mark.parametrize(
    ("wanted", "returned"),
    [
        ("NONE", {}),
        ("ALL_OLD", {**KEY, "n": 1, "nest": {"a": 1, "b": 2}, "word": "x"}),
        ("ALL_NEW", {**KEY, "n": 2, "nest": {"a": 1, "b": 3}}),
        ("UPDATED_OLD", {"n": 1, "nest": {"b": 2}, "word": "x"}),
        ("UPDATED_NEW", {"n": 2, "nest": {"b": 3}}),
    ],
)
def test_an_update_returns_the_wanted_values(
    database: Any, wanted: str, returned: dict[str, Any]
) -> None:
    database.put({**KEY, "n": 1, "nest": {"a": 1, "b": 2}, "word": "x"})
    found = database.update(
        "SET n = n + :one, nest.b = :three REMOVE word",
        values={"one": 1, "three": 3},
        ReturnValues=wanted,
    )
    assert found == returned


def test_the_old_values_of_a_new_item_are_none(database: Any) -> None:
    assert database.update("SET n = :v", values={"v": 1}, ReturnValues="ALL_OLD") == {}
    assert database.update("SET m = :v", values={"v": 1}, ReturnValues="UPDATED_OLD") == {}


def test_sums_are_exact_to_38_digits(database: Any) -> None:
    large = "12345678901234567890123456789012345678"
    database.execute("PutItem", Item={"pk": {"S": "p"}, "sk": {"S": "1"}, "n": {"N": large}})
    answer = database.execute(
        "UpdateItem",
        Key={"pk": {"S": "p"}, "sk": {"S": "1"}},
        UpdateExpression="SET n = n - :v",
        ExpressionAttributeValues={":v": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    assert answer["Attributes"] == {"n": {"N": "12345678901234567890123456789012345677"}}
