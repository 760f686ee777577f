"""Thousands of texts, most of them nonsense: each is refused or has an outcome, soon."""

from __future__ import annotations

import gc
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.unit.filters.sql_outcomes import outcome

from cirrusmq.base.errors import InvalidFilter

INPUTS, LONG_INPUTS = 2_000, 100_000
SECONDS_PER_INPUT = 1.0

TOKENS = ["a", "b", "TAGS", "$c", "5", "5L", "-5", "1.5", ".5", "1E9", "1E999999999", "9" * 40]
TOKENS += ["'x'", "''", "'it''s'", "TRUE", "false", "NULL", "(", ")", "(", ")", ",", "'", "--"]
TOKENS += ["=", "<>", ">", ">=", "<", "<=", "+", "-", "AND", "or", "NOT", "IS", "IN", "BETWEEN"]
TOKENS += ["/*", "*/", "/* c */", "-- c\n", "!", '"', ";", "\x00", "é", "\ud800", "a IN ('x')"]
TOKENS += ["a > 5", "b = 'x'", "a BETWEEN 1 AND 5", "b IS NOT NULL", "a = b", "NOT (a = 1)"]
SEEDLINGS = [
    "a IS NOT NULL AND (a BETWEEN 10 AND 100 OR b IN ('x', 'y')) AND TAGS = 'order'",
    "NOT (a > 5 OR b <> 'it''s') -- comment\n AND TRUE = (a <= b)",
    "-a = -5 OR +a >= 1.5E3 /* c */ AND b NOT IN ('x') IS NOT NULL",
]
VALUES: list[str | bytes] = [
    "",
    "5",
    "x",
    "1.5",
    "true",
    "1E999999999",
    "9" * 1_024,
    "NaN",
    b"5",
    "it's",
]


def soup(chance: random.Random) -> str:
    """Tokens in no order."""
    return chance.choice([" ", ""]).join(chance.choices(TOKENS, k=chance.randrange(12)))


def sentence(chance: random.Random) -> str:
    """Conditions, mostly joined as they should be."""
    parts = [chance.choice(TOKENS[-6:])]
    for _ in range(chance.randrange(8)):
        parts += [chance.choice([" AND ", " OR ", " = ", " "]), chance.choice(TOKENS[-6:])]
    return "".join(parts)


def mutant(chance: random.Random) -> str:
    """A good filter with some characters cut out, doubled or replaced."""
    text = list(chance.choice(SEEDLINGS))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text))
        text[at] = chance.choice(["", text[at] * 2, chance.choice(TOKENS)])
    return "".join(text)


def noise(chance: random.Random) -> str:
    """Any characters."""
    return "".join(chr(chance.choice([chance.randrange(128), 0x20AC])) for _ in range(12))


def nest(chance: random.Random) -> str:
    """Deep or long ones, now and then beyond a limit."""
    depth = chance.randrange(200)
    opening = chance.choice(["(", "NOT ", "-(", "+", "a = (", "TRUE OR ("])
    return opening * depth + "a" + ")" * (depth if "(" in opening else chance.randrange(2))


MAKERS = [soup, soup, sentence, mutant, mutant, noise]


def end_of(sql: str, attributes: dict[str, str | bytes]) -> str:
    try:
        return outcome(sql, attributes)
    except InvalidFilter:
        return "refused"


@pytest.fixture
def own_garbage() -> Iterator[None]:
    """Collections look at what this test makes, not at all that others left in its process."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("own_garbage")
@pytest.mark.parametrize("inputs", [INPUTS, pytest.param(LONG_INPUTS, marks=pytest.mark.long)])
def test_every_text_is_refused_or_has_an_outcome(inputs: int) -> None:
    chance = random.Random(20_261_120)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for number in range(inputs):
        make = nest if number % 50 == 0 else MAKERS[number % len(MAKERS)]
        sql = make(chance)
        names = chance.sample(["a", "b", "TAGS", "$c"], 2)
        attributes = {name: chance.choice(VALUES) for name in names}
        started = time.thread_time()
        outcomes[end_of(sql, attributes)] += 1
        slowest = max(slowest, time.thread_time() - started)
    assert slowest < SECONDS_PER_INPUT
    # The texts are worth something only if they reach every end.
    ends = ("true", "false", "null", "error", "refused")
    assert all(outcomes[end] > inputs / 200 for end in ends)
    assert sum(outcomes.values()) == inputs
