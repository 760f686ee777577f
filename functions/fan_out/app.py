"""Makes the parcels of receivers and subscriptions from log records, as the stream brings them."""

from __future__ import annotations

from typing import Any

from cirrusmq.fanout.batch import hand_out
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda.http import Context
from cirrusmq_lambda.observability import logger
from cirrusmq_lambda.streams import read_entry

SAVE_MS = 40_000
"""Kept back: for shares under way, for notices, and for shares to park."""


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    entries = [read_entry(record) for record in event["Records"]]
    most_ms = context.get_remaining_time_in_millis() - SAVE_MS
    done, errors = hand_out(bootstrap.service(), entries, most_ms)
    for error in errors:
        logger.error("put aside, not notified or stopped", exc_info=error)
    # The stream delivers again from the first failure on.
    left = event["Records"][done : done + 1]
    return {
        "batchItemFailures": [
            {"itemIdentifier": record["dynamodb"]["SequenceNumber"]} for record in left
        ]
    }
