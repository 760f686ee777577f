"""From the rows of a backlog report to the answers of `GET /reports/backlog`, by account."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cirrusmq_reports.figures import (
    AGES,
    COUNTS,
    DEAD_REASONS,
    OTHER_REASON,
    REASON_COLUMNS,
    RECEIVE_COLUMNS,
    RECEIVE_RANGES,
    SIZE_COLUMNS,
    SIZE_RANGES,
)
from cirrusmq_reports.times import iso_time

Row = Mapping[str, Any]


def backlog_summaries(
    rows: Iterable[Row], accounts: Iterable[str], at_ms: int, generated_ms: int
) -> dict[str, dict[str, Any]]:
    """Returns account → its answer. `accounts`: accounts of earlier reports, now perhaps empty."""
    resources: dict[str, list[dict[str, Any]]] = {account: [] for account in accounts}
    for row in sorted(rows, key=lambda row: (row["account"], row["kind"], row["name"])):
        resources.setdefault(row["account"], []).append(_resource(row))
    head = {"at": iso_time(at_ms), "generated_at": iso_time(generated_ms)}
    return {account: {**head, "resources": listed} for account, listed in resources.items()}


def _resource(row: Row) -> dict[str, Any]:
    return {
        "name": row["name"],
        "kind": row["kind"],
        "labels": json.loads(row["labels"] or "{}"),
        **{name: row[name] for name in (*COUNTS, *AGES)},
        "dead_by_reason": dead_by_reason(row),
        "receive_counts": {
            _label(*bounds): row[column]
            for bounds, column in zip(RECEIVE_RANGES, RECEIVE_COLUMNS, strict=True)
        },
        "sizes": {
            _label(*bounds): row[column]
            for bounds, column in zip(SIZE_RANGES, SIZE_COLUMNS, strict=True)
        },
        "hottest_partition": row["hottest_partition"],
        "hottest_partition_share": row["hottest_partition_share"],
        "retrying": row["retrying"],
        "probe_age_seconds": row["probe_age_seconds"],
        "backlog_by_time": [
            {"at": iso_time(point["at_ms"]), "messages": point["messages"]}
            for point in row["backlog_by_time"]
        ],
        "growth_per_hour": row["growth_per_hour"],
        "hours_to_drain": row["hours_to_drain"],
    }


def dead_by_reason(row: Row) -> dict[str, int]:
    """Returns reason → number of dead letters, for reasons that occur."""
    reasons = (*DEAD_REASONS, OTHER_REASON)
    counts = zip(reasons, (row[column] for column in REASON_COLUMNS), strict=True)
    return {reason: count for reason, count in counts if count}


def _label(low: int, high: int | None) -> str:
    if low == high:
        return str(low)
    return f"{low}+" if high is None else f"{low}-{high}"
