"""The number of messages that a schedule may bring in a run."""

from __future__ import annotations

import pytest

from cirrusmq.schedules.rules import Rule
from cirrusmq_local.verifying.changed_schedules import Defined, check
from cirrusmq_local.verifying.ticks import missed

MINUTE_MS = 60_000
SINCE_MS = 100 * MINUTE_MS
NEVER = 1_000_000


@pytest.mark.parametrize(
    ("name", "minutes", "came", "kept"),
    [
        ("one", -1, 0, True),
        ("one", 1, 0, True),
        ("one", 1, 2, True),
        ("one", 3, 1, False),
        ("one", 3, 2, True),
        ("one", 3, 4, True),
        ("one", 3, 5, False),
        ("two", 3, 1, True),
        ("two", 3, 3, False),
    ],
)
def test_each_time_brings_one_message(name: str, minutes: int, came: int, kept: bool) -> None:
    """A sweep may be a minute late, and never comes before a time."""
    assert (missed(name, SINCE_MS, SINCE_MS + minutes * MINUTE_MS, came) == []) is kept


@pytest.mark.parametrize(
    ("until", "sure_until", "came", "told"),
    [
        (NEVER, NEVER, (0, 1, 2, 3, 4, 5, 6), ""),
        (NEVER, NEVER, (0, 1, 2, 3, 4), "5 messages of 6 to 7 times"),
        (NEVER, NEVER, (0, 1, 2, 3, 4, 5, 6, 6), "8 messages of 6 to 7 times"),
        (NEVER, NEVER, (0, 1, 1.1, 3, 4, 5, 6), "54000 ms before its time"),
        (3, 3, (0, 1, 2), ""),
        (3, 3, (0, 1), "2 messages of 3 to 3 times"),
        (3, 3, (0, 1, 2, 3), "4 messages of 3 to 3 times"),
        (4, 1, (0,), ""),
        (4, 1, (0, 1, 2, 3), ""),
        (4, 1, (), "0 messages of 1 to 4 times"),
        (0, 0, (), ""),
    ],
)
def test_a_definition_fires_while_it_is_in_force(
    until: int, sure_until: int, came: tuple[float, ...], told: str
) -> None:
    """All are minutes behind the first time; the end is 6.9 minutes behind it."""
    first = SINCE_MS
    defined = Defined(
        Rule(every_seconds=60), first, first + until * MINUTE_MS, first + sure_until * MINUTE_MS
    )
    at_ms = [round(first + each * MINUTE_MS) for each in came]

    found = [*check(defined, at_ms, round(first + 6.9 * MINUTE_MS), 1_000)]

    assert [told in str(each) for each in found] == ([True] if told else [])
