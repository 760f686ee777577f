"""The number of messages that a schedule may bring in a run."""

from __future__ import annotations

import pytest

from cirrusmq_local.verifying.ticks import missed

MINUTE_MS = 60_000
SINCE_MS = 100 * MINUTE_MS


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
