"""The panels of the dashboard, for each data source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cirrusmq_lambda.figures import (
    ATTEMPTS,
    BACKLOG,
    BEHIND,
    BREAKERS,
    CALLS,
    ERRORS,
    HAPPENED,
    KEPT,
    KEPT_BYTES,
    LATE,
    LEFT_OUT,
    OLDEST,
    POSTED,
    RECEIVE,
    REFUSALS,
    STUCK,
    UNDECIDED,
    UNLAWFUL,
    WAITED,
    Figure,
)
from cirrusmq_local.stack.metrics import READS, SECONDS, WRITES

Display: TypeAlias = Literal["short", "s", "bytes"]


@dataclass(frozen=True)
class Aws:
    """A metric of AWS that has, in an account, the values of a figure on one machine."""

    namespace: str
    metric: str
    dimension: str
    variable: str
    """A variable of the dashboard, with the dimension's values."""
    display: str | None = None
    """Unit of the display, or None for the panel's."""


@dataclass(frozen=True)
class Line:
    """A figure in a panel; a counter is shown by the minute."""

    figure: Figure
    legend: str
    aws: Aws | None = None
    quantile: float | None = None
    """Quantile of a histogram, or None."""
    by: tuple[str, ...] = ()
    """Labels with a separate line for each value."""


@dataclass(frozen=True)
class Panel:
    """A panel, as wide as a third of the dashboard."""

    title: str
    text: str
    lines: Sequence[Line]
    display: Display = "short"


def _latency(quantile: float) -> Line:
    aws = Aws("AWS/ApiGateway", "Latency", "ApiId", "api", "ms")
    return Line(SECONDS, f"p{quantile * 100:g}", aws, quantile)


def _units(figure: Figure, legend: str, metric: str) -> Line:
    return Line(figure, legend, Aws("AWS/DynamoDB", metric, "TableName", "table"), by=("table",))


PANELS = (
    Panel(
        "Messages a minute",
        "Up to a minute late.",
        [
            Line(HAPPENED[kind], kind)
            for kind in ("sent", "received", "deleted", "published", "delivered", "rewound")
        ],
    ),
    Panel(
        "Messages stored",
        "Of all queues, receivers and subscriptions, in any state.",
        [Line(KEPT, "messages")],
    ),
    Panel(
        "Largest backlogs",
        "In an account: as many as the parameter MeasuredBacklogs says.",
        [Line(BACKLOG, "", by=("account", "kind", "name"))],
    ),
    Panel(
        "Age of the oldest message",
        "Of those that could be received and are not.",
        [Line(OLDEST, "oldest")],
        "s",
    ),
    Panel(
        "Messages lost or given up, a minute",
        "Dead letters are in their queue; what expired or was dropped is gone.",
        [
            *(Line(HAPPENED[kind], kind) for kind in ("dead_lettered", "expired", "dropped")),
            Line(UNDECIDED, "undecided half messages"),
            Line(UNLAWFUL, "unlawful writes"),
        ],
    ),
    Panel(
        "Posts to URLs a minute",
        "Attempts above deliveries are retries.",
        [
            Line(ATTEMPTS, "attempts"),
            Line(STUCK, "retries without a worker"),
            Line(BREAKERS, "open breakers"),
        ],
    ),
    Panel(
        "Calls a minute",
        "Refused: answered 4xx, but for 429.",
        [Line(CALLS, "calls"), Line(REFUSALS, "refused"), Line(ERRORS, "errors logged")],
    ),
    Panel(
        "Time of a call",
        "Receives that wait are among them.",
        [_latency(0.5), _latency(0.99)],
        "s",
    ),
    Panel(
        "Units of DynamoDB a minute",
        "What calls, and what runs behind them, consume.",
        [
            _units(READS, "read", "ConsumedReadCapacityUnits"),
            _units(WRITES, "write", "ConsumedWriteCapacityUnits"),
        ],
    ),
    Panel(
        "Wait for the first receive",
        "From when a message could be had; up to a minute late.",
        [Line(WAITED, "p50", quantile=0.5), Line(WAITED, "p99", quantile=0.99)],
        "s",
    ),
    Panel(
        "Time of a receive",
        "Without the time in which it waits for messages; up to a minute late.",
        [Line(RECEIVE, "p50", quantile=0.5), Line(RECEIVE, "p99", quantile=0.99)],
        "s",
    ),
    Panel(
        "From publish to post",
        "To the first answer of the URL; up to a minute late.",
        [Line(POSTED, "p50", quantile=0.5), Line(POSTED, "p99", quantile=0.99)],
        "s",
    ),
    Panel("Bytes stored", "Of all messages.", [Line(KEPT_BYTES, "bytes")], "bytes"),
    Panel(
        "Backlogs without a line of their own",
        "Queues, receivers and subscriptions with messages beside the largest.",
        [Line(LEFT_OUT, "left out")],
    ),
    Panel(
        "The sweep is behind by",
        "It runs each minute; above ten minutes an alarm rings.",
        [Line(BEHIND, "behind"), Line(LATE, "latest message of a schedule")],
        "s",
    ),
)
