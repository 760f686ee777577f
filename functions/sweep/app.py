"""The minute's sweep; invoked by a schedule."""

from __future__ import annotations

import os
from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.maintenance.backlogs import read_backlogs
from cirrusmq.maintenance.sweep import sweep
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.bootstrap import longer_retries
from cirrusmq_lambda import figures
from cirrusmq_lambda.http import Context

SAVE_MS = 40_000
"""Reserved time: a part that is out of time finishes its current item."""


@longer_retries()
def handler(event: dict[str, Any], context: Context) -> None:
    core = bootstrap.service()
    swept = sweep(core, context.get_remaining_time_in_millis() - SAVE_MS)
    told: dict[figures.Figure, float] = {
        figures.STUCK: swept.stuck,
        figures.BREAKERS: swept.open_breakers,
        figures.LATE: swept.late_ms / 1000,
        figures.OLDEST: swept.oldest_age_ms // 1000,
        figures.BEHIND: swept.behind_ms // 1000,
    }
    if swept.undecided:
        told[figures.UNDECIDED] = swept.undecided
    figures.tell(told)
    if figures.wanted():
        with log_and_continue("backlogs could not be read for the figures"):
            backlogs = read_backlogs(core, int(os.environ.get("MEASURED_BACKLOGS") or 0))
            figures.tell(figures.kept(backlogs))


finish_loading()
