"""The times of writing that exports have shown, as intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cirrusmq_reports.times import days_between


class ScannedRange(NamedTuple):
    """From `from_ms` (inclusive) to `to_ms` (exclusive)."""

    from_ms: int
    to_ms: int

    @property
    def days(self) -> str:
        """`2026-11-05 to 2026-11-09`."""
        days = days_between(self.from_ms, self.to_ms)
        return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def union(stretches: Iterable[ScannedRange]) -> list[ScannedRange]:
    """Returns the same times, in order, as stretches that do not touch."""
    joined: list[ScannedRange] = []
    for each in sorted(stretch for stretch in stretches if stretch.from_ms < stretch.to_ms):
        if joined and each.from_ms <= joined[-1].to_ms:
            joined[-1] = ScannedRange(joined[-1].from_ms, max(joined[-1].to_ms, each.to_ms))
        else:
            joined.append(each)
    return joined


def without(stretch: ScannedRange, covered: Iterable[ScannedRange]) -> list[ScannedRange]:
    """Returns the parts of a stretch that no other one covers."""
    left, from_ms = [], stretch.from_ms
    for each in union(covered):
        left.append(ScannedRange(from_ms, min(each.from_ms, stretch.to_ms)))
        from_ms = max(from_ms, each.to_ms)
    left.append(ScannedRange(from_ms, stretch.to_ms))
    return union(left)


def holes(covered: Sequence[ScannedRange]) -> list[ScannedRange]:
    """Returns the times between the first and the last of these stretches that none covers."""
    if not covered:
        return []
    whole = ScannedRange(min(covered).from_ms, max(each.to_ms for each in covered))
    return without(whole, covered)
