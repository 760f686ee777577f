"""Pauses of a queue or receiver, and how long of a message's life they take."""

from __future__ import annotations

import pytest

from cirrusmq.base.limits import RETENTION_SECONDS
from cirrusmq.model.pauses import MAX_PAUSES, Pause, changed, paused_ms

DAY_MS = 86_400_000


def test_a_pause_begins_once_and_ends_once() -> None:
    begun = changed([], 1_000, paused=True)
    assert begun == [(1_000, 0)] == changed(begun, 2_000, paused=True)
    ended = changed(begun, 3_000, paused=False)
    assert ended == [(1_000, 3_000)] == changed(ended, 4_000, paused=False)
    assert changed(ended, 5_000, paused=True) == [(1_000, 3_000), (5_000, 0)]


def test_a_pause_begun_by_a_later_clock_ends_behind_its_beginning() -> None:
    assert changed([(1_000, 0)], 900, paused=False) == [(1_000, 1_001)]


def test_pauses_before_all_messages_are_forgotten() -> None:
    kept_ms = 1_000 * RETENTION_SECONDS[1]
    old, recent = (0, 10), (0, 11)
    assert changed([old, recent], 10 + kept_ms, paused=True) == [recent, (10 + kept_ms, 0)]


def test_the_oldest_of_too_many_become_one() -> None:
    held: list[Pause] = [(10 * n, 10 * n + 1) for n in range(1, MAX_PAUSES + 1)]
    after = changed(held, 9_999, paused=True)
    assert len(after) == MAX_PAUSES
    assert after[:2] == [(10, 21), (30, 31)]
    assert after[-1] == (9_999, 0)


@pytest.mark.parametrize(
    ("since_ms", "now_ms", "expected"),
    [(0, 50, 0), (0, 150, 50), (120, 150, 30), (0, 250, 100), (210, 250, 0), (0, 350, 150)],
)
def test_only_pauses_in_a_messages_life_count(since_ms: int, now_ms: int, expected: int) -> None:
    assert paused_ms([(100, 200), (300, 0)], since_ms, now_ms) == expected
