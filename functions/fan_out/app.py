"""Makes the parcels of receivers and subscriptions from the stream's log records, and wakes the
workers of sources that invoke a function."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.fanout.stream_batch import deliver_records
from cirrusmq.invoking.waking import wake_all
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda import observability
from cirrusmq_lambda.http import Context
from cirrusmq_lambda.streams import is_log_record, read_entry, source_id

SAVE_MS = 40_000
"""Reserved time: for shares under way, for push triggers, and for shares to park."""


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    core, records = bootstrap.service(), event["Records"]
    logged = [record for record in records if is_log_record(record)]
    put = [record for record in records if not is_log_record(record)]
    errors = wake_all(core, map(source_id, put))
    max_ms = context.get_remaining_time_in_millis() - SAVE_MS
    done, failures = deliver_records(core, list(map(read_entry, logged)), max_ms)
    for error in errors + failures:
        observability.logger.error("put aside, not notified or stopped", exc_info=error)
    # The stream delivers again from the first failure on.
    return {
        "batchItemFailures": [
            {"itemIdentifier": record["dynamodb"]["SequenceNumber"]}
            for record in logged[done : done + 1]
        ]
    }


finish_loading()
