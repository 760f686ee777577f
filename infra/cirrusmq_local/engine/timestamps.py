"""Times as manifests write them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_time(ms: int) -> str:
    """Returns epoch milliseconds as `2026-11-03T10:15:30.123Z`."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
