"""The kept times of backlogs: parts of tables by day, and by month after the month is over.

Trends read a narrow table with only the newest times, so that they cost the same after years.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cirrusmq_reports.publication import Part
from cirrusmq_reports.times import HOUR_MS, iso_day, iso_month

TREND_PART = "recent"
_TIMES_KEPT = 100
_DAY_LETTERS = len("2026-11-20")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The parts of the backlog table that a run rewrites, and the times that trends read."""

    month: str
    """The month that has a part for each day."""
    rewritten: Sequence[Part]
    """Parts whose rows are written again, with the new ones."""
    kept: Sequence[Part]
    """Parts that do not change."""
    times_ms: Sequence[int]
    """The newest times, oldest first."""


def plan_history(
    published: Iterable[Part], known_ms: Iterable[int], points_ms: Sequence[int], limit: int
) -> History:
    """Returns the history after a run for the times `points_ms`; trends show `limit` times."""
    times = sorted({*known_ms, *points_ms})
    newest_ms = times[-1]
    month = iso_month(newest_ms)
    parts = list(published)
    targets = {part_of(iso_day(at_ms), month) for at_ms in points_ms}
    targets |= {
        part_of(part.part, month) for part in parts if part_of(part.part, month) != part.part
    }
    touched = [part for part in parts if part_of(part.part, month) in targets]
    hour_ago = [at_ms for at_ms in times if at_ms <= newest_ms - HOUR_MS]
    recent = {*times[-max(limit, _TIMES_KEPT) :], *hour_ago[-1:], *points_ms}
    return History(
        month=month,
        rewritten=touched,
        kept=[part for part in parts if part not in touched],
        times_ms=sorted(recent),
    )


def part_of(name: str, month: str) -> str:
    """Returns the part for a day's rows: its own in the newest month, else its month's."""
    if len(name) == _DAY_LETTERS and name[:7] != month:
        return name[:7]
    return name
