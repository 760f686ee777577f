"""The size of an item by DynamoDB's rules, value by value."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq.storage.sizes import item_bytes, value_bytes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"S": ""}, 0),
        ({"S": "é"}, 2),
        ({"B": b"\xff\0x"}, 3),
        ({"SS": ["é", "ab"]}, 4),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"NULL": True}]}, 3 + (1 + 2) + (1 + 1)),
        ({"M": {}}, 3),
        ({"M": {"ab": {"S": "x"}, "c": {"L": []}}}, 3 + (1 + 2 + 1) + (1 + 1 + 3)),
    ],
)
def test_a_value_has_its_documented_size(value: dict[str, Any], expected: int) -> None:
    assert value_bytes(value) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("0", 2),
        ("7", 2),
        ("42", 2),
        ("423", 3),
        ("-42", 3),
        ("-423", 4),
        ("1200", 2),
        ("0.0042", 2),
        ("1.5", 2),
        ("-1.25", 4),
        ("1795000000007", 8),
        ("1" * 38, 20),
    ],
)
def test_a_number_takes_half_a_byte_a_significant_digit_one_more_and_one_for_minus(
    number: str, expected: int
) -> None:
    assert value_bytes({"N": number}) == expected


def test_an_item_is_its_names_and_its_values() -> None:
    assert item_bytes({"é": {"S": "ab"}, "c": {"NULL": True}}) == (2 + 2) + (1 + 1)
    assert item_bytes({}) == 0


def test_a_kind_without_a_known_size_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^no size is known for an attribute of type BS$"):
        value_bytes({"BS": [b"x"]})
