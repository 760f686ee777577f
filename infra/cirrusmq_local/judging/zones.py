"""A time zone whose clocks are set in the middle of a run, and the times that a schedule has in it.

UTC      11:00 ─── 11:30 ─────────── 12:00
forward  11:00     12:30: 11:30 to 12:30 do not exist
back     11:00     10:30: 10:30 to 11:30 come twice
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta, tzinfo

MINUTE_MS = 60_000
_NONE = timedelta(0)


class SetClock(tzinfo):
    """The time of UTC until a moment, and then another one by a number of minutes."""

    def __init__(self, at_ms: int, minutes: int) -> None:
        self.at = _local(at_ms)
        self.shift = timedelta(minutes=minutes)

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """Returns 0 or the shift; by `fold` where a local time comes twice or never."""
        if moment is None:
            return _NONE
        local = moment.replace(tzinfo=None)
        if local < self.at + min(_NONE, self.shift):
            return _NONE
        if local >= self.at + max(_NONE, self.shift):
            return self.shift
        return self.shift if moment.fold else _NONE

    def dst(self, moment: datetime | None) -> timedelta:
        """Returns the same as `utcoffset`: standard time is UTC."""
        return self.utcoffset(moment)

    def tzname(self, moment: datetime | None) -> str:
        """Returns a name of the zone."""
        return "set"

    def fromutc(self, moment: datetime) -> datetime:
        """Returns the local time of a moment of UTC."""
        utc = moment.replace(tzinfo=None)
        if utc < self.at:
            return moment
        local = moment + self.shift
        return local.replace(fold=int(local.replace(tzinfo=None) < self.at))


def times_of(
    zone: SetClock, every_minutes: int, hours: Collection[int] | None, first_ms: int, last_ms: int
) -> list[int]:
    """Returns the times of a schedule by trying each minute, the first and last moment included.

    hours: of the local clock. A time that comes twice fires at the first, one that never comes
    fires when the clock is set. None means all hours: a time fires in both of two same hours.
    """
    found: set[int] = set()
    seen: set[datetime] = set()
    at_ms = _ms(zone.at)
    begin_ms = min(first_ms, at_ms) - 3 * 60 * MINUTE_MS
    for utc_ms in range(begin_ms // MINUTE_MS * MINUTE_MS, last_ms + 1, MINUTE_MS):
        local = zone.fromutc(_local(utc_ms).replace(tzinfo=zone)).replace(tzinfo=None)
        if hours is None:
            fires = local.minute % every_minutes == 0
        else:
            fires = local not in seen and _is_time(local, every_minutes, hours)
            seen.add(local)
        if fires:
            found.add(utc_ms)
    if hours is not None and zone.shift > _NONE:
        skipped = range(zone.shift // timedelta(minutes=1))
        gap = (zone.at + timedelta(minutes=number) for number in skipped)
        if any(_is_time(local, every_minutes, hours) for local in gap):
            found.add(at_ms)
    return sorted(time for time in found if first_ms <= time <= last_ms)


def _is_time(local: datetime, every_minutes: int, hours: Collection[int]) -> bool:
    return local.minute % every_minutes == 0 and local.hour in hours


def _local(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)


def _ms(utc: datetime) -> int:
    return round(utc.replace(tzinfo=UTC).timestamp() * 1000)
