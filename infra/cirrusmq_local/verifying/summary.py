"""The result of a run, before it is signed."""

from __future__ import annotations

import platform
from typing import Any

from cirrusmq_local.verifying import result
from cirrusmq_local.verifying.hooks import Hooks
from cirrusmq_local.verifying.parts import Part
from cirrusmq_local.verifying.played import Judged
from cirrusmq_local.verifying.record import Options, Outcome


def summarize(
    outcome: Outcome, options: Options, frame: dict[str, Any], plan: dict[str, Any]
) -> dict[str, Any]:
    """The result, unsigned. frame: `service`, `by` and the time."""
    others: list[tuple[str, Judged]] = [(each.name, each.posted) for each in outcome.hooks]
    others += outcome.schedules.items()
    delays = [1_000 * late for each in outcome.hooks[:1] for late in _delays(each)]
    measured: dict[str, Any] = dict.fromkeys(("write_units", "read_units", "dollars"))
    return {
        "format": result.FORMAT,
        **frame,
        "plan": {"minutes": options.minutes, "seed": options.seed, **plan},
        "faults": dict(outcome.faults),
        "windows": [list(each) for each in outcome.windows],
        "calls": result.calls([calls for _, calls in outcome.histories()]),
        "messages": result.messages(outcome.played),
        "publish_to_url_milliseconds": result.percentiles(delays),
        "promises": result.promises(outcome.played, others),
        "measured": measured | (outcome.capacity or {}),
        "usage": outcome.usage,
        "clock": {"drift_ms": outcome.drift_ms, "set_by_ms": outcome.jumped_ms},
        "left_out": outcome.left_out,
        "violations": result.violations(outcome.played, others),
        "errors": outcome.errors,
    }


def _delays(part: Hooks | Part) -> list[float]:
    return part.posted.delays() if isinstance(part, Hooks) else []


def machine_name() -> str:
    """The machine that made the calls."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
