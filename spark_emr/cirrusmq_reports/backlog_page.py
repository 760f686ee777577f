"""The backlog report for a person: messages by state, their ages, and the trend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cirrusmq_reports.backlog_groups import messages_of
from cirrusmq_reports.charts import HALF, lines, show_number, stacked_columns, stacked_rows
from cirrusmq_reports.page import nothing, render_page, section, side_by_side, table, tiles
from cirrusmq_reports.times import minute_text

NO_FIGURE = "—"
NO_MESSAGES = "No messages are kept."

_LABEL_LETTERS = 8
_ROWS_SHOWN, _LINES_SHOWN, _TALKERS_SHOWN, _TABLE_ROWS = 16, 6, 5, 200
_STATES = ("active", "inactive", "delayed")
_P95 = "p95_age_seconds"
_AGES = ("p50_age_seconds", _P95, "p99_age_seconds", "oldest_age_seconds")

Resource = Mapping[str, Any]


def render_backlog(
    summaries: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Mapping[str, Any]], at_ms: int
) -> str:
    """Returns the page for all accounts' summaries, and for the groups by `backlog_groups`."""
    resources = [
        {"account": account, **resource}
        for account, summary in summaries.items()
        for resource in summary["resources"]
    ]
    resources.sort(key=messages_of, reverse=True)
    title, subtitle = "Backlog", f"All accounts, at {minute_text(at_ms)} UTC"
    if not resources:
        return render_page(title, subtitle, [nothing("The export holds no messages.")])
    busiest = resources[:_ROWS_SHOWN]
    states = [(_label(row), [row[state] for state in _STATES]) for row in busiest]
    parts = [
        tiles(_totals(resources)),
        section("Largest backlogs", stacked_rows(states, _STATES, title="Messages by state")),
        section("Backlog over time", _history(resources)),
        side_by_side(
            section("Receive counts", _histogram(resources, "receive_counts", "messages")),
            section("Message sizes (bytes)", _histogram(resources, "sizes", "messages")),
        ),
        section("Age: 95 % of the messages are younger", _ages(busiest)),
        section("Most by each figure", _talkers(resources)),
        side_by_side(
            section("Dead letters by reason", _dead_letters(resources)),
            section("Retrying subscriptions", _retrying(resources)),
        ),
        section("By label", _by_label(groups)),
        section("All figures", _all_figures(resources[:_TABLE_ROWS])),
    ]
    return render_page(title, subtitle, parts)


def show_seconds(seconds: int | None) -> str:
    """`3 h 20 min`: the two largest units."""
    if seconds is None:
        return NO_FIGURE
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3_600:
        return f"{seconds // 60} min"
    if seconds < 86_400:
        return f"{seconds // 3_600} h {seconds % 3_600 // 60} min"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3_600} h"


def show_bytes(count: float) -> str:
    """`1.2 GB`, in powers of ten."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{int(count)} B"


def _label(row: Resource) -> str:
    return f"{row['account']} · {row['name']}"


def _totals(resources: Sequence[Resource]) -> list[tuple[str, str]]:
    counted = (*_STATES, "dead", "rewindable", "expired")
    sums = [(name, show_number(sum(row[name] for row in resources))) for name in counted]
    return [*sums, ("kept", show_bytes(sum(row["bytes"] for row in resources)))]


def _history(resources: Sequence[Resource]) -> str:
    shown = resources[:_LINES_SHOWN]
    times = sorted({point["at"] for row in shown for point in row["backlog_by_time"]})
    if len(times) < 2:
        return nothing("One export so far: growth shows from the second one on.")
    series = {}
    for row in shown:
        known = {point["at"]: point["messages"] for point in row["backlog_by_time"]}
        series[_label(row)] = [known.get(time, 0) for time in times]
    labels = [f"{time[5:10]} {time[11:16]}" for time in times]
    rows = [
        (
            _label(row),
            show_number(messages_of(row)),
            _growth(row["growth_per_hour"]),
            _drain(row),
        )
        for row in shown
    ]
    heads = ("resource", "messages", "growth an hour", "time to drain")
    return lines(labels, series, title="Messages kept over time") + table(heads, rows)


def _drain(row: Resource) -> str:
    return NO_FIGURE if row["hours_to_drain"] is None else f"{row['hours_to_drain']:,.1f} h"


def _growth(per_hour: float | None) -> str:
    if per_hour is None:
        return NO_FIGURE
    return f"{per_hour:+,.0f}" if abs(per_hour) >= 10 else f"{per_hour:+.1f}"


def _histogram(resources: Sequence[Resource], name: str, unit: str) -> str:
    ranges = list(resources[0][name])
    counts = [sum(row[name][label] for row in resources) for label in ranges]
    if not any(counts):
        return nothing(NO_MESSAGES)
    labels = [_short_range(label) for label in ranges]
    return stacked_columns(labels, {unit: counts}, title=f"Messages by {name}", width=HALF)


def _short_range(label: str) -> str:
    """`4097-16384` as `to 16,384`: the ranges follow each other, and the labels must fit."""
    _, _, high = label.partition("-")
    return f"to {int(high):,}" if high and len(label) > _LABEL_LETTERS else label


def _ages(resources: Sequence[Resource]) -> str:
    rows = [(_label(row), *[show_seconds(row[age]) for age in _AGES]) for row in resources]
    p95 = [(_label(row), [row[_P95]]) for row in resources if row[_P95] is not None]
    if not p95:
        return nothing(NO_MESSAGES)
    chart = stacked_rows(p95, ["p95"], title="Age that 95 % are younger than", show=show_seconds)
    return chart + table(("resource", "age p50", "age p95", "age p99", "oldest"), rows)


def _talkers(resources: Sequence[Resource]) -> str:
    """Lists the largest, the fastest growing, the oldest, and the ones with most dead letters."""
    shows: tuple[tuple[str, Callable[[Resource], Any], Callable[[Any], str]], ...] = (
        ("messages", messages_of, show_number),
        ("growth an hour", lambda row: row["growth_per_hour"], _growth),
        ("oldest message", lambda row: row["oldest_age_seconds"], show_seconds),
        ("dead letters", lambda row: row["dead"], show_number),
    )
    rows = []
    for name, figure_of, show in shows:
        having = [(figure, row) for row in resources if (figure := figure_of(row) or 0) > 0]
        having.sort(key=lambda pair: -pair[0])
        rows += [(name, _label(row), show(figure)) for figure, row in having[:_TALKERS_SHOWN]]
    return table(("by", "resource", "figure"), rows, texts=2) if rows else nothing(NO_MESSAGES)


def _dead_letters(resources: Sequence[Resource]) -> str:
    rows = [
        (_label(row), reason, show_number(count))
        for row in resources
        for reason, count in sorted(row["dead_by_reason"].items(), key=lambda pair: -pair[1])
    ]
    if not rows:
        return nothing("None.")
    return table(("resource", "reason", "dead letters"), rows[:_TABLE_ROWS], texts=2)


def _by_label(groups: Mapping[str, Mapping[str, Any]]) -> str:
    labels = [
        {"account": account, **label}
        for account, group in groups.items()
        for label in group["labels"]
    ]
    labels.sort(key=messages_of, reverse=True)
    if not labels:
        return nothing("No queue has labels, or no export of Directory was given.")
    rows = [
        (
            f"{label['account']} · {label['label']}={label['value']}",
            show_number(label["resources"]),
            show_number(messages_of(label)),
            show_number(label["dead"]),
            show_bytes(label["bytes"]),
            *[show_seconds(label[age]) for age in _AGES],
            _growth(label["growth_per_hour"]),
            _drain(label),
        )
        for label in labels[:_TABLE_ROWS]
    ]
    heads = (
        "label", "resources", "messages", "dead", "kept", "age p50", "age p95", "age p99", "oldest",
        "growth an hour", "time to drain",
    )  # fmt: skip
    return table(heads, rows)


def _retrying(resources: Sequence[Resource]) -> str:
    rows = [
        (_label(row), show_seconds(row["probe_age_seconds"]), show_number(messages_of(row)))
        for row in resources
        if row["retrying"]
    ]
    if not rows:
        return nothing("None.")
    return table(("subscription", "age of its probe", "messages"), rows)


def _all_figures(resources: Sequence[Resource]) -> str:
    heads = (
        "account", "kind", "name", *_STATES, "dead", "rewindable", "expired", "bytes",
        "hottest partition",
    )  # fmt: skip
    rows = [
        (
            row["account"],
            row["kind"],
            row["name"],
            *[show_number(row[name]) for name in heads[3:9]],
            show_bytes(row["bytes"]),
            NO_FIGURE
            if row["hottest_partition_share"] is None
            else f"{row['hottest_partition']}: {row['hottest_partition_share']:.0%}",
        )
        for row in resources
    ]
    return table(heads, rows, texts=3)
