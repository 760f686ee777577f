"""Why a filter holds a message back: a clause for each kind, none where the message passes."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq.filters.explanation import why_not
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import Source, compile_filter

NO_NUMBER = "sql compares a text that is no number with a number"
PAID = {"tags": ["paid", "new"]}
CASES: list[tuple[Source, dict[str, Any] | None, dict[str, Any], str | None]] = [
    ("tags", None, {}, None),
    ("tags", {"tags": []}, {}, None),
    ("tags", PAID, {"tags": ["old", "new"]}, None),
    ("tags", PAID, {"tags": ["old"]}, "it has none of the filter's tags"),
    ("tags", {"tag_expression": "paid||new"}, {}, "it has no tags"),
    ("routing_key", {"binding_keys": ["a.*"]}, {"key": "a.b"}, None),
    (
        "routing_key",
        {"binding_keys": ["a.*"]},
        {"key": "b"},
        "no binding key matches its routing key",
    ),
    ("routing_key", {"binding_keys": ["a.*"]}, {}, "it has no routing key"),
    ("tags", {"sql": "n > 1"}, {"attributes": {"n": "2"}}, None),
    ("tags", {"sql": "n > 1"}, {"attributes": {"n": "1"}}, "sql is FALSE"),
    ("tags", {"sql": "n > 1"}, {}, "sql is NULL: it has no text for n"),
    ("tags", {"sql": "n > 1"}, {"attributes": {"n": b"2"}}, "sql is NULL: it has no text for n"),
    ("tags", {"sql": "n > 1"}, {"attributes": {"n": "two"}}, NO_NUMBER),
    ("tags", {"sql": "TAGS = 'a'"}, {}, "sql is NULL: it has no text for tags"),
    ("tags", {"sql": "TAGS = 'a'"}, {"tags": ["b"]}, "sql is FALSE"),
    (
        "tags",
        {"sql": "a = 'x' AND b = 'x' AND c = 'x' AND d = 'x'"},
        {},
        "sql is NULL: it has no text for a, b, c, …",
    ),
    ("tags", PAID | {"sql": "n > 1"}, {"attributes": {"n": "2"}}, "it has no tags"),
    ("tags", PAID | {"sql": "n > 1"}, {"tags": ["new"]}, "sql is NULL: it has no text for n"),
    ("tags", PAID | {"sql": "n > 1"}, {"tags": ["new"], "attributes": {"n": "2"}}, None),
    ("tags", PAID | {"sql": "TAGS = 'a'"}, {"tags": ["new"]}, "sql is FALSE"),
    (
        "routing_key",
        {"binding_keys": ["a.*"], "sql": "n > 1"},
        {"key": "b", "attributes": {"n": "2"}},
        "no binding key matches its routing key",
    ),
    (
        "tags",
        {"policy": {"a": ["x"], "b": ["x"]}, "sql": "n > 1"},
        {"attributes": {"a": "x"}},
        "policy: no condition holds of b",
    ),
]


@pytest.mark.parametrize(("kind", "filter", "message", "clause"), CASES)
def test_a_filter_says_why_not(
    kind: Source, filter: dict[str, Any] | None, message: dict[str, Any], clause: str | None
) -> None:
    compiled = compile_filter(filter, kind)
    parts = message.get("tags", ()), message.get("key", ""), message.get("attributes", {})
    assert why_not(compiled, Filterable(*parts)) == clause
    assert compiled.matches(Filterable(*parts)) == (clause is None)
