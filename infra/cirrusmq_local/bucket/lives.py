"""Expiry of objects by S3's lifecycle rules.

S3 adds the days to the time at which an object was written, and deletes it at the midnight (UTC)
that follows:

    Monday 10:30, one day ── Tuesday 10:30 ── Wednesday 00:00: gone
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Expires objects whose keys begin with `prefix`, after `days`."""

    prefix: str
    days: int


def ends_ms(rules: Sequence[Rule], key: str, written_ms: int) -> int | None:
    """Returns an object's expiry by the first rule to expire it, or None if no rule applies."""
    days = [rule.days for rule in rules if key.startswith(rule.prefix)]
    return None if not days else (written_ms // DAY_MS + min(days) + 1) * DAY_MS


def day_of(now_ms: int) -> int:
    """Returns the day (UTC) of a moment, counted from the epoch."""
    return now_ms // DAY_MS
