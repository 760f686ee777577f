"""The check of leases, marks and delivery states can fail."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lawful_items import faults

Item = dict[str, Any]


def item(pk: str, sk: str, **values: object) -> Item:
    kinds = {int: "N", str: "S"}
    fields = {name: {kinds[type(value)]: str(value)} for name, value in values.items()}
    return {"pk": {"S": pk}, "sk": {"S": sk}, **fields}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            item("N#1", "a", holder="A", held_until=200),
            item("N#1", "a", holder="B", held_until=300),
            "another worker had",
        ),
        (item("H#1#0", "H", v=3), item("H#1#0", "H", v=3), "next version"),
        (item("S#1", "s", starts=3), item("S#1", "s", starts=2), "starts of a delivery state"),
        (item("S#1", "s", generation=1), item("S#1", "s"), "generation of a delivery state"),
    ],
)
def test_unlawful_changes(before: Item, after: Item, said: str) -> None:
    (told,) = faults(before, after, 100)

    assert said in told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            item("N#1", "a", holder="A", held_until=200),
            item("N#1", "a", holder="A", held_until=300),
        ),
        (
            item("N#1", "a", holder="A", held_until=99),
            item("N#1", "a", holder="B", held_until=300),
        ),
        (item("H#1#0", "H", v=3), item("H#1#0", "H", v=4)),
        (item("H#1#0", "W", v=3), item("H#1#0", "W", v=3)),
        (item("S#1", "s", starts=3), item("S#1", "s", starts=3)),
        (item("S#1", "s", starts=3), None),
    ],
)
def test_lawful_changes(before: Item, after: Item | None) -> None:
    assert list(faults(before, after, 100)) == []
