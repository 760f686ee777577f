"""The minute's sweep; invoked by a schedule."""

from __future__ import annotations

from typing import Any

from cirrusmq import bootstrap
from cirrusmq.sweeping import sweep
from cirrusmq_lambda.http import Context

SAVE_MS = 5_000


def handler(event: dict[str, Any], context: Context) -> None:
    sweep(bootstrap.service(), context.get_remaining_time_in_millis() - SAVE_MS)
