"""Figures over many resources: by label, and the resources with the largest figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from cirrusmq_reports.backlog_summary import Row, dead_by_reason
from cirrusmq_reports.figures import AGES, COUNTS

MAX_TALKERS = 10
TALKS_BY = ("messages", "growth_per_hour", "oldest_age_seconds", "dead")
"""Figures by which the largest resources and labels are listed."""
Summary = Mapping[str, Any]


def backlog_groups(
    summaries: Mapping[str, Summary], labels: Iterable[Row]
) -> dict[str, dict[str, Any]]:
    """Returns account → `labels` and `top`.

    summaries: result of `backlog_summaries`. labels: rows with the columns of `figures_by_label`.
    `top` has, for each of TALKS_BY, the largest resources and labels, at most ten of each.
    """
    by_account = defaultdict[str, list[dict[str, Any]]](list)
    growths = {account: _growths(summary["resources"]) for account, summary in summaries.items()}
    for row in sorted(labels, key=lambda row: (row["account"], row["label"], row["value"])):
        growth = growths.get(row["account"], {}).get((row["label"], row["value"]))
        by_account[row["account"]].append(_label(row, growth))
    return {
        account: {
            "labels": by_account[account],
            "top": {name: _most(name, summary, by_account[account]) for name in TALKS_BY},
        }
        for account, summary in summaries.items()
    }


def messages_of(figures: Mapping[str, Any]) -> int:
    """Returns the number of kept messages."""
    return int(figures["active"] + figures["inactive"] + figures["delayed"])


def _growths(resources: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Returns (label, value) → hourly growth of its resources that earlier reports have."""
    sums = defaultdict[tuple[str, str], float](float)
    for resource in resources:
        if resource["growth_per_hour"] is not None:
            for label in resource["labels"].items():
                sums[label] += resource["growth_per_hour"]
    return {label: round(growth, 2) for label, growth in sums.items()}


def _label(row: Row, growth: float | None) -> dict[str, Any]:
    messages = messages_of(row)
    drain = 0.0 if not messages else None
    if messages and growth is not None and growth < 0:
        drain = round(-messages / growth, 2)
    return {
        "label": row["label"],
        "value": row["value"],
        "resources": row["resources"],
        **{name: row[name] for name in (*COUNTS, *AGES)},
        "dead_by_reason": dead_by_reason(row),
        "growth_per_hour": growth,
        "hours_to_drain": drain,
    }


def _most(name: str, summary: Summary, labels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "resources": [
            {"kind": each["kind"], "name": each["name"], name: figure}
            for figure, each in _ranked(name, summary["resources"], ("name",))
        ],
        "labels": [
            {"label": each["label"], "value": each["value"], name: figure}
            for figure, each in _ranked(name, labels, ("label", "value"))
        ],
    }


def _ranked(
    name: str, figures: Iterable[Mapping[str, Any]], names: tuple[str, ...]
) -> list[tuple[Any, Mapping[str, Any]]]:
    """Returns the largest, by name if equal, without zeros."""
    having = [
        (figure, each)
        for each in figures
        if (figure := messages_of(each) if name == "messages" else each[name]) and figure > 0
    ]
    having.sort(key=lambda pair: (-pair[0], *(str(pair[1][each]) for each in names)))
    return having[:MAX_TALKERS]
