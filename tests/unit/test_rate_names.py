"""The attributes of a counter that have its last hour."""

from __future__ import annotations

from typing import get_args

from cirrusmq.metering.usage import Kind
from cirrusmq.storage.counters import (
    INTERVAL_MS,
    LETTERS,
    interval_starts,
    past_rates,
    rate_name,
    read_counts,
)

NOW_MS = 1_795_160_123_456
OTHERS = ["pk", "sk", "messages", "bytes", "rewindable", "changed"]


def names(kind: str, *before: int) -> list[str]:
    """The attributes of a kind, so many intervals before now."""
    return [rate_name(kind, NOW_MS - each * INTERVAL_MS) for each in before]


def test_every_kind_of_usage_has_a_letter_of_its_own() -> None:
    assert set(LETTERS) == {*get_args(Kind), "attempts", "kept"}
    assert len(set(LETTERS.values())) == len(LETTERS)


def test_an_hour_has_twelve_intervals_and_the_last_one_runs() -> None:
    starts = interval_starts(NOW_MS)
    assert [each % INTERVAL_MS for each in starts] == [0] * 12
    assert starts == sorted(starts)
    assert 0 <= NOW_MS - starts[-1] < INTERVAL_MS
    assert starts[-1] - starts[0] == 11 * INTERVAL_MS


def test_counts_are_added_up_over_counters_interval_by_interval() -> None:
    first = {rate_name("sent", NOW_MS): {"N": "2"}, rate_name("kept", NOW_MS): {"N": "9"}}
    second = {rate_name("sent", NOW_MS): {"N": "3"}, names("sent", 11)[0]: {"N": "1"}}
    assert read_counts([first, second], "sent", NOW_MS) == [1, *[0] * 10, 5]


def test_nothing_is_past_while_it_is_read_or_only_just_was() -> None:
    assert past_rates([*OTHERS, *names("sent", *range(-1, 18))], NOW_MS) == []


def test_all_past_rates_are_removed_when_some_are_long_past() -> None:
    held = [*OTHERS, *names("sent", *range(19)), *names("kept", 0, 12)]
    assert past_rates(held, NOW_MS) == sorted([*names("sent", *range(12, 19)), *names("kept", 12)])


def test_one_write_removes_no_more_than_its_expression_can_name() -> None:
    held = [name for kind in LETTERS for name in names(kind, *range(30, 60))]
    removed = past_rates(held, NOW_MS)
    assert len(removed) == 100
    assert set(removed) < set(held)


def test_intervals_are_told_apart_for_a_month() -> None:
    month = range(0, 30 * 86_400_000, INTERVAL_MS)
    assert len({rate_name("sent", NOW_MS + each) for each in month}) == len(month)
