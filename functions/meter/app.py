"""Writes usage records and counters from the stream of the table of messages."""

from __future__ import annotations

from typing import Any

from cirrusmq_lambda.loading import finish_loading
from cirrusmq.metering.meter import meter
from cirrusmq.wiring import bootstrap
from cirrusmq.wiring.bootstrap import longer_retries
from cirrusmq_lambda import figures
from cirrusmq_lambda.http import Context
from cirrusmq_lambda.streams import read_record


@longer_retries()
def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    records = [read_record(record) for record in event["Records"]]
    counted = meter(bootstrap.service(), records)
    told = {**figures.happened(counted.happened), **figures.waited(counted.waits_ms)}
    figures.tell(told | ({figures.UNLAWFUL: counted.unlawful} if counted.unlawful else {}))
    left = event["Records"][counted.records :]
    # The stream delivers again from the first failure on.
    failures = [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]} for record in left[:1]]
    return {"batchItemFailures": failures}


finish_loading()
