"""The simulation's zone whose clocks are set: as real zones, and its times as a schedule's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cirrusmq.schedules import rules
from cirrusmq.schedules.rules import Rule, latest
from cirrusmq_local.judging.zones import MINUTE_MS, SetClock, times_of

SPRING, AUTUMN = datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


@pytest.mark.parametrize(("at", "minutes"), [(SPRING, 60), (AUTUMN, -60)])
def test_it_is_a_zone_as_london_is(at: datetime, minutes: int) -> None:
    london = ZoneInfo("Europe/London")
    zone = SetClock(ms(at), minutes)
    before = timedelta(minutes=60 * (minutes < 0))  # in autumn it is summer time until then
    for minute in range(-180, 180, 7):
        utc = at + timedelta(minutes=minute)
        local = utc.astimezone(london).replace(tzinfo=None) - before
        mine = utc.astimezone(zone)
        assert mine.replace(tzinfo=None) == local
        for fold in (0, 1):
            theirs = (local + before).replace(tzinfo=london, fold=fold)
            assert local.replace(tzinfo=zone, fold=fold).astimezone(UTC) == theirs.astimezone(UTC)


@pytest.mark.parametrize("minutes", [60, 30, -30, -60])
@pytest.mark.parametrize(("hours", "among"), [("*", None), ("1-2", (1, 2)), ("0,2", (0, 2))])
def test_times_found_by_trying_are_a_schedules(
    minutes: int, hours: str, among: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = datetime(2026, 11, 18, 1, 10, tzinfo=UTC)
    zone = SetClock(ms(at), minutes)
    monkeypatch.setattr(rules, "_zone", lambda _: zone)
    rule = Rule(cron=f"*/5 {hours} * * *", time_zone="Europe/Berlin")
    first, last = ms(at) - 90 * MINUTE_MS, ms(at) + 150 * MINUTE_MS

    assert latest(rule, first, last, 1_000) == times_of(zone, 5, among, first, last)
