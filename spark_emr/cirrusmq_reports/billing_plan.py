"""The plan of a run of billing: followed tables, coverage, months that close."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cirrusmq_reports.billing_state import FollowedTable, State
from cirrusmq_reports.coverage import ScannedRange, holes, union, without
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import Export, check_one_table
from cirrusmq_reports.schemas import USAGE_LIVES_DAYS
from cirrusmq_reports.times import (
    DAY_MS,
    closes_ms,
    iso_day,
    iso_month,
    iso_time,
    month_ms,
    next_month,
    parse_time,
)

REPORT_DAYS_MOST = 400
LIFE_MS = USAGE_LIVES_DAYS * DAY_MS
_TTL_LATE_DAYS = 10
"""Days after their time to live in which records are searched; later ones cost another search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run over exports: the times that they cover, and their tables."""

    to_ms: int
    tables: Sequence[FollowedTable]
    coverage: Sequence[ScannedRange]
    accepted: Sequence[ScannedRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Months that are due to close."""

    closing: Sequence[str]
    waiting: Sequence[tuple[str, Sequence[ScannedRange]]]
    """Months that cannot close, with the times without an export."""


def plan_bill(
    exports: Sequence[Export], before: State, follow: Sequence[str], *, accept_gaps: bool
) -> Plan:
    """Returns the plan of a run. Raises BadInput if a table is unknown or usage was lost."""
    tables = _followed(exports, before, follow)
    by_id = {(table.id, table.arn): table for table in tables}
    covered, accepted = list(before.coverage), list(before.accepted)
    if not covered and not any(export.full for export in exports) and not accept_gaps:
        raise BadInput(
            f"{exports[0].folder}: a window of changes without a whole export before it: use from "
            f"before {iso_time(exports[0].since_ms or 0)} would be missing; --accept-gaps bills "
            "without it"
        )
    own = [
        (_clamped(shown(export), by_id[export.table_id, export.table]), export)
        for export in exports
    ]
    covered = union([*covered, *(stretch for stretch, _ in own)])
    # The exports must show a table up to the time at which the next one took over.
    begins = [ScannedRange(table.from_ms, table.from_ms + 1) for table in tables[1:]]
    gaps = [gap for hole in holes([*covered, *begins]) for gap in without(hole, accepted)]
    if gaps and not accept_gaps:
        behind = [export.folder for stretch, export in own if stretch.from_ms == gaps[0].to_ms]
        raise BadInput(
            f"{(*behind, exports[0].folder)[0]}: no export shows the changes from "
            f"{iso_time(gaps[0].from_ms)} to {iso_time(gaps[0].to_ms)}, and the use of "
            f"{gaps[0].days} would be missing; --accept-gaps bills without it"
        )
    accepted = union([*accepted, *gaps])
    accepted = [part for gap in accepted for part in without(gap, covered)]
    return Plan(
        to_ms=max(before.to_ms, *(export.at_ms for export in exports)),
        tables=tables,
        coverage=covered,
        accepted=accepted,
    )


def shown(export: Export) -> ScannedRange:
    """Returns the times of writing whose records an export shows."""
    since_ms = export.at_ms - LIFE_MS if export.since_ms is None else export.since_ms
    return ScannedRange(max(0, since_ms), export.at_ms)


def shown_days(exports: Iterable[Export]) -> set[str]:
    """Returns the days of writing whose records exports can show, also if TTL removed them late."""
    days: set[str] = set()
    for export in exports:
        first_ms = shown(export).from_ms
        spans = [(first_ms - _TTL_LATE_DAYS * DAY_MS, export.at_ms)]
        if not export.full:
            late_ms = first_ms - LIFE_MS
            spans = [(first_ms, export.at_ms), (late_ms - DAY_MS, export.at_ms - LIFE_MS + DAY_MS)]
        for from_ms, to_ms in spans:
            first = max(0, from_ms - DAY_MS)
            days |= {iso_day(at_ms) for at_ms in range(first, to_ms + 2 * DAY_MS, DAY_MS)}
    return days


def due_months(
    plan: Plan, before: State, used_months: Iterable[str], close_days: int, *, accept_gaps: bool
) -> tuple[Due, Plan]:
    """Returns the months to close, and the plan with the gaps that are accepted for that."""
    used = sorted(used_months)
    closing: list[str] = []
    waiting: list[tuple[str, list[ScannedRange]]] = []
    accepted = list(plan.accepted)
    # Months before the first use have no invoice.
    month = used[0] if used else iso_month(plan.to_ms)
    while closes_ms(month, close_days) <= plan.to_ms:
        whole = ScannedRange(month_ms(month), closes_ms(month, close_days))
        missing = without(whole, [*plan.coverage, *accepted])
        if month in before.closed:
            pass
        elif waiting:
            # In order, so that numbers do not depend on the order of exports.
            waiting.append((month, waiting[0][1]))
        elif missing and not accept_gaps:
            waiting.append((month, missing))
        else:
            accepted = union([*accepted, *missing])
            closing.append(month)
        month = next_month(month)
    changed = Plan(to_ms=plan.to_ms, tables=plan.tables, coverage=plan.coverage, accepted=accepted)
    return Due(closing=closing, waiting=waiting), changed


def first_ms(to_ms: int, months: Iterable[str]) -> int:
    """Returns the report's begin: of the oldest month that began in the last 400 days."""
    oldest_ms = to_ms - REPORT_DAYS_MOST * DAY_MS
    starts = [start for start in map(month_ms, months) if start >= oldest_ms]
    return min(starts, default=parse_time(iso_day(to_ms)))


def _clamped(stretch: ScannedRange, table: FollowedTable) -> ScannedRange:
    """Returns the part of a stretch in which the table was in use."""
    until_ms = stretch.to_ms if table.until_ms is None else min(stretch.to_ms, table.until_ms)
    return ScannedRange(max(stretch.from_ms, table.from_ms), until_ms)


def _followed(
    exports: Sequence[Export], before: State, follow: Sequence[str]
) -> list[FollowedTable]:
    """Returns the tables of earlier runs, and the table that is followed from now on.

    The new table's records count from the end of the old one's last export in this run::

        old table   ──── night ──── whole export, callers stopped
        new table                   |──── night       from here on
    """
    tables = list(before.tables)
    known = {(table.id, table.arn) for table in tables}
    fresh = [export for export in exports if (export.table_id, export.table) not in known]
    check_one_table(fresh)
    for export in fresh[:1]:
        new = FollowedTable(id=export.table_id, arn=export.table)
        if not tables:
            return [new]
        if not any(new.named(name) for name in follow):
            raise BadInput(
                f"{export.folder}: it is of the table {export.table_id} ({export.table}), and the "
                f"bills are made from {tables[-1].id} ({tables[-1].arn}); if it took that one's "
                f"place, as after a restore, give --follow {export.table_id}"
            )
        old = [each.at_ms for each in exports if each.table == tables[-1].arn]
        from_ms = max(old) if old else min(each.at_ms for each in fresh)
        last = tables[-1]
        tables[-1] = FollowedTable(id=last.id, arn=last.arn, from_ms=last.from_ms, until_ms=from_ms)
        tables.append(FollowedTable(id=new.id, arn=new.arn, from_ms=from_ms))
    return tables
