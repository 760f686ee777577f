"""Filter policies over attributes: what passes, what is refused and with which words."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.explanation import why_not
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.policies.policy_limits import POLICY_BYTES
from cirrusmq.filters.selection import Everything, compile_filter

Attributes = dict[str, str | bytes]
PASSES: list[tuple[Any, list[Any], list[Any]]] = [
    # condition, values that pass, values that do not; None: there is no attribute.
    ("eu", ["eu"], ["EU", "eu ", "", None, b"eu"]),
    (5, ["5", "5.0", "5e0", "0.5e1"], ["5 ", "five", "05", "6", "", None, "+5", b"5"]),
    (-0.5, ["-0.5", "-5e-1"], ["0.5"]),
    (0, ["0", "-0", "0.000"], ["", "false", None]),
    (1.12345, ["1.12345", "1.123450"], ["1.123451", "1.1234"]),
    ({"prefix": "us-"}, ["us-", "us-east"], ["us", "US-east", None, b"us-east"]),
    ({"suffix": ".png"}, ["a.png", ".png"], ["a.PNG", "png", None]),
    ({"equals-ignore-case": "StraßE"}, ["strasse", "STRASSE", "straße"], ["strass", None]),
    ({"anything-but": "a"}, ["b", "", "A"], ["a", None, b"b"]),
    ({"anything-but": ["a", 5]}, ["b", "6"], ["a", "5", "5.0", None]),
    ({"anything-but": {"prefix": "x-"}}, ["y", "x"], ["x-1", None]),
    ({"anything-but": {"prefix": ["x-", "y-"]}}, ["z-"], ["x-1", "y-", None]),
    ({"anything-but": {"suffix": "z"}}, ["a"], ["az", None]),
    ({"anything-but": {"equals-ignore-case": ["A", "b"]}}, ["c"], ["a", "B", None]),
    ({"numeric": ["=", 3]}, ["3", "3.0"], ["4", "three", None]),
    ({"numeric": ["<", 3]}, ["2.99999", "-4"], ["3", None]),
    ({"numeric": ["<=", 3]}, ["3"], ["3.00001"]),
    ({"numeric": [">", 3.5]}, ["3.50001"], ["3.5"]),
    (
        {"numeric": [">=", 3.5]},
        ["3.5", "1e9", "1e99999", "1" * 40],
        ["3.49999", "NaN", "Infinity", "1" * 41],
    ),
    ({"numeric": [">", 0, "<=", 100]}, ["0.1", "100"], ["0", "100.1", None]),
    ({"cidr": "10.1.0.0/16"}, ["10.1.2.3"], ["10.2.0.1", "10.1", "::1", None, ""]),
    ({"cidr": "10.1.2.3/16"}, ["10.1.0.0", "10.1.255.255"], ["10.2.0.1"]),
    ({"cidr": "2001:db8::/32"}, ["2001:db8::5"], ["10.1.2.3", "2001:db9::5"]),
    ({"exists": True}, ["", "x"], [None, b"x"]),
    ({"exists": False}, [None, b"x"], ["", "x"]),
]


def passes(policy: Any, attributes: Attributes) -> bool:
    filter = compile_filter({"policy": policy}, "tags")
    assert (why_not(filter, Filterable((), "", attributes)) is None) == filter.matches(
        Filterable((), "", attributes)
    )
    return filter.matches(Filterable((), "", attributes))


@pytest.mark.parametrize(("condition", "good", "bad"), PASSES)
def test_a_condition_holds_of_these_values_alone(
    condition: Any, good: list[Any], bad: list[Any]
) -> None:
    for values, expected in ((good, True), (bad, False)):
        for value in values:
            attributes: Attributes = {} if value is None else {"x": value}
            assert passes({"x": [condition]}, attributes) is expected, value


def test_each_name_needs_one_of_its_conditions() -> None:
    policy = {"region": ["eu", {"prefix": "us-"}], "amount": [{"numeric": [">=", 100]}]}

    assert passes(policy, {"region": "us-1", "amount": "250", "other": "x"})
    assert passes(policy, {"region": "eu", "amount": "100"})
    assert not passes(policy, {"region": "us-1"})
    assert not passes(policy, {"region": "cn", "amount": "250"})
    assert not passes(policy, {"amount": "250"})


def test_one_of_the_alternatives_must_hold_beside_all_names() -> None:
    policy = {
        "kind": ["order"],
        "$or": [{"region": ["eu"]}, {"amount": [{"numeric": [">", 9]}], "gold": ["yes"]}],
    }

    assert passes(policy, {"kind": "order", "region": "eu"})
    assert passes(policy, {"kind": "order", "amount": "10", "gold": "yes"})
    assert not passes(policy, {"kind": "order", "amount": "10"})
    assert not passes(policy, {"region": "eu"})
    inner = {"$or": [{"a": ["1"]}, {"$or": [{"b": ["1"]}, {"c": ["1"]}]}]}
    assert [passes(inner, {name: "1"}) for name in "abcd"] == [True, True, True, False]


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ([], "policy: must be an object"),
        ({"a": []}, "policy.a: must be a list of conditions, one at least"),
        ({"a": "x"}, "policy.a: must be a list of conditions, one at least"),
        ({"": ["x"]}, "policy.: must be the name of an attribute, or $or"),
        ({"$x": ["x"]}, "policy.$x: must be the name of an attribute, or $or"),
        ({"a": [None]}, "policy.a[0]: must be a text, a number, or an object with an operator"),
        ({"a": [True]}, "policy.a[0]: must be a text, a number, or an object with an operator"),
        (
            {"a": ["x", ["y"]]},
            "policy.a[1]: must be a text, a number, or an object with an operator",
        ),
        ({"a": [{}]}, "policy.a[0]: must have one operator, not 0"),
        ({"a": [{"prefix": "x", "suffix": "y"}]}, "policy.a[0]: must have one operator, not 2"),
        (
            {"a": [{"wildcard": "x*"}]},
            "policy.a[0]: 'wildcard' is no operator: use one of prefix, suffix, "
            "equals-ignore-case, anything-but, numeric, cidr, exists",
        ),
        ({"a": [{"prefix": ""}]}, "policy.a[0].prefix: must be a text that is not empty"),
        ({"a": [{"prefix": 5}]}, "policy.a[0].prefix: must be a text that is not empty"),
        (
            {"a": [{"anything-but": {"prefix": ""}}]},
            "policy.a[0].anything-but.prefix: must be a text that is not empty",
        ),
        ({"a": [{"exists": "yes"}]}, "policy.a[0].exists: must be true or false"),
        ({"a": [{"exists": 1}]}, "policy.a[0].exists: must be true or false"),
        (
            {"a": [{"cidr": "10.0.0.0/33"}]},
            "policy.a[0].cidr: must be a network, such as 10.0.0.0/24",
        ),
        (
            {"a": [{"anything-but": {"numeric": 5}}]},
            "policy.a[0].anything-but: must have one of prefix, suffix, equals-ignore-case",
        ),
        (
            {"a": [{"anything-but": ["x", None]}]},
            "policy.a[0].anything-but[1]: must be a text, a number, or an object with an operator",
        ),
        (
            {"a": [{"numeric": [">", 5, "<", 5]}]},
            "policy.a[0].numeric: the lower bound must be below the upper one",
        ),
        *[
            (
                {"a": [{"numeric": given}]},
                "policy.a[0].numeric: must be a comparison and a number, such as "
                '[">=", 5], or a lower and an upper bound',
            )
            for given in (
                [], 5, [">"], ["<>", 5], [">", "5"], [">", 5, ">", 6], ["<", 5, ">", 1],
                ["=", 5, "<", 6], [">", True], [5, ">"], [">", "5", "<", 6], [">", 5, "<", "6"],
            )
        ],
        *[
            (
                {"a": [number]},
                f"policy{where}: a number must be from -1,000,000,000 to 1,000,000,000, "
                "with 5 decimal places at most",
            )
            for number, where in (
                (1_000_000_001, ""), (-1e10, ""), (float("inf"), ""), (10**400, ""),
                (0.000001, ".a[0]"), (1.123456, ".a[0]"),
            )
        ],
        *[
            (
                {"a": [{"numeric": bounds}]},
                "policy.a[0].numeric: a number must be from -1,000,000,000 to 1,000,000,000, "
                "with 5 decimal places at most",
            )
            for bounds in ([">", 0.000001, "<", 1], [">", 0, "<", 0.000001], ["=", 0.000001])
        ],
        ({"$or": [{"a": ["x"]}]}, "policy.$or: must be a list of two policies or more"),
        ({"$or": {"a": ["x"]}}, "policy.$or: must be a list of two policies or more"),
        (
            {"$or": [{"a": ["x"]}, {}]},
            "policy.$or[1]: must be a policy with a name at least",
        ),
        ({"$or": [{"a": ["x"]}, {"b": []}]}, "policy.$or[1].b: must be a list of conditions, "
         "one at least"),
        (
            {name: ["x"] for name in "abcdef"},
            "policy: must have at most 5 names, not 6",
        ),
        (
            {name: [str(number) for number in range(13)] for name in "ab"},
            "policy: has 169 combinations of conditions: at most 150",
        ),
        (
            {"a": ["x" * POLICY_BYTES]},
            "policy: must have at most 8,192 bytes without blanks",
        ),
    ],
)  # fmt: skip
def test_an_invalid_policy_is_refused_with_its_place(policy: Any, reason: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_filter({"policy": policy}, "tags")
    assert (refused.value.parameter, refused.value.detail) == ("filter", reason)


def test_a_policy_at_its_limits_is_taken() -> None:
    longest = {"a": ["é" * ((POLICY_BYTES - len('{"a":[""]}')) // 2)]}
    assert compile_filter({"policy": longest}, "tags").normalized() == {"policy": longest}
    with pytest.raises(InvalidFilter, match="at most 8,192 bytes"):
        compile_filter({"policy": {"a": [longest["a"][0] + "x"]}}, "tags")
    names = {name: ["x"] for name in "abcde"}
    assert passes(names, dict.fromkeys("abcde", "x"))
    for number in (1_000_000_000, -1_000_000_000):
        assert passes({"a": [number]}, {"a": str(number)})


def test_a_deeply_nested_policy_is_refused_without_a_crash() -> None:
    policy: dict[str, Any] = {"a": ["x"]}
    for _ in range(5_000):
        policy = {"$or": [policy, {"b": ["x"]}]}
    with pytest.raises(InvalidFilter, match="at most 12 objects and lists in each other"):
        compile_filter({"policy": policy}, "tags")


def test_combinations_of_alternatives_are_added() -> None:
    tens = [str(number) for number in range(10)]
    policy = {"a": tens, "$or": [{"b": tens}, {"c": tens[:5]}]}
    compile_filter({"policy": policy}, "tags")
    with pytest.raises(InvalidFilter, match="160 combinations"):
        compile_filter({"policy": policy | {"$or": [{"b": tens}, {"c": tens[:6]}]}}, "tags")


def test_a_policy_is_of_topics_and_may_be_beside_sql() -> None:
    policy = {"b": [{"exists": True}], "a": ["x", 5]}
    filter = compile_filter({"policy": policy, "sql": "n > 1"}, "routing_key")
    assert filter.normalized() == {"policy": policy, "sql": "n > 1"}
    assert filter.matches(Filterable((), "", {"a": "5.0", "b": "", "n": "2"}))
    assert not filter.matches(Filterable((), "", {"a": "5.0", "b": "", "n": "1"}))
    assert not filter.matches(Filterable((), "", {"a": "6", "b": "", "n": "2"}))
    assert isinstance(compile_filter({"policy": {}}, "tags"), Everything)
    with pytest.raises(InvalidFilter, match="policy is not allowed here: use tags or sql"):
        compile_filter({"policy": policy}, "queue")
    with pytest.raises(InvalidFilter, match="must have sql, one of"):
        compile_filter({"policy": policy, "tags": ["a"]}, "tags")
    with pytest.raises(InvalidParameter, match="is not a member"):
        compile_filter({"policies": policy}, "tags")


def test_policies_of_the_same_meaning_are_equal() -> None:
    one = compile_filter({"policy": {"a": ["x"], "b": ["y"]}}, "tags")
    assert one == compile_filter({"policy": {"b": ["y"], "a": ["x"]}}, "tags")
    assert one != compile_filter({"policy": {"a": ["y"], "b": ["y"]}}, "tags")


def test_a_clause_lists_the_missed_names() -> None:
    policy = {"a": ["x"], "b": ["x"], "$or": [{"c": ["x"]}, {"d": ["x"]}]}
    filter = compile_filter({"policy": policy}, "tags")
    assert why_not(filter, Filterable((), "", {"a": "x"})) == "policy: no condition holds of b, $or"
    three = compile_filter({"policy": {name: ["x"] for name in "abc"}}, "tags")
    assert why_not(three, Filterable((), "", {})) == "policy: no condition holds of a, b, c"
    more = compile_filter({"policy": {name: ["x"] for name in "abcd"}}, "tags")
    assert why_not(more, Filterable((), "", {})) == "policy: no condition holds of a, b, c, …"
