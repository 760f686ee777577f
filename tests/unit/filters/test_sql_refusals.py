"""Filters that are refused when they are set, with position and reason, and the limits."""

from __future__ import annotations

import re
import sys
import time

import pytest
from tests.unit.filters.sql_outcomes import outcome

from cirrusmq.base.errors import InvalidFilter
from cirrusmq.filters.sql.expression import compile_sql

REFUSED = [
    # sql, position, reason
    ("", 1, "found the end"),
    (" \n ", 4, "found the end"),
    ("a >", 4, "found the end"),
    ("a = 1 AND", 10, "found the end"),
    ("(a > 1", 7, "expected )"),
    ("a > 1)", 6, "expected the end"),
    ("()", 2, "found ')'"),
    ("a = 1 trailing", 7, "found 'trailing'"),
    ("a = 1 b = 2", 7, "found 'b'"),
    ("a = 1;", 6, "';' is not part of the language"),
    ("a != 1", 3, "'!' is not part of the language"),
    ("a == 1", 4, "found '='"),
    ("a LIKE 'x%'", 3, "found 'LIKE'"),
    ("a + 1 > 2", 3, "found '+'"),
    ("a - 1 > 2", 3, "found '-'"),
    ("a * 2 > 2", 3, "'*' is not part of the language"),
    ("a / 2 > 2", 3, "'/' is not part of the language"),
    ('a = "x"', 5, "is not part of the language"),
    ("a = `x`", 5, "is not part of the language"),
    ("a > 0x10", 6, "found 'x10'"),
    ("a = 007", 5, "no leading zero"),
    ("a = 00", 5, "no leading zero"),
    ("a = 1.5L", 8, "found 'L'"),
    ("a.b = 1", 2, "'.' is not part of the language"),
    ("a = .", 5, "'.' is not part of the language"),
    ("1a = 1", 2, "found 'a'"),
    ("ä = 1", 1, "is not part of the language"),
    ("a\u00a0= 1", 2, "is not part of the language"),
    ("a\v= 1", 2, "is not part of the language"),
    ("a\x00= 1", 2, "is not part of the language"),
    ("a = 'x", 5, "the text is not closed"),
    ("a = 'x''", 5, "the text is not closed"),
    ("a = 1 /* x", 7, "the comment is not closed"),
    ("a = 1 /*/", 7, "the comment is not closed"),
    ("a = '\ud800'", 6, "half of a surrogate pair"),
    ("a = NULL", 5, "NULL equals nothing"),
    ("a <> NULL", 6, "NULL equals nothing"),
    ("NULL = a", 1, "NULL equals nothing"),
    ("a = +(NULL)", 7, "NULL equals nothing"),
    ("a IS 'x'", 6, "expected NULL"),
    ("a IS NOT", 9, "expected NULL"),
    ("a IS TRUE", 6, "expected NULL"),
    ("a > 'abc'", 5, "only numbers and attributes"),
    ("'5' < a", 1, "only numbers and attributes"),
    ("a >= TRUE", 6, "only numbers and attributes"),
    ("FALSE <= a", 1, "only numbers and attributes"),
    ("a > NULL", 5, "only numbers and attributes"),
    ("a > ('5')", 6, "only numbers and attributes"),
    ("a > (b = 1)", 6, "a condition cannot be compared"),
    ("a > 1 > 2", 1, "a condition cannot be compared"),
    ("NOT a > 5", 1, "a condition cannot be compared"),
    ("a > NOT b", 5, "a condition cannot be compared"),
    ("a BETWEEN 2 AND 1", 11, "the lower bound"),
    ("a NOT BETWEEN 2 AND 1", 15, "the lower bound"),
    ("a BETWEEN 1.5 AND 1", 11, "the lower bound"),
    ("a BETWEEN -1 AND -2", 11, "the lower bound"),
    ("a BETWEEN 'a' AND 'b'", 11, "only numbers and attributes"),
    ("a BETWEEN 1 AND 'b'", 17, "only numbers and attributes"),
    ("a BETWEEN NULL AND 2", 11, "only numbers and attributes"),
    ("a BETWEEN 1 AND TRUE", 17, "only numbers and attributes"),
    ("'a' BETWEEN 1 AND 2", 1, "only numbers and attributes"),
    ("(a = 1) BETWEEN 1 AND 2", 2, "a condition cannot be compared"),
    ("a BETWEEN 1 OR 2", 13, "expected AND"),
    ("a BETWEEN 1", 12, "expected AND"),
    ("a NOT = 1", 7, "expected BETWEEN or IN"),
    ("a NOT NULL", 7, "expected BETWEEN or IN"),
    ("a IN (1, 2)", 7, "expected a text in quotes"),
    ("a IN ('x', 2)", 12, "expected a text in quotes"),
    ("a IN (b)", 7, "expected a text in quotes"),
    ("a IN (NULL)", 7, "expected a text in quotes"),
    ("a IN ()", 7, "expected a text in quotes"),
    ("a IN ('x',)", 11, "expected a text in quotes"),
    ("a IN 'x'", 6, "expected ("),
    ("a IN ('x'", 10, "expected )"),
    ("'x' IN ('x')", 1, "the left side of IN must be an attribute"),
    ("5 IN ('5')", 1, "the left side of IN must be an attribute"),
    ("(a = 'x') IN ('x')", 2, "the left side of IN must be an attribute"),
    ("-a IN ('x')", 1, "the left side of IN must be an attribute"),
    ("NOT a IN ('x')", 1, "the left side of IN must be an attribute"),
    ("AND", 1, "found 'AND'"),
    ("a AND OR b", 7, "found 'OR'"),
    ("a,b", 2, "found ','"),
    ("a = 'x' 1.50", 9, "found '1.50'"),
    ("__import__('os')", 11, "found '('"),
    ("a = 9223372036854775808", 5, "64 bits"),
    ("a = -9223372036854775809", 6, "64 bits"),
    ("a = -(9223372036854775808)", 7, "64 bits"),
    ("a = +9223372036854775808", 6, "64 bits"),
    ("a = - -9223372036854775808", 5, "64 bits"),
    ("a = 1E309", 5, "too large"),
    ("a = 1E999999999", 5, "too large"),
    ("a = 1E-400", 5, "too close to zero"),
]


@pytest.mark.parametrize(("sql", "position", "reason"), REFUSED)
def test_a_filter_is_refused_with_position_and_reason(sql: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidFilter, match=re.escape(reason)) as refused:
        compile_sql(sql)
    assert f"position {position}: " in refused.value.detail


@pytest.mark.parametrize(
    ("sql", "detail"),
    [
        ("a = 007", "position 5: an integer has no leading zero"),
        ("a = 9223372036854775808", "position 5: an integer has at most 64 bits"),
        ("a = 10000000000000000000000", "position 5: an integer has at most 64 bits"),
        ("a = -(-9223372036854775808)", "position 5: an integer has at most 64 bits"),
        ("a = 1E-400", "position 5: the number is too close to zero"),
        ("a = 1E309", "position 5: the number is too large"),
        ("a = '", "position 5: the text is not closed"),
        ("a /* b", "position 3: the comment is not closed"),
        ("a = \xe9", "position 5: '\\xe9' is not part of the language"),
        ("a = '\ud800'", "position 6: half of a surrogate pair is not a character"),
        ("a BETWEEN 2 AND 1", "position 11: the lower bound of BETWEEN is above the upper bound"),
        ("5 IN ('5')", "position 1: the left side of IN must be an attribute"),
        ("a = NULL", "position 5: NULL equals nothing: use IS NULL"),
        ("a > (b = 1)", "position 6: a condition cannot be compared as a number"),
        ("a > 'abc'", "position 5: only numbers and attributes can be compared by size"),
        ("a b", "position 3: expected the end, AND, OR or a comparison, found 'b'"),
        ("a NOT b", "position 7: expected BETWEEN or IN, found 'b'"),
        ("a IN (b)", "position 7: expected a text in quotes, found 'b'"),
        ("a AND", "position 6: expected a name, a literal or (, found the end"),
        ("(" * 65 + "a", "position 65: the expression has more than 64 levels"),
    ],
)
def test_a_refusal_is_a_sentence(sql: str, detail: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_sql(sql)
    assert refused.value.detail == f"sql: {detail}"


def test_a_refusal_shows_only_the_beginning_of_a_long_word() -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_sql("a = 1 " + "x" * 10_000)
    assert refused.value.detail.endswith(f"found '{'x' * 20}'")


# ---- limits -------------------------------------------------------------------------------------


def test_16_kib_are_taken_and_one_byte_more_is_not() -> None:
    longest = "a = '" + "x" * (16_384 - 6) + "'"
    assert outcome(longest, {"a": "y"}) == "false"
    with pytest.raises(InvalidFilter, match="16,384 bytes, not 16,385"):
        compile_sql(longest + " ")


def test_the_length_counts_bytes_not_characters() -> None:
    with pytest.raises(InvalidFilter, match="16,384 bytes"):
        compile_sql("a = '" + "é" * 8_190 + "'")
    assert compile_sql("a = '" + "é" * 8_189 + "'").sql


def test_1000_tokens_are_taken_and_one_more_is_not() -> None:
    limit = "+a" + " OR a" * 499
    assert outcome(limit, {}) == "null"
    with pytest.raises(
        InvalidFilter, match="position 2499: the expression has more than 1,000 tokens"
    ):
        compile_sql(limit + " OR a")


def test_comments_and_blanks_are_no_tokens() -> None:
    assert outcome("/**/ " * 2_000 + "TRUE", {}) == "true"


NESTINGS = [("(", "TRUE", ")"), ("NOT ", "TRUE", ""), ("- ", "5", ""), ("+", "TRUE", "")]


@pytest.mark.parametrize(("opening", "inside", "closing"), NESTINGS)
def test_64_levels_are_taken_and_one_more_is_not(opening: str, inside: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return opening * levels + inside + closing * levels

    assert outcome(nested(64), {}) in ("true", "false")
    with pytest.raises(InvalidFilter, match="more than 64 levels"):
        compile_sql(nested(65))
    with pytest.raises(InvalidFilter, match="more than 64 levels"):
        compile_sql(nested(450))


def test_levels_end_with_their_parenthesis() -> None:
    assert outcome(" OR ".join(["NOT (a = 'x')"] * 100), {"a": "x"}) == "false"


@pytest.mark.parametrize("first", ["(TRUE)", "NOT TRUE", "NOT (TRUE)", "- - 5 = 5"])
def test_ended_levels_make_no_room_for_others(first: str) -> None:
    def deep(inside: str) -> str:
        return "(" * 62 + first + " AND " + inside + ")" * 62

    assert outcome(deep("((TRUE))"), {}) in ("true", "false")
    with pytest.raises(InvalidFilter, match="more than 64 levels"):
        compile_sql(deep("(((TRUE)))"))


def test_mixed_levels_add_up() -> None:
    assert outcome("NOT (" * 32 + "TRUE" + ")" * 32, {}) == "true"
    with pytest.raises(InvalidFilter, match="more than 64 levels"):
        compile_sql("(" + "NOT (" * 32 + "TRUE" + ")" * 33)


def test_the_deepest_filter_fits_on_a_half_used_stack() -> None:
    level = "FALSE OR TRUE AND TRUE = ("
    deepest = level * 64 + "TRUE" + ")" * 64

    def deeper(frames: int) -> str:
        return deeper(frames - 1) if frames else outcome(deepest, {})

    assert deeper(sys.getrecursionlimit() // 2) == "true"


def test_long_chains_are_no_levels() -> None:
    assert outcome("a" + " IS NULL" * 499, {}) == "false"
    assert outcome("a" + " = 'x'" * 499, {"a": "x"}) in ("true", "false")
    assert outcome(" AND ".join(["TRUE"] * 500), {}) == "true"


@pytest.mark.parametrize(
    "sql",
    [
        "a > " + "9" * 16_000,
        "a > " + "0" * 16_000,
        "a > " + "9" * 16_000 + ".",
        "a > 0." + "0" * 16_000 + "1",
        "a > 1E" + "9" * 16_000,
        "a > 1E-" + "9" * 16_000,
        "a > 1" + "0" * 400 + "E-" + "9" * 15_000,
        "'" * 16_383,
        "/*" * 8_000,
        "/" * 16_000,
        "(" * 16_000,
        "x" * 16_000 + " '",
        "''" * 8_000 + "'",
    ],
    ids=lambda sql: sql[:12],
)
def test_a_long_wrong_filter_is_refused_at_once(sql: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidFilter):
        compile_sql(sql)
    assert time.process_time() - started < 0.5


def test_long_decimals_are_compared_at_once() -> None:
    sql = "a > 0." + "3" * 16_000
    started = time.process_time()
    assert outcome(sql, {"a": "0." + "3" * 1_000}) == "false"
    assert outcome(sql, {"a": "1E-999999999"}) == "false"
    assert outcome("a > 1E308", {"a": "9" * 1_024}) == "true"
    assert time.process_time() - started < 0.5
