"""The plan of a run of billing: gaps between exports, days and months to replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import Export
from cirrusmq_reports.schemas import USAGE_LIVES_DAYS
from cirrusmq_reports.times import (
    DAY_MS,
    closes_ms,
    days_between,
    iso_day,
    iso_month,
    iso_time,
    month_ms,
    next_month,
    parse_time,
)
from cirrusmq_reports.transforms.open_usage import Reach

REPORT_DAYS_MOST = 400


class Gap(NamedTuple):
    """A stretch of time whose usage no export has shown."""

    from_ms: int
    to_ms: int

    @property
    def days(self) -> str:
        """`2026-11-05 to 2026-11-09`."""
        days = days_between(self.from_ms, self.to_ms)
        return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The exports that the current invoices were made from."""

    to_ms: int = 0
    """The end of the exports; 0 before the first run."""
    closed_through: str = ""
    """The last month whose invoices are closed; "" = none."""
    gaps: Sequence[Gap] = ()

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> State:
        """The state that `as_dict` made."""
        gaps = [Gap(*map(int, pair)) for pair in state.get("gaps", ())]
        return cls(
            to_ms=int(state.get("to_ms", 0)),
            closed_through=str(state.get("closed_through", "")),
            gaps=gaps,
        )

    def as_dict(self) -> dict[str, Any]:
        """The state as JSON has it."""
        return {
            "to_ms": self.to_ms,
            "to": iso_time(self.to_ms),
            "closed_through": self.closed_through,
            "gaps": [list(gap) for gap in self.gaps],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run over exports, after the runs that left `before`."""

    before: State
    after: State
    since_ms: int
    """From when on the exports show every usage record, or could not have shown more.

    Before that, TTL has begun to remove records, or no window of changes reaches back::

        day   | 1 | 2 | 3 | …                    | 41 |
                 ^ 40 days before the export          ^ export
                   so day 1 is no longer whole, day 2 is
    """
    to_ms: int
    """The end of the exports."""

    @property
    def open_month(self) -> str:
        """The month that takes what comes late for a closed one."""
        closed = self.before.closed_through
        return next_month(closed) if closed else iso_month(self.to_ms)

    @property
    def earliest_month(self) -> str:
        """The first month that the exports, or an open invoice, may say something of."""
        return min(self.open_month, iso_month(self.since_ms))

    def reach(self, billed_days: Iterable[str], known_to_ms: int) -> Reach:
        """The days to replace.

        `billed_days` are in the exports and in earlier reports; `known_to_ms` is how far those
        reports knew the day that the exports end in.
        """
        unseen = {day for gap in self.after.gaps for day in days_between(*gap)}
        kept = {day for day in billed_days if parse_time(day) < self.since_ms or day in unseen}
        last = iso_day(self.to_ms)
        if known_to_ms > self.to_ms:
            kept.add(last)
        whole_from_ms = -(-self.since_ms // DAY_MS) * DAY_MS
        return Reach(
            first_day=iso_day(whole_from_ms),
            last_day=last,
            kept_days=sorted(kept),
            unseen_days=sorted(unseen),
            closed_through=self.before.closed_through,
            open_month=self.open_month,
        )


def plan_bill(
    exports: Sequence[Export], before: State, close_days: int, *, accept_gaps: bool
) -> Plan:
    """The run over these exports. Raises BadInput: usage was lost, and that is not accepted."""
    stretches = sorted((_since_ms(export), export.at_ms, export.folder) for export in exports)
    gaps = []
    covered_ms = before.to_ms or stretches[0][0]
    for since_ms, at_ms, folder in stretches:
        if since_ms > covered_ms:
            gap = Gap(covered_ms, since_ms)
            if not accept_gaps:
                raise BadInput(
                    f"{folder}: no export shows the changes from {iso_time(gap.from_ms)} to "
                    f"{iso_time(gap.to_ms)}, and the use of {gap.days} would be missing; "
                    "--accept-gaps bills without it"
                )
            gaps.append(gap)
        covered_ms = max(covered_ms, at_ms)
    known = list(before.gaps)
    for since_ms, at_ms, _ in stretches:
        known = [part for gap in known for part in _without(gap, since_ms, at_ms)]
    to_ms = max(export.at_ms for export in exports)
    closed = _closed_through(max(to_ms, before.to_ms), close_days)
    return Plan(
        before=before,
        after=State(
            to_ms=max(to_ms, before.to_ms),
            closed_through=max(before.closed_through, closed),
            gaps=sorted({*known, *gaps}),
        ),
        since_ms=stretches[0][0],
        to_ms=to_ms,
    )


def first_ms(to_ms: int, months: Iterable[str]) -> int:
    """The report's begin: that of the oldest month that began in the last 400 days."""
    oldest_ms = to_ms - REPORT_DAYS_MOST * DAY_MS
    starts = [start for start in map(month_ms, months) if start >= oldest_ms]
    return min(starts, default=parse_time(iso_day(to_ms)))


def _closed_through(to_ms: int, close_days: int) -> str:
    """The last month that has closed by then."""
    month = iso_month(max(0, to_ms - close_days * DAY_MS))
    earlier = iso_month(max(0, month_ms(month) - DAY_MS))
    return earlier if closes_ms(earlier, close_days) <= to_ms else ""


def _without(gap: Gap, since_ms: int, to_ms: int) -> list[Gap]:
    """The parts of a gap that a stretch leaves."""
    parts = [Gap(gap.from_ms, min(gap.to_ms, since_ms)), Gap(max(gap.from_ms, to_ms), gap.to_ms)]
    return [part for part in parts if part.from_ms < part.to_ms]


def _since_ms(export: Export) -> int:
    """From when on an export shows the records that were written."""
    if export.since_ms is not None:
        return export.since_ms
    return export.at_ms - USAGE_LIVES_DAYS * DAY_MS
