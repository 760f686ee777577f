"""The `filter` object: its legal members, and its refusals."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import Source, compile_filter

GOOD: dict[str, Any] = {
    "tags": ["a"],
    "tag_expression": "a||b",
    "binding_keys": ["a.*"],
    "sql": "a > 5",
}
TAKEN: list[tuple[Source, str]] = [
    ("tags", "tags"),
    ("tags", "tag_expression"),
    ("tags", "sql"),
    ("routing_key", "binding_keys"),
    ("routing_key", "sql"),
    ("queue", "tags"),
    ("queue", "sql"),
]
KINDS: list[Source] = ["tags", "routing_key", "queue"]
REFUSED = [(kind, member) for kind in KINDS for member in GOOD if (kind, member) not in TAKEN]


@pytest.mark.parametrize(("kind", "member"), TAKEN)
def test_a_member_known_to_the_source_is_taken_and_shown(kind: Source, member: str) -> None:
    given = {member: GOOD[member]}
    assert compile_filter(given, kind).normalized() == given


@pytest.mark.parametrize(("kind", "member"), REFUSED)
def test_a_member_of_another_source_is_an_invalid_filter(kind: Source, member: str) -> None:
    with pytest.raises(InvalidFilter, match=member):
        compile_filter({member: GOOD[member]}, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_filter_lets_everything_pass_and_shows_nothing(kind: Source) -> None:
    everything = compile_filter(None, kind)
    assert everything.matches(Filterable((), "", {}))
    assert everything.normalized() is None


def test_no_tags_on_a_routing_topic_are_refused_like_any_tags() -> None:
    with pytest.raises(InvalidFilter):
        compile_filter({"tags": []}, "routing_key")


@pytest.mark.parametrize("filter", [{}, {"tags": ["a"], "tag_expression": "a"}, GOOD])
def test_one_member_is_needed_and_sql_may_be_beside_it(filter: dict[str, object]) -> None:
    with pytest.raises(InvalidFilter, match="must have sql, one of"):
        compile_filter(filter, "tags")


@pytest.mark.parametrize("kind", ["tags", "queue"])
def test_tags_and_sql_must_both_hold(kind: Source) -> None:
    for given in ({"tags": ["a", "b"], "sql": "x = '1'"}, {"sql": "x = '1'", "tags": ["a", "b"]}):
        both = compile_filter(given, kind)
        assert both.matches(Filterable(["b", "c"], "", {"x": "1"}))
        assert not both.matches(Filterable(["c"], "", {"x": "1"}))
        assert not both.matches(Filterable(["b"], "", {"x": "2"}))
        assert not both.matches(Filterable([], "", {"x": "1"}))
        assert both.normalized() == {"tags": ["a", "b"], "sql": "x = '1'"}
        assert both == compile_filter(given, kind)


def test_sql_goes_with_an_expression_of_tags_and_with_binding_keys_too() -> None:
    tags = compile_filter({"tag_expression": "a||b", "sql": "TAGS <> 'c'"}, "tags")
    assert tags.matches(Filterable(["a"], "", {}))
    assert not tags.matches(Filterable(["a", "c"], "", {}))
    keys = compile_filter({"binding_keys": ["a.*"], "sql": "x > 5"}, "routing_key")
    assert keys.matches(Filterable([], "a.b", {"x": "6"}))
    assert not keys.matches(Filterable([], "b.b", {"x": "6"}))
    assert not keys.matches(Filterable([], "a.b", {"x": "5"}))


def test_beside_every_tag_sql_decides_alone() -> None:
    everything: list[dict[str, object]] = [{"tags": []}, {"tag_expression": "*"}]
    for every in everything:
        alone = compile_filter({**every, "sql": "x = '1'"}, "tags")
        assert alone == compile_filter({"sql": "x = '1'"}, "tags")
        assert alone.normalized() == {"sql": "x = '1'"}


@pytest.mark.parametrize(
    ("filter", "detail"),
    [
        ({"tags": ["a"], "sql": "x >"}, "sql: position 4"),
        ({"tags": [5], "sql": "TRUE"}, "tags: tag 1: must be a string"),
        ({"binding_keys": ["a"], "sql": "TRUE"}, "binding_keys is not allowed here"),
    ],
)
def test_each_of_two_members_is_checked(filter: dict[str, object], detail: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_filter(filter, "tags")
    assert detail in refused.value.detail


@pytest.mark.parametrize("filter", [{"tag": ["a"]}, {"Tags": ["a"]}, {"tags": ["a"], "x": 1}])
def test_an_unknown_member_is_refused(filter: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter, match="not a member"):
        compile_filter(filter, "tags")


@pytest.mark.parametrize("filter", ["*", ["a"], 5, True])
def test_a_filter_is_an_object(filter: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        compile_filter(filter, "tags")
    assert refused.value.parameter == "filter"


@pytest.mark.parametrize("sql", [None, 5, ["TRUE"], b"TRUE", True])
def test_sql_is_a_string(sql: object) -> None:
    with pytest.raises(InvalidFilter, match=r"^sql: must be a string$"):
        compile_filter({"sql": sql}, "tags")


def test_a_refusal_names_the_parameter_and_keeps_the_reason() -> None:
    with pytest.raises(InvalidFilter, match="position 5: ") as refused:
        compile_filter({"sql": "a > 'abc'"}, "queue")
    assert refused.value.parameter == "filter"


@pytest.mark.parametrize(
    ("filter", "kind", "detail"),
    [
        (
            {"tags": []},
            "routing_key",
            "tags is not allowed here: use binding_keys or policy or body_policy or sql",
        ),
        ({"binding_keys": []}, "queue", "binding_keys is not allowed here: use tags or sql"),
        (
            {},
            "tags",
            "must have sql, one of binding_keys, body_policy, policy, tag_expression, tags, or "
            "both, not 0 members",
        ),
        ({"binding_keys": "a"}, "routing_key", "binding_keys: must be a list of strings"),
        ({"binding_keys": []}, "routing_key", "binding_keys: must have 1 to 5 keys, not 0"),
        ({"binding_keys": ["a", 5]}, "routing_key", "binding_keys: key 2: must be a string"),
        (
            {"binding_keys": ["\ud800"]},
            "routing_key",
            "binding_keys: key 1: must not have half of a surrogate pair",
        ),
    ],
)
def test_an_invalid_filter_is_told_the_valid_form(
    filter: dict[str, object], kind: Source, detail: str
) -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_filter(filter, kind)
    assert refused.value.detail == detail
    assert refused.value.parameter == "filter"


@pytest.mark.parametrize(
    ("filter", "detail"),
    [
        (5, "filter: must be an object or null"),
        ({"é": 5}, "filter: '\\xe9' is not a member of a filter"),
    ],
)
def test_a_value_of_another_shape_is_told_so(filter: Any, detail: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        compile_filter(filter, "tags")
    assert refused.value.detail == detail


def test_filters_written_alike_are_equal_and_others_are_not() -> None:
    for kind, member in TAKEN:
        given = {member: GOOD[member]}
        assert compile_filter(given, kind) == compile_filter(dict(given), kind)
    assert compile_filter({"sql": "a > 5"}, "tags") != compile_filter({"sql": "a > 6"}, "tags")
    assert compile_filter({"tags": ["a"]}, "tags") != compile_filter({"tags": ["b"]}, "tags")


def test_sql_sees_the_tags_of_a_message_joined_by_double_bars() -> None:
    one = compile_filter({"sql": "TAGS = 'order'"}, "tags")
    several = compile_filter({"sql": "TAGS = 'a||b'"}, "routing_key")
    absent = compile_filter({"sql": "TAGS IS NULL"}, "queue")
    assert one.matches(Filterable(["order"], "", {}))
    assert one.matches(Filterable(["order", "x"], "", {}))
    assert not one.matches(Filterable(["orders", "x"], "", {}))
    assert several.matches(Filterable(["a", "b"], "", {}))
    assert not several.matches(Filterable(["b", "a"], "", {}))
    assert absent.matches(Filterable([], "", {}))
    assert not absent.matches(Filterable(["a"], "", {}))


def test_only_true_delivers() -> None:
    def passes(sql: str, **attributes: str | bytes) -> bool:
        return compile_filter({"sql": sql}, "tags").matches(Filterable((), "", attributes))

    assert passes("a > 5", a="6")
    assert not passes("a > 5", a="5")
    assert not passes("a > 5")
    assert not passes("a > 5", a="abc")
    assert not passes("a", a="true")
    assert not passes("5")
    assert passes("TRUE")


def test_a_binary_attribute_is_absent_to_sql() -> None:
    filter = compile_filter({"sql": "a IS NULL"}, "tags")
    assert filter.matches(Filterable((), "", {"a": b"5"}))
    assert not filter.matches(Filterable((), "", {"a": "5"}))


@pytest.mark.parametrize(
    ("sql", "tags", "holds"),
    [
        ("TAGS = 'a'", ["a", "b"], True),
        ("TAGS = 'b'", ["a", "b"], True),
        ("'b' = TAGS", ["a", "b"], True),
        ("TAGS = 'c'", ["a", "b"], False),
        ("TAGS = 'a'", ["a||b"], False),
        ("TAGS = 'a||b'", ["a||b"], True),
        ("TAGS <> 'a'", ["a", "b"], False),
        ("TAGS <> 'c'", ["a", "b"], True),
        ("NOT (TAGS = 'a')", ["b", "c"], True),
        ("TAGS IN ('c', 'b')", ["a", "b"], True),
        ("TAGS IN ('c', 'd')", ["a", "b"], False),
        ("TAGS IN ('a||b')", ["a", "b"], True),
        ("TAGS NOT IN ('c', 'b')", ["a", "b"], False),
        ("TAGS NOT IN ('c', 'd')", ["a", "b"], True),
        ("TAGS = x", ["a", "x is b"], True),
        ("TAGS = TAGS", ["a", "b"], True),
        ("TAGS = 5", ["4", "5"], True),
        ("TAGS <> 5", ["4", "6"], True),
        ("TAGS = 5", ["a", "5"], True),
        ("TAGS <> 5", ["a", "6"], False),  # an error: text is no number
        ("TAGS = TRUE", ["a", "true"], True),
        ("TAGS > 5", ["6"], True),
        ("TAGS > 5", ["6", "7"], False),
        ("TAGS = 'a'", [], False),
        ("TAGS <> 'a'", [], False),
        ("TAGS NOT IN ('a')", [], False),
        ("TAGS IS NULL", [], True),
        ("TAGS IS NOT NULL", ["a", "b"], True),
        ("+TAGS = 'a'", ["a", "b"], True),
        ("NOT TAGS", ["a", "b"], True),
    ],
)
def test_equality_with_tags_is_membership(sql: str, tags: list[str], holds: bool) -> None:
    assert (
        compile_filter({"sql": sql}, "tags").matches(Filterable(tags, "", {"x": "x is b"})) is holds
    )
