"""Which times of backlogs later trends read, and which parts of the table a run writes again."""

from __future__ import annotations

import pytest
from tests.spark.transforms.frames import ms

from cirrusmq_reports.backlog_history import plan_history
from cirrusmq_reports.publication import Part
from cirrusmq_reports.times import HOUR_MS, iso_day


def part(name: str) -> Part:
    return Part("backlog", name, "run", 1)


def test_days_become_a_month_when_it_is_over() -> None:
    parts = [part("2026-10"), part("2026-11-29"), part("2026-11-30")]
    same = plan_history(parts, [], [ms("2026-11-30 22:00")], 24)
    assert [each.part for each in same.rewritten] == ["2026-11-30"]
    assert [each.part for each in same.kept] == ["2026-10", "2026-11-29"]
    over = plan_history(parts, [ms("2026-11-30 22:00")], [ms("2026-12-01 01:30")], 24)
    assert over.month == "2026-12"
    assert [each.part for each in over.rewritten] == ["2026-11-29", "2026-11-30"]
    assert [each.part for each in over.kept] == ["2026-10"]


def test_an_older_time_is_added_to_its_month() -> None:
    parts = [part("2026-10"), part("2026-11-29")]
    known = [ms("2026-11-29 01:30")]
    late = plan_history(parts, known, [ms("2026-10-05 01:30")], 24)
    assert late.month == "2026-11"
    assert [each.part for each in late.rewritten] == ["2026-10"]


@pytest.mark.long
def test_trends_read_as_many_times_after_three_years_as_after_a_week() -> None:
    known: list[int] = []
    parts: list[Part] = []
    read, written = [], []
    at_ms = ms("2026-01-01 00:30")
    for _ in range(3 * 365 * 24):
        history = plan_history(parts, known, [at_ms], 24)
        known = list(history.times_ms)
        names = {each.part for each in history.kept} | {iso_day(at_ms)}
        names |= {each.part[:7] for each in history.rewritten if each.part[:7] != history.month}
        read.append(len(known))
        written.append(len(history.rewritten))
        parts = [part(name) for name in sorted(names)]
        at_ms += HOUR_MS
    assert max(read) == read[-1] == read[24 * 7] == 100
    assert max(written) <= 31
    assert len(parts) <= 3 * 12 + 31


def test_the_time_an_hour_ago_stays_however_many_are_newer() -> None:
    start = ms("2026-11-20 08:00")
    times = [start + minute * 30_000 for minute in range(300)]
    history = plan_history([], times[:-1], times[-1:], 24)
    assert len(history.times_ms) == 101
    assert history.times_ms[0] == times[-1] - HOUR_MS
