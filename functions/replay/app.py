"""Runs operations (purge, rewind, redrive, backfill) step by step; invoked asynchronously."""

from __future__ import annotations

from typing import Any

from cirrusmq import bootstrap
from cirrusmq.operations import Pointer
from cirrusmq.replays import run
from cirrusmq_lambda.http import Context

SAVE_MS = 10_000
"""Kept back, to save the progress and to start the next run."""


def handler(event: dict[str, Any], context: Context) -> None:
    core = bootstrap.service()
    most_ms = context.get_remaining_time_in_millis() - SAVE_MS
    run(core, Pointer(**event["operation"]), most_ms)
