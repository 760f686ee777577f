"""Times in the service's format."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def to_text(when: datetime | str) -> str:
    """Returns RFC 3339 in UTC with milliseconds; a text unchanged, a naive time as local."""
    if isinstance(when, str):
        return when
    utc = when.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_moment(when: datetime | str | float) -> str | float:
    """As `to_text`; seconds since the epoch unchanged."""
    return when if isinstance(when, int | float) else to_text(when)


def just_before(when: datetime | str) -> str:
    """Returns the millisecond before a time, since logs are read from after a time on."""
    moment = datetime.fromisoformat(when) if isinstance(when, str) else when
    return to_text(moment - timedelta(milliseconds=1))
