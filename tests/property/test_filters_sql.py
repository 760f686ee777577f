"""SQL filters against a reference that evaluates the tree which the text was written from.

The reference knows nothing of tokens, parsing or stacks: it walks nested tuples and counts in
fractions. The text is written with random case, blanks, comments and needless parentheses.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.filters.sql_outcomes import outcome

Node = tuple[Any, ...]


class NoValueError(Exception):
    """The expression has no value."""


class Number(NamedTuple):
    value: Fraction
    whole: bool


# ---- the reference ------------------------------------------------------------------------------


def read_number(text: str, whole: bool) -> Fraction:
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    mantissa, mark, exponent = unsigned.lower().partition("e")
    integer, dot, fraction = mantissa.partition(".")
    digits = integer + fraction
    exponent_digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
    parts = [digits] + ([exponent_digits] if mark else [])
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise NoValueError
    if whole and (mark or dot):
        raise NoValueError
    value = Fraction(int(digits)) * Fraction(10) ** (int(exponent or 0) - len(fraction))
    return -value if text[0] == "-" else value


def as_fraction(value: Any, other: Any) -> Fraction:
    if isinstance(value, Number):
        return value.value
    return read_number(value, whole=isinstance(other, Number) and other.whole)


def greater(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None for NULL."""
    if left is None or right is None:
        return None
    first, second = as_fraction(left, right), as_fraction(right, left)
    return (first > second) - (first < second)


def same(left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        if isinstance(left, Number) or isinstance(right, Number):
            return False
        left, right = (
            side.lower() == "true" if isinstance(side, str) else side for side in (left, right)
        )
        return bool(left == right)
    return greater(left, right) == 0


def condition(value: Any) -> bool | None:
    return value if value is None or isinstance(value, bool) else False


ORDERINGS: dict[str, tuple[int, ...]] = {">": (1,), ">=": (0, 1), "<": (-1,), "<=": (-1, 0)}
WEIGHT = {False: 0, None: 1, True: 2}


def evaluate(node: Node, attributes: dict[str, str]) -> Any:
    kind, *parts = node
    if kind == "literal":
        return parts[1]
    if kind == "name":
        return attributes.get(parts[0])
    if kind in ("and", "or"):
        left = condition(evaluate(parts[0], attributes))
        if left is (kind == "or"):
            return left
        right = condition(evaluate(parts[1], attributes))
        pick = min if kind == "and" else max
        return pick(left, right, key=lambda value: WEIGHT[value])
    if kind in ("in", "not in"):
        value, options = evaluate(parts[0], attributes), parts[1]
        return None if value is None else (value in options) is (kind == "in")
    values = [evaluate(part, attributes) for part in parts]
    if kind == "not":
        truth = condition(values[0])
        return None if truth is None else not truth
    if kind == "-":
        if isinstance(values[0], Number):
            return Number(-values[0].value, values[0].whole)
        return None
    if kind in ("is null", "is not null"):
        return (values[0] is None) is (kind == "is null")
    if kind in ("=", "<>"):
        equality = same(*values)
        return equality if equality is None or kind == "=" else not equality
    if kind in ORDERINGS:
        order = greater(*values)
        return None if order is None else order in ORDERINGS[kind]
    return evaluate_between(kind == "between", *values)


def evaluate_between(inside: bool, value: Any, low: Any, high: Any) -> bool | None:
    """Outside = below the one or above the other bound, looked at in this order."""
    below = greater(value, low)
    outside = None if below is None else below == -1
    if not outside:
        above = greater(value, high)
        beyond = None if above is None else above == 1
        outside = max(outside, beyond, key=lambda truth: WEIGHT[truth])
    return outside if outside is None else outside is not inside


def reference(node: Node, attributes: dict[str, str]) -> str:
    try:
        value = condition(evaluate(node, attributes))
    except NoValueError:
        return "error"
    return "null" if value is None else str(value).lower()


# ---- writing it down ----------------------------------------------------------------------------

LEVEL = {"or": 0, "and": 1, "=": 2, "<>": 2, "is null": 2, "is not null": 2, "not": 4, "-": 4}
LEVEL |= {"literal": 5, "name": 5}
GAPS = ["", "", " ", "  ", "\n", "\t\r\f", "/**/", "/* it's ' * / -- */", "-- NOT ' /*\n", "--\r"]


def tokens_of(node: Node, level: int, chance: random.Random) -> list[str]:
    kind, *parts = node
    own = LEVEL.get(kind, 3)
    if own < level or chance.random() < 0.15:
        return ["(", *tokens_of(node, 0, chance), ")"]
    if kind in ("literal", "name"):
        return [parts[0]]
    if kind in ("not", "-"):
        plus = ["+"] if chance.random() < 0.1 else []
        return [*plus, kind, *tokens_of(parts[0], 4, chance)]
    left = tokens_of(parts[0], 4 if own == 3 else own, chance)
    if kind in ("is null", "is not null"):
        return [*left, *kind.split()]
    if kind in ("in", "not in"):
        options = [quoted(option) for option in parts[1]]
        listed = [token for option in options for token in (option, ",")][:-1]
        return [*left, *kind.split(), "(", *listed, ")"]
    if kind in ("between", "not between"):
        bounds = (tokens_of(part, 4, chance) for part in parts[1:])
        return [*left, *kind.split(), *next(bounds), "and", *next(bounds)]
    return [*left, kind, *tokens_of(parts[1], own + 1, chance)]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def written(node: Node, seed: int) -> str:
    chance = random.Random(seed)
    text = ""
    for token in tokens_of(node, 0, chance):
        gap = chance.choice(GAPS)
        sticks = (text[-1:].isalnum() or text[-1:] in "_$.'") and (
            token[0].isalnum() or token[0] in "_$.'"
        )
        # Two minus signs would begin a comment, whether of two tokens or of a token and a gap.
        if (not gap and sticks) or text[-1:] == (gap + token)[0] == "-":
            gap = " " + gap
        keyword = token.isalpha() and token.islower()
        text += gap + (chance.choice([token.upper(), token, token.title()]) if keyword else token)
    return text + chance.choice([*GAPS, "-- the end"])


# ---- trees --------------------------------------------------------------------------------------

# Names have an underscore, keywords are lower-case letters: so only keywords change their case.
NAMES = ["_a", "_b", "_c", "TAGS", "$1"]
TEXTS = ["", "5", "5.0", "05", "+5", "-5", ".5", "5.", "1e1", "10", "9.99", "1E-2", "abc", "it's"]
TEXTS += ["true", "TRUE", "false", "NaN", " 5", "5 ", "1_0", "٣", "--", "9223372036854775808", "x"]
NUMBERS = ["0", "5", "05.0", "5L", "10", "0.5", ".5", "5.", "1E1", "1e-2", "9.99", "0.0"]
NUMBERS += ["9223372036854775807", "9223372036854775807l", "9007199254740993", "9007199254740992.0"]


def number_literal(text: str) -> Node:
    whole = text.rstrip("lL").isdigit()
    return ("literal", text, Number(read_number(text.rstrip("lL"), whole), whole))


names = st.sampled_from(NAMES).map(lambda name: ("name", name))
numbers = st.sampled_from(NUMBERS).map(number_literal)
texts = st.sampled_from(TEXTS).map(lambda text: ("literal", quoted(text), text))
booleans = st.sampled_from([("literal", "true", True), ("literal", "false", False)])
nulls = st.just(("literal", "null", None))
numeric = st.one_of(
    names, numbers, st.one_of(names, numbers, texts).map(lambda operand: ("-", operand))
)
options = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4).map(tuple)


def bounds_in_order(node: Node) -> bool:
    """Bounds that are both literals and the wrong way round are refused, so none are written."""
    low, high = (bound[1] if bound[0] == "-" else bound for bound in node[2:])
    if low[0] == high[0] == "literal" and isinstance(low[2], Number):
        order = greater(*(evaluate(bound, {}) for bound in node[2:]))
        return order is None or order <= 0
    return True


between = st.tuples(st.sampled_from(["between", "not between"]), numeric, numeric, numeric).filter(
    bounds_in_order
)
comparisons = st.one_of(
    st.tuples(st.sampled_from(sorted(ORDERINGS)), numeric, numeric),
    between,
    st.tuples(st.sampled_from(["in", "not in"]), names, options),
    st.tuples(
        st.sampled_from(["=", "<>"]),
        st.one_of(names, numbers, texts, booleans),
        st.one_of(names, numbers, texts, booleans),
    ),
)
any_leaf = st.one_of(comparisons, comparisons, comparisons, names, texts, booleans, nulls)


@st.composite
def leaves(draw: st.DrawFn) -> Node:
    """`any_leaf` under a short name: spelled out in a larger strategy it would fill pages."""
    return draw(any_leaf)


def is_null_literal(node: Node) -> bool:
    return node == ("literal", "null", None)


def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    equal = st.tuples(st.sampled_from(["=", "<>"]), inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["is null", "is not null"]), inner),
        equal.filter(lambda node: not any(is_null_literal(part) for part in node[1:])),
        st.tuples(st.just("is null"), inner.map(lambda node: ("-", node))),
    )


trees: st.SearchStrategy[Node] = st.recursive(leaves(), larger, max_leaves=14)
messages = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS), max_size=5)


@pytest.mark.parametrize("examples", [250, pytest.param(4_000, marks=pytest.mark.long)])
def test_text_and_tree_have_the_same_outcome(examples: int) -> None:
    @settings(derandomize=True, max_examples=examples, deadline=None)
    @given(tree=trees, message=messages, seed=st.integers(0, 2**32))
    @example(
        tree=("not between", ("name", "_a"), ("name", "_b"), number_literal("5")),
        message={},
        seed=1,
    )
    def is_that_of_the_tree(tree: Node, message: dict[str, str], seed: int) -> None:
        sql = written(tree, seed)
        assert outcome(sql, message) == reference(tree, message), sql

    is_that_of_the_tree()


@pytest.mark.long
@settings(derandomize=True, max_examples=300, deadline=None)
@given(tree=trees, message=messages, seeds=st.tuples(st.integers(0, 99), st.integers(100, 199)))
def test_blanks_case_and_comments_change_nothing(
    tree: Node, message: dict[str, str], seeds: tuple[int, int]
) -> None:
    first, second = (outcome(written(tree, seed), message) for seed in seeds)
    assert first == second
