"""Times as the service writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def to_text(when: datetime | str) -> str:
    """RFC 3339 in UTC with milliseconds; a text is taken as it is, a naive time as local."""
    if isinstance(when, str):
        return when
    utc = when.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def just_before(when: datetime | str) -> str:
    """The millisecond before a time: logs are read from behind a time on."""
    moment = datetime.fromisoformat(when) if isinstance(when, str) else when
    return to_text(moment - timedelta(milliseconds=1))
