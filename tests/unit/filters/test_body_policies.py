"""Filter policies over bodies, and over attributes with types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cirrusmq.base.errors import InvalidFilter
from cirrusmq.base.sdk_attributes import Typed, write
from cirrusmq.filters.explanation import why_not
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import Everything, compile_filter, reads_body


def passes(policy: Any, body: str | bytes) -> bool:
    filter = compile_filter({"body_policy": policy}, "tags")
    seen: Any = ((), "", {}, body)
    assert (why_not(filter, Filterable(*seen)) is None) == filter.matches(Filterable(*seen))
    return filter.matches(Filterable(*seen))


def refused(policy: Any) -> str:
    with pytest.raises(InvalidFilter) as error:
        compile_filter({"body_policy": policy}, "tags")
    return error.value.detail


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        ("eu", ["eu", ["us", "eu"], [["eu"]]], ["EU", 1, None, True, {"eu": "eu"}, [], ["us"]]),
        (5, [5, 5.0, [1, 5]], ["5", 5.1, True, None, []]),
        (0, [0, -0.0, 0e5], [False, "", None]),
        (True, [True, [False, True]], ["true", 1, False, None]),
        (None, [None, [1, None]], ["", 0, False, "null", {}]),
        ({"prefix": "a"}, ["ab"], [1, None, "ba", {"a": "ab"}]),
        ({"equals-ignore-case": "a"}, ["A"], ["b", 1]),
        ({"numeric": [">=", 5, "<", 10]}, [5, 9.99, [1, 6]], [10, "6", None]),
        ({"cidr": "10.0.0.0/8"}, ["10.1.1.1"], ["11.1.1.1", 10, None]),
        ({"anything-but": ["a", 5, None]}, ["b", 6, True, ["a", "b"]], ["a", 5, None, {}, []]),
        ({"anything-but": {"prefix": "a"}}, ["b", 5], ["ab"]),
        ({"exists": True}, ["", 0, None, False, [0]], [{}, [], [[]]]),
        ({"exists": False}, [{}, [], {"x": 1}], ["", None]),
    ],
)
def test_a_condition_holds_of_these_values_alone(
    condition: Any, good: list[Any], bad: list[Any]
) -> None:
    for values, expected in ((good, True), (bad, False)):
        for value in values:
            assert passes({"x": [condition]}, json.dumps({"x": value})) is expected, value
            deep = json.dumps({"a": {"b": {"x": value}}})
            assert passes({"a": {"b": {"x": [condition]}}}, deep) is expected, value


def test_an_absent_member_is_absent_at_every_depth() -> None:
    absent, there = {"a": {"b": [{"exists": False}]}}, {"a": {"b": [{"exists": True}]}}
    for body in ("{}", '{"a": 1}', '{"a": {}}', '{"a": []}', '{"a": [1, {}]}', '{"a": null}'):
        assert passes(absent, body)
        assert not passes(there, body)
    assert passes(there, '{"a": [{}, {"b": 0}]}')


@pytest.mark.parametrize(
    "body",
    [
        {"a.b.c": "x"},
        {"a": {"b.c": "x"}},
        {"a.b": {"c": "x"}},
        {"a": {"b": {"c": "x"}}},
        {"a": [1, {"b": [[{"c": ["y", ["x"]]}]]}]},
    ],
)
def test_a_dot_is_part_of_a_name_or_leads_into_an_object(body: Any) -> None:
    assert passes({"a.b.c": ["x"]}, json.dumps(body))
    assert not passes({"a.b.c": ["z"]}, json.dumps(body))
    assert not passes({"a.b": ["x"]}, json.dumps(body))
    assert not passes({"b.c": ["x"]}, json.dumps(body))


def test_dots_lead_on_within_128_characters_alone() -> None:
    for spare, leads in ((0, True), (1, False)):
        name = "n" * (127 + spare)
        assert passes({f"{name}.b": ["x"]}, json.dumps({name: {"b": "x"}})) is leads
    assert not passes({".b": ["x"]}, json.dumps({"": {"b": "x"}}))


def test_one_element_of_a_list_must_meet_all_its_conditions() -> None:
    policy = {"items": {"kind": ["tea"], "cups": [2]}}
    assert passes(policy, '{"items": [{"kind": "tea", "cups": 1}, {"kind": "tea", "cups": 2}]}')
    assert not passes(policy, '{"items": [{"kind": "tea"}, {"kind": "milk", "cups": 2}]}')


def test_one_of_the_alternatives_must_hold_at_every_depth() -> None:
    policy = {"kind": ["a"], "in": {"$or": [{"x": [1]}, {"y": ["b", {"prefix": "c"}]}]}}
    assert passes(policy, '{"kind": "a", "in": {"x": 1}}')
    assert passes(policy, '{"kind": "a", "in": {"y": "cd"}}')
    assert not passes(policy, '{"kind": "a", "in": {"x": 2}}')
    assert not passes(policy, '{"in": {"x": 1}}')


def test_an_or_with_operators_or_with_one_element_is_a_name() -> None:
    assert passes({"$or": [{"prefix": "a"}, {"prefix": "b"}]}, '{"$or": "bc"}')
    assert passes({"$or": ["x"]}, '{"$or": "x"}')
    assert not passes({"$or": ["x"]}, '{"x": "x"}')
    assert "'a' is no operator" in refused({"$or": [{"a": ["x"]}]})


@pytest.mark.parametrize(
    "body",
    [
        *(
            "",
            "a",
            "[]",
            '["a"]',
            "5",
            "null",
            '"{}"',
            '{"a": NaN}',
            '{"a": Infinity}',
            "{",
            b"\xff",
        ),
        *("[" * 100_000, '{"a":' * 100_000),
    ],
)
def test_a_non_object_body_passes_nothing(body: str | bytes) -> None:
    assert not passes({"a": [{"exists": False}]}, body)
    filter = compile_filter({"body_policy": {"a": ["x"]}}, "tags")
    assert why_not(filter, Filterable((), "", {}, body)) == "the body is no JSON object"


def test_bytes_of_an_object_are_one_and_long_numbers_are_exact() -> None:
    assert passes({"a": [1]}, b'{"a": 1.0}')
    assert not passes({"a": [1]}, '{"a": 1.' + "0" * 5_000 + "1}")
    assert passes({"a": [{"numeric": [">", 5]}]}, '{"a": ' + "9" * 10_000 + "}")


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ([], "policy: must be an object"),
        ({"a": []}, "policy.a: must be a list of conditions, one at least, or an object of names"),
        ({"a": {}}, "policy.a: must be a list of conditions, one at least, or an object of names"),
        ({"a": "x"}, "policy.a: must be a list of conditions, one at least, or an object of names"),
        ({"": ["x"]}, "policy.: must be the name of a member"),
        ({"a": {"b": [{"no": 1}]}}, "policy.a.b[0]: 'no' is no operator"),
        ({"a": [["x"]]}, "policy.a[0]: must be a text"),
        ({"a": [{"x": ["1"]}, {"y": ["1"]}]}, "policy.a[0]: 'x' is no operator"),
        (
            {"o": {"$or": [{"a": ["x"]}, {"b": [{"exists": 1}]}]}},
            "policy.o.$or[1].b[0].exists: must be true or false",
        ),
        ({name: ["x"] for name in "abcdef"}, "policy: must have at most 5 names, not 6"),
        (
            {"a": {"b": {"c": [*"1234"]}}, "d": {"e": [*"123"]}, "f": [*"123"]},
            "policy: has 216 combinations of conditions: at most 150",
        ),
    ],
)
def test_an_invalid_policy_is_refused_with_its_place(policy: Any, reason: str) -> None:
    assert refused(policy).startswith(reason)


def test_names_inside_count_with_the_outer_one() -> None:
    inner = {name: ["x"] for name in "abcdef"}
    assert passes({"o": inner}, json.dumps({"o": dict.fromkeys("abcdef", "x")}))


def test_names_and_combinations_of_alternatives_count() -> None:
    tens = [str(number) for number in range(10)]
    either = {"$or": [{"a": tens}, {"b": tens[:5]}]}
    assert passes(
        either | {name: ["x"] for name in "cde"},
        json.dumps(dict.fromkeys("bcde", "x") | {"a": "7"}),
    )
    assert "at most 5 names, not 6" in refused(either | {name: ["x"] for name in "cdef"})
    assert passes(either | {"c": tens}, '{"a": "9", "c": "0"}')
    assert "165 combinations" in refused(either | {"c": [*tens, "10"]})


def test_a_policy_may_be_deep_but_not_endless() -> None:
    def nested(depth: int) -> Any:
        made: Any = ["x"]
        for _ in range(depth):
            made = {"a": made}
        return made

    deep = nested(47)
    assert passes(deep, json.dumps(nested(47)))
    assert "at most 50 objects and lists" in refused(nested(5_000))


def test_it_is_of_topics_and_beside_sql() -> None:
    policy = {"a": ["x"]}
    filter = compile_filter({"body_policy": policy, "sql": "n > 1"}, "routing_key")
    assert filter.normalized() == {"body_policy": policy, "sql": "n > 1"}
    assert filter.matches(Filterable((), "", {"n": "2"}, '{"a": "x"}'))
    assert not filter.matches(Filterable((), "", {"n": "1"}, '{"a": "x"}'))
    assert not filter.matches(Filterable((), "", {"n": "2"}, '{"a": "y"}'))
    assert why_not(filter, Filterable((), "", {"n": "2"}, '{"a": "y"}')) == (
        "body_policy: no condition holds of a"
    )
    assert isinstance(compile_filter({"body_policy": {}}, "tags"), Everything)
    assert (reads_body({"body_policy": policy}), reads_body({"policy": policy})) == (True, False)
    assert not reads_body(None)
    with pytest.raises(InvalidFilter, match="body_policy is not allowed here"):
        compile_filter({"body_policy": policy}, "queue")


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        (5, [("Number", "5"), ("Number.int", "5.0"), ("String.Array", "[1, 5]")],
         [("String", "5"), ("String.Array", '["5"]'), ("Number", "6")]),
        ("5", [("String", "5"), ("String.x", "5"), ("String.Array", '["5"]')],
         [("Number", "5"), ("String.Array", "[5]")]),
        ({"numeric": [">", 1]}, [("Number", "2")], [("String", "2")]),
        ({"prefix": "5"}, [("String", "55")], [("Number", "55")]),
        ({"anything-but": 5}, [("String", "5"), ("Number", "6")], [("Number", "5")]),
        ({"exists": True}, [("Number", "5"), ("String.Array", "[null]")], [("String.Array", "[]")]),
        (0.1, [("String.Array", '["x", 0.1]'), ("Number", "0.1")], [("String.Array", "[0.2]")]),
        # An array that is none is a text.
        ("5", [("String.Array", "5")], [("String.Array", '"5"')]),
        ({"prefix": "{"}, [("String.Array", "{}"), ("String.Array", "{")], []),
    ],
)  # fmt: skip
def test_attributes_with_types_meet_conditions_of_their_type(
    condition: Any, good: list[tuple[str, str]], bad: list[tuple[str, str]]
) -> None:
    filter = compile_filter({"policy": {"x": [condition]}}, "tags")
    for values, expected in ((good, True), (bad, False)):
        for kind, value in values:
            attributes = {"$types": "", **write({"x": Typed(kind, value)})}
            assert filter.matches(Filterable((), "", attributes)) is expected, (kind, value)


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [("5", "5", True), (5, "5.0", True), ({"numeric": [">", 5]}, "5", False), (5, "five", False)],
)
def test_a_value_without_a_type_is_a_text_and_the_number_in_it(
    condition: Any, value: str, expected: bool
) -> None:
    filter = compile_filter({"policy": {"TAGS": [condition]}}, "tags")
    assert filter.matches(Filterable((), "", write({"TAGS": Typed("String", value)}))) is expected


def test_a_clause_lists_the_missed_members() -> None:
    policy = {"a": ["x"], "b": {"c": ["x"]}, "$or": [{"d": ["x"]}, {"e": ["x"]}]}
    filter = compile_filter({"body_policy": policy}, "tags")
    assert why_not(filter, Filterable((), "", {}, '{"b": {"c": "x"}}')) == (
        "body_policy: no condition holds of a, $or"
    )
