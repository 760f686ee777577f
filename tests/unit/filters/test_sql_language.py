"""The results of SQL filters, sentence by sentence of the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.filters.sql_outcomes import outcome

from cirrusmq.base.errors import InvalidFilter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import compile_filter

VECTORS = json.loads((Path(__file__).parent / "sql92.json").read_text())["rows"]


def result(sql: str, **attributes: str | bytes) -> str:
    try:
        return outcome(sql, attributes)
    except InvalidFilter:
        return "refused"


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["sql"])
def test_the_known_results_hold(row: dict[str, Any]) -> None:
    assert result(row["sql"], **row["attributes"]) == row["result"]


def test_the_example_of_the_contract_holds() -> None:
    sql = (
        "a IS NOT NULL AND (price BETWEEN 10 AND 100 OR region IN ('hangzhou', 'shanghai'))"
        " AND TAGS = 'order'"
    )
    assert result(sql, a="1", price="10", TAGS="order") == "true"
    assert result(sql, a="1", price="9", region="shanghai", TAGS="order") == "true"
    assert result(sql, a="1", price="9", region="beijing", TAGS="order") == "false"
    assert result(sql, price="10", TAGS="order") == "false"
    assert result(sql, a="1", price="10") == "null"


@pytest.mark.parametrize(
    "literal", ["5", "5L", "5l", "5.0", "5.", "0.5E1", ".5e1", "50E-1", "5E+0"]
)
def test_a_number_may_be_written_in_many_ways(literal: str) -> None:
    assert result(f"a >= {literal} AND a <= {literal}", a="5") == "true"
    assert result(f"a > {literal} OR a < {literal}", a="5") == "false"


def test_a_name_may_hold_dollars_underscores_and_digits_and_keeps_its_case() -> None:
    assert result("$a_9 = 'x'", **{"$a_9": "x"}) == "true"
    assert result("_ = 'x'", _="x") == "true"
    assert result("A = 'x'", a="x") == "null"
    assert result("tags = 'x'", TAGS="x") == "null"


def test_keywords_ignore_case() -> None:
    assert result("a Is nOt nuLL aNd tRue oR fAlse", a="x") == "true"
    assert result("a bEtween 1 AND 2 and Not b iN ('x')", a="1") == "refused"
    assert result("a bEtween 1 AND 2 and b Not iN ('x')", a="1", b="y") == "true"


def test_unreserved_words_are_names() -> None:
    assert result("like = 'x' AND escape = 'y'", like="x", escape="y") == "true"


def test_comments_and_blanks_part_tokens_and_mean_nothing() -> None:
    assert result("a/**/=/* ' */'x'-- done\nAND--'\r\tTRUE\f--", a="x") == "true"
    assert result("/* a * b ** / */ TRUE /***/") == "true"
    assert result("a\n=\n'x'", a="x") == "true"
    assert result("--", a="x") == "refused"


def test_signs_need_no_blanks() -> None:
    assert result("(a)>=-5AND(a)<=+5", a="0") == "true"
    assert result("a IN('x','y')AND'x'<>b", a="y", b="z") == "true"


def test_two_minus_signs_begin_a_comment() -> None:
    assert result("a > --5", a="6") == "refused"
    assert result("a > - -5", a="6") == "true"


def test_a_quote_in_a_text_is_written_twice() -> None:
    assert result("a = ''''", a="'") == "true"
    assert result("a = ''", a="") == "true"
    assert result("a = 'x''''y'", a="x''y") == "true"
    assert result("a IN ('it''s')", a="it's") == "true"
    assert result("a = 'line\nline -- /* \"'", a='line\nline -- /* "') == "true"


# ---- three-valued logic -------------------------------------------------------------------------

KLEENE = [
    ("TRUE", "TRUE", "true", "true"),
    ("TRUE", "FALSE", "false", "true"),
    ("TRUE", "NULL", "null", "true"),
    ("FALSE", "TRUE", "false", "true"),
    ("FALSE", "FALSE", "false", "false"),
    ("FALSE", "NULL", "false", "null"),
    ("NULL", "TRUE", "null", "true"),
    ("NULL", "FALSE", "false", "null"),
    ("NULL", "NULL", "null", "null"),
]


@pytest.mark.parametrize(("left", "right", "conjunction", "disjunction"), KLEENE)
def test_and_and_or_are_kleenes(left: str, right: str, conjunction: str, disjunction: str) -> None:
    assert result(f"{left} AND {right}") == conjunction
    assert result(f"{left} OR {right}") == disjunction


def test_not_is_kleenes() -> None:
    assert result("NOT TRUE") == "false"
    assert result("NOT FALSE") == "true"
    assert result("NOT NULL") == "null"


def test_and_binds_closer_than_or() -> None:
    assert result("TRUE OR TRUE AND FALSE") == "true"
    assert result("(TRUE OR TRUE) AND FALSE") == "false"
    assert result("FALSE AND TRUE OR TRUE") == "true"


@pytest.mark.parametrize(
    "sql",
    [
        "a",
        "a = 'x'",
        "a <> 'x'",
        "'x' = a",
        "'x' <> a",
        "a = TRUE",
        "a <> FALSE",
        "a = 5",
        "a > 5",
        "5 >= a",
        "a BETWEEN 1 AND 2",
        "a NOT BETWEEN 1 AND 2",
        "a IN ('x')",
        "a NOT IN ('x')",
        "a = b",
        "b = a",
        "b <> a",
        "a > b",
        "b > a",
        "a = missing",
        "NOT a",
        "NOT (a = 'x')",
        "a AND TRUE",
        "a OR FALSE",
    ],
)
def test_an_absent_attribute_and_its_expressions_are_null(sql: str) -> None:
    assert result(sql, b="x") == "null"


def test_two_absent_attributes_are_not_equal_but_null() -> None:
    assert result("a = b") == "null"
    assert result("a <> b") == "null"


def test_is_null_asks_for_absence_and_always_has_an_answer() -> None:
    assert result("a IS NULL") == "true"
    assert result("a IS NOT NULL") == "false"
    assert result("a IS NULL", a="") == "false"
    assert result("a IS NOT NULL", a="") == "true"
    assert result("NULL IS NULL") == "true"
    assert result("5 IS NULL") == "false"
    assert result("(a = 'x') IS NULL") == "true"
    assert result("a = 'x' IS NULL") == "true"
    assert result("a IS NULL IS NOT NULL") == "true"


def test_a_binary_attribute_is_absent() -> None:
    assert result("a IS NULL", a=b"x") == "true"
    assert result("a = 'x'", a=b"x") == "null"
    assert result("a > 5", a=b"6") == "null"


def test_the_services_own_attributes_are_absent() -> None:
    filter = compile_filter({"sql": "a = '1' AND $subject IS NULL"}, "tags")
    assert filter.matches(Filterable((), "", {"a": "1"}))
    assert filter.matches(Filterable((), "", {"a": "1", "$subject": "x", "$from": "bob"}))


def test_not_binds_to_the_next_operand() -> None:
    assert result("NOT a IS NULL") == "true"
    assert result("NOT (a IS NULL)") == "false"
    assert result("NOT a = 'x'", a="y") == "false"
    assert result("NOT a = TRUE", a="y") == "true"
    assert result("NOT a > 5", a="6") == "refused"
    assert result("NOT NOT TRUE") == "true"


def test_and_and_or_go_left_to_right_and_stop_early() -> None:
    assert result("b = 'x' OR a > 5", b="x", a="abc") == "true"
    assert result("a > 5 OR b = 'x'", b="x", a="abc") == "error"
    assert result("b = 'x' AND a > 5", b="y", a="abc") == "false"
    assert result("a > 5 AND b = 'x'", b="y", a="abc") == "error"
    assert result("b = 'x' OR a > 5", a="abc") == "error"
    assert result("b = 'x' OR b = 'y' OR a > 5", b="y", a="abc") == "true"
    assert result("TRUE OR a > 5 OR a > 6", a="abc") == "true"
    assert result("FALSE AND a > 5 OR b = 'x'", b="x", a="abc") == "true"


# ---- numbers ------------------------------------------------------------------------------------


def test_an_integer_literal_needs_an_integer_in_the_text() -> None:
    for text in (
        "30.5",
        "1.0",
        "1.",
        "1e1",
        "abc",
        "",
        " 1",
        "1 ",
        "1_0",
        "0x1",
        "NaN",
        "٣",
        "--1",
    ):
        for sql in ("a > 30", "a <= 30", "a = 30", "30 < a", "a <> 30", "a BETWEEN 1 AND 30"):
            assert result(sql, a=text) == "error"


def test_an_integer_in_the_text_may_have_a_sign_and_zeros_before_it() -> None:
    assert result("a = 5", a="+5") == "true"
    assert result("a = -5", a="-05") == "true"
    assert result("a = 0", a="-0") == "true"


def test_a_decimal_literal_compares_as_decimals() -> None:
    assert result("a = 30.0", a="30") == "true"
    assert result("a > 30.0", a="30.5") == "true"
    assert result("a = 30.50", a="30.5") == "true"
    assert result("a < 1E3", a="9.99e2") == "true"
    assert result("a = 0.1", a="0.1") == "true"
    assert result("a = 0.1", a="0.1000000000000000000000001") == "false"
    assert result("a = 0.0", a="-0") == "true"
    assert result("a > .5", a="5.") == "true"
    for text in ("abc", "", ".", "e5", "1e", "1.2.3", "NaN", "Infinity", "inf", " 1.5", "1_0.5"):
        assert result("a > 0.5", a=text) == "error"


def test_zero_as_a_decimal_is_not_refused() -> None:
    assert result("a > 0.0", a="0.1") == "true"
    assert result("a = 0E999999999999999999999", a="0") == "true"


def test_two_attributes_compare_as_decimals_under_greater_and_less() -> None:
    assert result("a > b", a="10", b="9.5") == "true"
    assert result("a <= b", a="1e1", b="10.0") == "true"
    assert result("a > b", a="9007199254740993", b="9007199254740992") == "true"
    assert result("a BETWEEN b AND c", a="2", b="1.5", c="2.0") == "true"
    assert result("a > b", a="10", b="x") == "error"
    assert result("a > b", a="b", b="a") == "error"


def test_literals_compare_with_each_other_exactly() -> None:
    assert result("1 = 1.0") == "true"
    assert result("9007199254740993 > 9007199254740992.0") == "true"
    assert result("2 > 10") == "false"
    assert result("'1' = 1") == "true"
    assert result("1 = 'x'") == "error"


def test_equality_compares_text_with_text_and_number_with_number() -> None:
    assert result("a = '5'", a="5.0") == "false"
    assert result("a = b", a="5", b="5.0") == "false"
    assert result("a = 5.0", a="5") == "true"
    assert result("a <> 5", a="6") == "true"
    assert result("a <> '5'", a="05") == "true"


def test_a_condition_never_equals_a_number() -> None:
    assert result("(a = 'x') = 1", a="x") == "false"
    assert result("(a = 'x') <> 1", a="x") == "true"
    assert result("1 = TRUE") == "false"


@pytest.mark.parametrize(
    ("ordering", "taken"), [(">", {"6"}), (">=", {"6", "5"}), ("<", {"4"}), ("<=", {"5", "4"})]
)
def test_each_ordering_has_its_edge(ordering: str, taken: set[str]) -> None:
    assert {text for text in "456" if result(f"a {ordering} 5", a=text) == "true"} == taken


def test_between_includes_both_bounds_and_not_between_neither() -> None:
    for text, inside in (("0", "false"), ("1", "true"), ("2", "true"), ("3", "false")):
        assert result("a BETWEEN 1 AND 2", a=text) == inside
        outside = "true" if inside == "false" else "false"
        assert result("a NOT BETWEEN 1 AND 2", a=text) == outside


def test_between_with_an_absent_bound_is_null_unless_the_other_decides() -> None:
    assert result("a BETWEEN b AND 5", a="3") == "null"
    assert result("a BETWEEN b AND 5", a="6") == "false"
    assert result("a NOT BETWEEN b AND 5", a="6") == "true"
    assert result("a BETWEEN 5 AND b", a="4", b="abc") == "false"


def test_equal_bounds_and_bounds_of_attributes_are_taken() -> None:
    assert result("a BETWEEN 2 AND 2", a="2") == "true"
    assert result("a BETWEEN -2 AND -1", a="-1") == "true"
    assert result("a BETWEEN b AND 1", a="1", b="2") == "false"


def test_plus_changes_nothing() -> None:
    assert result("a > + +5", a="6") == "true"
    assert result("+a = 'x'", a="x") == "true"
    assert result("+a IN ('x')", a="x") == "true"
    assert result("+TRUE") == "true"


def test_minus_on_text_is_null() -> None:
    assert result("-a > 5", a="-6") == "null"
    assert result("-a = -6", a="6") == "null"
    assert result("a = -'5'", a="-5") == "null"
    assert result("-a IS NULL", a="5") == "true"
    assert result("-(a = 'x') IS NULL", a="x") == "true"


def test_minus_of_a_long_decimal_loses_no_digit() -> None:
    digits = "1." + "0" * 40 + "1"
    assert result(f"a = -{digits}", a=f"-{digits}") == "true"
    assert result(f"a = -({digits})", a="-1") == "false"


def test_integers_go_to_the_edges_of_64_bits() -> None:
    assert result("a = 9223372036854775807", a="9223372036854775807") == "true"
    assert result("a = -9223372036854775808", a="-9223372036854775808") == "true"
    assert result("a = - 9223372036854775808L", a="-9223372036854775808") == "true"


def test_a_text_beyond_64_bits_is_still_compared_exactly() -> None:
    assert result("a > 9223372036854775807", a="9223372036854775808") == "true"
    assert result("a > 0", a="9" * 1_024) == "true"
    assert result("a < 0", a="-" + "9" * 1_023) == "true"


def test_a_text_too_long_for_an_attribute_is_no_number() -> None:
    assert result("a > 0", a="9" * 1_025) == "error"
    assert result(f"'{'9' * 16_000}' = 5") == "error"


def test_huge_exponents_in_a_text_cost_nothing() -> None:
    assert result("a > 0.5", a="1E999999999") == "true"
    assert result("a > 0.5", a="1E-999999999") == "false"
    assert result("a = b", a="1E999999999", b="1E999999999") == "true"
    assert result("a > b", a="1E999999999", b="-1E999999999") == "true"
    assert result("a > 0.5", a="1E" + "9" * 1_000) == "error"


# ---- text and booleans --------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["true", "TRUE", "tRuE"])
def test_beside_a_boolean_a_text_of_true_is_true(text: str) -> None:
    assert result("a = TRUE", a=text) == "true"
    assert result("TRUE = a", a=text) == "true"
    assert result("a <> FALSE", a=text) == "true"
    assert result("a = (b = 'x')", a=text, b="x") == "true"


@pytest.mark.parametrize("text", ["false", "1", "yes", "", " true", "true "])
def test_beside_a_boolean_any_other_text_is_false(text: str) -> None:
    assert result("a = TRUE", a=text) == "false"
    assert result("a = FALSE", a=text) == "true"


def test_text_as_a_condition_is_false() -> None:
    assert result("a", a="true") == "false"
    assert result("NOT a", a="true") == "true"
    assert result("a OR TRUE", a="x") == "true"
    assert result("a AND TRUE", a="true") == "false"
    assert result("'true'") == "false"


def test_a_number_as_a_condition_is_false() -> None:
    assert result("5") == "false"
    assert result("NOT 0") == "true"


def test_in_compares_text_exactly() -> None:
    assert result("a IN ('x', 'y', 'z')", a="y") == "true"
    assert result("a IN ('x')", a="X") == "false"
    assert result("a IN ('1')", a="1.0") == "false"
    assert result("a NOT IN ('x', 'y')", a="x") == "false"
    assert result("TAGS IN ('x')", TAGS="x") == "true"


def test_comparisons_chain_from_the_left() -> None:
    assert result("a = 'x' = TRUE", a="x") == "true"
    assert result("a = 'x' <> b", a="x", b="true") == "false"
    assert result("a > 5 = (b > 5)", a="6", b="7") == "true"
    assert result("a > 5 <> b > 5", a="6", b="5") == "true"
