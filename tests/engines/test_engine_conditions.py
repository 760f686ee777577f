"""Which items a condition holds for."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.engine import EngineError

ITEM: dict[str, Any] = {
    "pk": "p",
    "sk": "1",
    "word": "hello",
    "n": 5,
    "half": 0.5,
    "bytes_": b"\x00\xff",
    "yes": True,
    "nothing": None,
    "tags": {"a", "b"},
    "numbers": {1, 2},
    "list_": [1, "two", {"three": [3]}],
    "map_": {"within_": {"deep": 7}, "blank": ""},
}


def holds(database: Any, condition: str, **more: Any) -> bool:
    database.put(ITEM)
    try:
        database.put(ITEM, ConditionExpression=condition, **more)
    except EngineError as error:
        if error.code != "ConditionalCheckFailedException":
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("word = :v", "hello"),
        ("n = :v", 5),
        ("half = :v", 0.50),
        ("tags = :v", {"b", "a"}),
        ("map_.within_ = :v", {"deep": 7}),
        ("list_[2].three[0] = :v", 3),
        ("word <> :v", "other"),
        ("word <> :v", 5),
        ("gone <> :v", 5),
        ("n < :v", 5.01),
        ("n >= :v", 5),
        ("n <= :v", 5),
        ("word > :v", "hallo"),
        ("bytes_ < :v", b"\x01"),
        ("n BETWEEN :v AND :v", 5),
        ("word IN (n, :v)", "hello"),
        ("begins_with(word, :v)", "hell"),
        ("begins_with(bytes_, :v)", b"\x00"),
        ("contains(word, :v)", "ell"),
        ("contains(tags, :v)", "a"),
        ("contains(numbers, :v)", 2),
        ("contains(list_, :v)", "two"),
        ("attribute_type(yes, :v)", "BOOL"),
        ("size(word) = :v", 5),
        ("size(tags) = :v", 2),
        ("size(list_) = :v", 3),
        ("size(map_.blank) = :v", 0),
        ("NOT n = :v", 6),
        ("n = :v OR n = :v AND word = :v", 5),
        ("NOT (n = :v AND word = :v)", 5),
    ],
)
def test_a_condition_holds(database: Any, condition: str, value: Any) -> None:
    assert holds(database, condition, values={"v": value})


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("word = :v", 5),
        ("gone = :v", 5),
        ("gone = lost AND n = :v", 5),
        ("n < :v", 5),
        ("n > :v", 5),
        ("n < :v", "6"),
        ("word > :v", 1),
        ("gone < :v", 5),
        ("n BETWEEN :v AND :v", 6),
        ("word IN (n, :v)", "hell"),
        ("begins_with(n, :v)", "5"),
        ("begins_with(word, :v)", "ello"),
        ("contains(tags, :v)", 1),
        ("contains(n, :v)", 5),
        ("attribute_type(nothing, :v)", "BOOL"),
        ("size(n) = :v", 1),
        ("size(gone) = :v", 0),
        ("list_[9] = :v", 1),
        ("map_[0] = :v", 1),
        ("(n = :v OR n = :v) AND word = :v", 5),
    ],
)
def test_a_condition_fails(database: Any, condition: str, value: Any) -> None:
    assert not holds(database, condition, values={"v": value})


def test_existence_is_of_paths_at_any_depth(database: Any) -> None:
    assert holds(
        database, "attribute_exists(map_.within_.deep) AND attribute_exists(list_[2].three)"
    )
    assert holds(database, "attribute_not_exists(map_.gone) AND attribute_not_exists(list_[3])")
    assert holds(database, "attribute_exists(nothing)")
    assert not holds(database, "attribute_not_exists(nothing)")


def test_names_may_stand_for_any_attribute_even_with_dots(database: Any) -> None:
    database.put({"pk": "p", "sk": "1", "a.b": 1, "size": 2})
    database.put(
        {"pk": "p", "sk": "1"},
        ConditionExpression="#dotted = :one AND #size = :two",
        names={"dotted": "a.b", "size": "size"},
        values={"one": 1, "two": 2},
    )
    assert database.get() == {"pk": "p", "sk": "1"}


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "The expression can not be empty"),
        ("n =", "Syntax error"),
        ("n == :v", "Syntax error"),
        ("n = :v AND", "Syntax error"),
        ("_n = :v", "Syntax error"),
        ("unknown(n, :v)", "Invalid function name; function: unknown"),
        ("size(n)", "not allowed to be used this way"),
        ("attribute_exists(:v)", "requires a document path"),
        ("attribute_exists(n, :v)", "Incorrect number of operands"),
        ("contains(n)", "Incorrect number of operands"),
        ("begins_with(n, :v)", "Incorrect operand type"),
        ("size(:v) = n", "Incorrect operand type"),
        ("yes < :true", "Incorrect operand type"),
        ("n BETWEEN :v AND :s", "requires same data type"),
        ("n BETWEEN :v AND :zero", "requires upper bound to be greater"),
        ("attribute_type(n, :s)", "Invalid attribute type name"),
        ("n = n", "must be distinct"),
        ("((n = :v))", "redundant parentheses"),
        ("name = :v", "reserved keyword: name"),
        ("#gone = :v", "attribute name: #gone"),
        ("n = :gone", "attribute value: :gone"),
    ],
)
def test_a_malformed_condition_is_refused(database: Any, condition: str, message: str) -> None:
    given = {"v": 5, "s": "text", "true": True, "zero": 0}
    used = {name: value for name, value in given.items() if f":{name}" in condition}
    with pytest.raises(EngineError, match="ValidationException") as caught:
        database.put(ITEM, ConditionExpression=condition, **({"values": used} if used else {}))
    assert message in caught.value.message
    assert database.get() is None


def test_every_reserved_word_of_moto_is_reserved_here() -> None:
    from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

    from cirrusmq_local.engine.reserved import RESERVED_WORDS

    assert frozenset(ReservedKeywords.get_reserved_keywords()) == RESERVED_WORDS


def test_more_operators_than_dynamodb_allows_are_refused(database: Any) -> None:
    condition = " OR ".join(["a = b"] * 151)
    with pytest.raises(EngineError, match="too many operators; operator count: 301"):
        database.put(ITEM, ConditionExpression=condition)
