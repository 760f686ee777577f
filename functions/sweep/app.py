"""The minute's sweep; invoked by a schedule."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.maintenance.sweep import sweep
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.attempts import patient
from cirrusmq_lambda.http import Context
from cirrusmq_lambda.observability import MetricUnit, tell

SAVE_MS = 40_000
"""Kept back: a part that is out of time ends what it is at."""


@patient()
def handler(event: dict[str, Any], context: Context) -> None:
    swept = sweep(bootstrap.service(), context.get_remaining_time_in_millis() - SAVE_MS)
    tell("StuckSchedules", MetricUnit.Count, swept.stuck)
    tell("OldestMessageAge", MetricUnit.Seconds, swept.oldest_age_ms // 1000)
    if swept.undecided:
        tell("UndecidedHalfMessages", MetricUnit.Count, swept.undecided)
    tell("SweepBehind", MetricUnit.Seconds, swept.behind_ms // 1000)


finish_loading()
