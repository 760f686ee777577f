"""The minute's sweep; invoked by a schedule."""

from __future__ import annotations

from typing import Any

from cirrusmq import bootstrap
from cirrusmq.sweeping import sweep
from cirrusmq.watching import oldest_age_ms
from cirrusmq_lambda.http import Context
from cirrusmq_lambda.observability import MetricUnit, tell

SAVE_MS = 5_000


def handler(event: dict[str, Any], context: Context) -> None:
    core = bootstrap.service()
    most_ms = context.get_remaining_time_in_millis() - SAVE_MS
    deadline_ms = core.now_ms() + most_ms
    tell("StuckSchedules", MetricUnit.Count, sweep(core, most_ms))
    tell("OldestMessageAge", MetricUnit.Seconds, oldest_age_ms(core, deadline_ms) // 1000)
