"""Times as the service writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def to_text(when: datetime | str) -> str:
    """RFC 3339 in UTC with milliseconds; a text is taken as it is, a naive time as local."""
    if isinstance(when, str):
        return when
    utc = when.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
