"""Times as text: RFC 3339 in UTC, and the days and months cut from them."""

from __future__ import annotations

from datetime import UTC, datetime

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
_LAST_MS = 253_402_300_799_999


def parse_time(text: str) -> int:
    """Returns epoch milliseconds of a date or an RFC 3339 time, in UTC if it names no zone.

    Raises ValueError.
    """
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def parse_moment(text: str) -> int:
    """As `parse_time`, but raises ValueError before 1970 and for times that cannot be shown."""
    at_ms = parse_time(text)
    if not 0 <= at_ms <= _LAST_MS:
        raise ValueError(f"{text} is not a time from 1970 to 9999")
    return at_ms


def iso_time(at_ms: int) -> str:
    """`2026-11-20T08:00:00.123Z`."""
    return f"{_utc(at_ms):%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def minute_text(at_ms: int) -> str:
    """`2026-11-20 08:00`, of UTC: for a person."""
    return f"{_utc(at_ms):%Y-%m-%d %H:%M}"


def iso_day(at_ms: int) -> str:
    """`2026-11-20`: the name of the day's partition."""
    return f"{_utc(at_ms):%Y-%m-%d}"


def iso_month(at_ms: int) -> str:
    """`2026-11`: the name of an invoice's month."""
    return f"{_utc(at_ms):%Y-%m}"


def next_month(month: str) -> str:
    """`2027-01` of `2026-12`."""
    year, number = map(int, month.split("-"))
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"


def month_ms(month: str) -> int:
    """Returns the time at which a month begins."""
    return parse_time(f"{month}-01")


def closes_ms(month: str, close_days: int) -> int:
    """Returns the time at which a month's invoices close: `close_days` days after its end."""
    return month_ms(next_month(month)) + close_days * DAY_MS


def days_between(from_ms: int, to_ms: int) -> list[str]:
    """Returns the days that an interval touches."""
    first_ms = from_ms - from_ms % DAY_MS
    return [iso_day(at_ms) for at_ms in range(first_ms, to_ms, DAY_MS)]


def compact_time(at_ms: int) -> str:
    """`20261120T080000123Z`: a time that can be part of a path, and sorts."""
    return f"{_utc(at_ms):%Y%m%dT%H%M%S}{at_ms % 1000:03d}Z"


def _utc(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, UTC)
