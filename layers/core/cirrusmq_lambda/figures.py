"""The service's figures: their names, and how they are reported.

A function reports a figure once. In an account this is a line of its log in the embedded metric
format, which CloudWatch reads; on one machine the stack keeps it for `GET /metrics`. The names are
the same, by Prometheus' rules: a unit at the end, `_total` for counters.

    tell ──┬── in an account ──> a line of the log ──> CloudWatch's metrics
           └── one machine ────> the stack ──────────> GET /metrics
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from cirrusmq.metering.usage import Kind, Usage
from cirrusmq.queues.resources import Resource

if TYPE_CHECKING:  # receives, which tell a figure, do without the sweep
    from cirrusmq.maintenance.backlogs import Backlogs

Unit: TypeAlias = Literal["Count", "Seconds", "Bytes"]


class Figure(msgspec.Struct, frozen=True):
    """A metric of CloudWatch and Prometheus."""

    name: str
    help: str
    unit: Unit = "Count"
    by_resource: bool = False
    """True if CloudWatch, too, has it by account, kind and name. Each resource is a metric there,
    at $0.30 a month."""

    spread: bool = False
    """True if it is a distribution with percentiles."""

    @property
    def counts(self) -> bool:
        """True for a counter: CloudWatch gets the increments, Prometheus shows the sum."""
        return self.name.endswith("_total")


_HAPPENED: Mapping[Kind, str] = {
    "sent": "Messages sent to queues.",
    "received": "Receipts given for messages: one that comes again is counted again.",
    "deleted": "Messages deleted by their consumers, or cancelled.",
    "expired": "Messages that nobody deleted while they lived.",
    "dead_lettered": "Messages that became dead letters.",
    "published": "Messages published to topics.",
    "delivered": "Copies for subscriptions: put into a group, or taken by a URL.",
    "dropped": "Messages given up where there is no dead-letter queue.",
    "rewound": "Messages that a rewind brought back.",
}
HAPPENED: Mapping[Kind, Figure] = {
    kind: Figure(f"cirrusmq_messages_{kind}_total", _HAPPENED[kind]) for kind in get_args(Kind)
}
"""By kind of usage record; up to a minute late, as the records are."""
ATTEMPTS = Figure("cirrusmq_post_attempts_total", "Posts to URLs, also failed posts.")

WAITED = Figure(
    "cirrusmq_wait_seconds",
    "Time from when a message could be received to its first receive.",
    "Seconds",
    spread=True,
)
POSTED = Figure(
    "cirrusmq_publish_to_post_seconds",
    "Time from a publish, or the end of its delay, to the answer of the first post to a URL.",
    "Seconds",
    spread=True,
)
RECEIVE = Figure(
    "cirrusmq_receive_seconds",
    "Time of a receive, without the time in which it waited for messages.",
    "Seconds",
    spread=True,
)
OLDEST = Figure(
    "cirrusmq_oldest_message_age_seconds",
    "Age of the oldest message that could be received and is not.",
    "Seconds",
)
KEPT = Figure("cirrusmq_kept_messages", "Messages that are stored, in any state.")
KEPT_BYTES = Figure("cirrusmq_kept_bytes", "Bytes of the messages that are stored.", "Bytes")
BACKLOG = Figure(
    "cirrusmq_backlog_messages",
    "Messages of a queue, receiver or subscription, of those that have the most.",
    by_resource=True,
)
LEFT_OUT = Figure(
    "cirrusmq_backlogs_left_out",
    "Queues, receivers and subscriptions with messages that cirrusmq_backlog_messages leaves out.",
)
STUCK = Figure("cirrusmq_stuck_schedules", "Subscriptions whose retries had no worker.")
BREAKERS = Figure("cirrusmq_open_breakers", "URLs and functions that get one message at a time.")
LATE = Figure(
    "cirrusmq_schedule_late_seconds",
    "By how much the latest message of a schedule came behind its time, in a sweep.",
    "Seconds",
)
UNDECIDED = Figure(
    "cirrusmq_undecided_half_messages_total",
    "Half messages rolled back because their producers did not decide in time.",
)
BEHIND = Figure(
    "cirrusmq_sweep_behind_seconds",
    "Time since the part of the sweep that is furthest behind finished.",
    "Seconds",
)
UNLAWFUL = Figure(
    "cirrusmq_unlawful_writes_total",
    "Writes of messages' state that no step of a message allows: a defect of CirrusMQ.",
)
TOLD = (
    *HAPPENED.values(),
    *(WAITED, POSTED, RECEIVE),
    *(
        ATTEMPTS,
        OLDEST,
        KEPT,
        KEPT_BYTES,
        BACKLOG,
        LEFT_OUT,
        STUCK,
        BREAKERS,
        LATE,
        UNDECIDED,
        BEHIND,
        UNLAWFUL,
    ),
)
"""The figures that functions report."""

CALLS = Figure("cirrusmq_calls_total", "Calls of the HTTP API.")
REFUSALS = Figure("cirrusmq_refusals_total", "Calls answered 4xx, but for 429.")
ERRORS = Figure("cirrusmq_errors_logged_total", "Errors in the functions' logs.")
LOGGED = (CALLS, REFUSALS, ERRORS)
"""Figures that are counted in logs; in an account by metric filters (infra/rollouts)."""

Values: TypeAlias = Mapping[Figure, float | Mapping[Resource, float] | Sequence[float]]
"""Figures with their values. By resource: all resources with a value now. With a spread: the new
values."""
Sink: TypeAlias = Callable[[Values], None]


def happened(usage: Mapping[tuple[Resource, Kind], Usage]) -> Values:
    """Returns the figures for usage records."""
    values: dict[Figure, dict[Resource, float]] = {}
    for (resource, kind), each in usage.items():
        for figure, number in ((HAPPENED[kind], each.messages), (ATTEMPTS, each.attempts)):
            if number:
                values.setdefault(figure, {})[resource] = number
    return values


def waited(waits_ms: Mapping[bool, Sequence[int]]) -> Values:
    """Returns the figures for waits until the first receive (False) and the first post (True)."""
    return {
        figure: [each / 1_000 for each in waits_ms[pushed]]
        for figure, pushed in ((WAITED, False), (POSTED, True))
        if waits_ms.get(pushed)
    }


def kept(backlogs: Backlogs) -> Values:
    """Returns the figures for stored messages."""
    return {
        KEPT: backlogs.messages,
        KEPT_BYTES: backlogs.bytes,
        BACKLOG: backlogs.largest,
        LEFT_OUT: backlogs.left_out,
    }


MAX_VALUES = 50
"""Maximum values of a figure in a line: the format takes 100, and a line costs by its bytes."""


class _Telling:
    sink: Sink | None = None


def send_to(sink: Sink | None) -> None:
    """Sends figures to `sink` instead of logs. None: to logs again."""
    _Telling.sink = sink


def wanted() -> bool:
    """Returns True if figures are reported, so that reads for them are worth their units."""
    if _Telling.sink is not None:
        return True
    from aws_lambda_powertools.metrics.functions import is_metrics_disabled

    return not is_metrics_disabled()


def tell(values: Values) -> None:
    """Reports figures, unless metrics are disabled."""
    if values and wanted():
        (_Telling.sink or _log)(values)


def _log(values: Values) -> None:
    """Writes a line with all figures without dimensions, and one for each resource.

    A 0 is left out: CloudWatch charges each metric by the hours in which it gets a value, and
    alarms take a missing value as good.
    """
    line: dict[Figure, Sequence[float]] = {}
    for figure, value in values.items():
        if isinstance(value, Sequence):
            line[figure] = _some_of(value)
        elif not figure.by_resource:
            number = sum(value.values()) if isinstance(value, Mapping) else value
            line |= {figure: [number]} if number else {}
    _log_line(line, None)
    by_resource: dict[Resource, dict[Figure, Sequence[float]]] = {}
    for figure, value in values.items():
        if figure.by_resource and isinstance(value, Mapping):
            for resource, number in value.items():
                by_resource.setdefault(resource, {})[figure] = [number]
    for resource, numbers in by_resource.items():
        _log_line(numbers, resource)


def _some_of(values: Sequence[float]) -> Sequence[float]:
    """Returns at most as many values as a line holds, evenly chosen from the sorted ones."""
    ordered = sorted(values)
    apart = max(1.0, len(ordered) / MAX_VALUES)
    return [ordered[int((n + 0.5) * apart)] for n in range(min(len(ordered), MAX_VALUES))]


def _log_line(values: Mapping[Figure, Sequence[float]], resource: Resource | None) -> None:
    # Powertools is imported at the first figure: most functions report none.
    from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import (
        AmazonCloudWatchEMFProvider,
    )

    if not values:
        return
    # A service, by default from the environment, would be a dimension: alarms, which have no
    # dimension, would get no values.
    line = AmazonCloudWatchEMFProvider(service="")
    if resource is not None:
        for name, value in labels(resource).items():
            line.add_dimension(name, value)
    for figure, numbers in values.items():
        for number in numbers:
            line.add_metric(figure.name, figure.unit, number)
    line.flush_metrics()


def labels(resource: Resource) -> dict[str, str]:
    """Returns the labels, or dimensions, of a resource's figure."""
    return {"account": resource.account, "kind": resource.kind, "name": resource.name}
