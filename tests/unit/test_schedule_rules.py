"""The times of schedules, with zones whose clocks are set forward and back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.schedules.rules import Rule, check_rule, latest, next_after

MINUTE_MS = 60_000
DAY_MS = 86_400_000
JUMPS = (
    *("2026-03-08T07:00:00Z", "2026-03-29T01:00:00Z", "2026-04-04T15:00:00Z"),
    *("2026-10-03T15:30:00Z", "2026-10-25T01:00:00Z", "2026-11-01T06:00:00Z"),
)
"""The moments at which clocks are set in zones below."""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def at(text: str) -> int:
    return parse_time("at", text)


def following(rule: Rule, after: str, count: int) -> list[str]:
    """The next times of a rule, without seconds."""
    found, time = [], at(after)
    for _ in range(count):
        following = next_after(rule, time)
        assert following is not None
        time = following
        found.append(format_time(time)[:16])
    return found


class TestLocalTimes:
    @pytest.mark.parametrize(
        ("cron", "after", "expected"),
        [
            # Clocks go from 02:00 to 03:00: the time that does not exist is the jump.
            ("30 2 * * *", "2026-03-28T12:00:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]),
            ("*/20 2 * * *", "2026-03-28T12:00:00Z", ["2026-03-29T01:00", "2026-03-30T00:00"]),
            # 02:30 comes twice: the first one alone.
            ("30 2 * * *", "2026-10-24T12:00:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"]),
            ("*/30 2 * * *", "2026-10-25T00:00:00Z", ["2026-10-25T00:30", "2026-10-26T01:00"]),
            # Of all hours, each that there is.
            ("0 * * * *", "2026-03-28T23:30:00Z", ["2026-03-29T00:00", "2026-03-29T01:00"]),
            (
                "0 0-23 * * *",
                "2026-10-24T23:30:00Z",
                ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"],
            ),
        ],
    )
    def test_clock_changes(self, cron: str, after: str, expected: list[str]) -> None:
        rule = Rule(cron=cron, time_zone="Europe/Berlin")

        assert following(rule, after, len(expected)) == expected

    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            # The minute before 03:00 is 01:59.
            ("2026-03-29T00:57:00Z", ["2026-03-29T01:00", "2026-03-29T01:03", "2026-03-29T01:06"]),
            ("2026-03-29T01:00:30Z", ["2026-03-29T01:03", "2026-03-29T01:06"]),
            ("2026-10-25T00:57:00Z", ["2026-10-25T01:00", "2026-10-25T01:03"]),
        ],
    )
    def test_nothing_is_left_out_at_a_clock_change(self, after: str, expected: list[str]) -> None:
        rule = Rule(cron="*/3 * * * *", time_zone="Europe/Berlin")

        assert following(rule, after, len(expected)) == expected

    @pytest.mark.parametrize("zone", ZONES)
    def test_all_minutes_are_there_around_each_jump(self, zone: str) -> None:
        rule = Rule(cron="*/10 * * * *", time_zone=zone)
        for moment in JUMPS:
            self._check_around(rule, at(moment))

    def _check_around(self, rule: Rule, moment_ms: int) -> None:
        """The local minutes of these zones are shifted by whole or half hours, or by 45 minutes."""
        step_ms, first_ms = 10 * MINUTE_MS, moment_ms - 3_600_000
        phase_ms = 5 * MINUTE_MS if rule.time_zone == "Asia/Kathmandu" else 0
        expected = range(first_ms + phase_ms, moment_ms + 3_600_000, step_ms)
        for time, later in pairwise(expected):
            for since_ms in (0, 30_000, step_ms - 1):
                assert next_after(rule, time + since_ms) == later
            assert latest(rule, first_ms, time, 100) == list(expected[: expected.index(time) + 1])

    def test_a_second_hour_fires_nothing_already_fired_in_the_first(self) -> None:
        rule = Rule(cron="15 2 * * *", time_zone="Europe/Berlin")

        assert following(rule, "2026-10-25T01:05:00Z", 1) == ["2026-10-26T01:15"]

    def test_a_jump_of_half_an_hour(self) -> None:
        rule = Rule(cron="10 2 4 10 *", time_zone="Australia/Lord_Howe")

        assert following(rule, "2026-10-01T00:00:00Z", 1) == ["2026-10-03T15:30"]

    @pytest.mark.few(1)
    @pytest.mark.parametrize("limit", [10, pytest.param(2_881, marks=pytest.mark.long)])
    @given(
        st.sampled_from(ZONES),
        st.sampled_from(["*", "0", "*/15", "30", "7,37"]),
        st.sampled_from(["*", "2", "0,1,2,3", "*/2", "23", "0-23"]),
        st.integers(at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")),
        st.integers(1, 20),
    )
    def test_backwards_there_are_the_same_times_as_forwards(
        self, limit: int, zone: str, minutes: str, hours: str, from_ms: int, count: int
    ) -> None:
        """Of two days, but of no more times than `limit`."""
        rule = Rule(cron=f"{minutes} {hours} * * *", time_zone=zone)
        until_ms = from_ms + 2 * DAY_MS
        forwards: list[int] = []
        time = next_after(rule, from_ms - 1)
        while time is not None and time <= until_ms:
            assert not forwards or time > forwards[-1]
            forwards.append(time)
            if len(forwards) == limit:
                until_ms = time
            time = next_after(rule, time)

        assert latest(rule, from_ms, until_ms, count) == forwards[-count:]


class TestIntervals:
    def test_they_are_multiples_since_1970(self) -> None:
        rule = Rule(every_seconds=420)

        assert next_after(rule, 420_000) == 840_000
        assert latest(rule, 420_000, 1_700_000, 2) == [1_260_000, 1_680_000]
        assert latest(rule, 1_000_000, 1_700_000, 9) == [1_260_000, 1_680_000]
        assert latest(rule, 1_270_000, 1_600_000, 9) == []


class TestRefusals:
    @pytest.mark.parametrize(
        "cron",
        ["", "* * * *", "0 * * * * *", "61 * * * *", "a b c d e", "L/2 * * * *", "0 0 30 2 *"],
    )
    def test_expressions(self, cron: str) -> None:
        with pytest.raises(InvalidParameter, match=r"^cron: "):
            check_rule(Rule(cron=cron), 0)

    @pytest.mark.parametrize("zone", ["", "Berlin", "../UTC", "Europe", "zones", "Europe/Berlin/"])
    def test_zones(self, zone: str) -> None:
        with pytest.raises(InvalidParameter, match=r"^time_zone: "):
            check_rule(Rule(cron="0 8 * * *", time_zone=zone), 0)

    @pytest.mark.parametrize("rule", [Rule(), Rule(cron="0 8 * * *", every_seconds=60)])
    def test_both_and_none(self, rule: Rule) -> None:
        with pytest.raises(InvalidParameter, match="exactly one"):
            check_rule(rule, 0)

    def test_parts_of_minutes(self) -> None:
        with pytest.raises(InvalidParameter, match="multiple of 60"):
            check_rule(Rule(every_seconds=90), 0)
